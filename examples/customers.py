"""A made-up frame of customers for the other examples: numbers, categories, text, booleans and gaps."""

import numpy as np
import pandas as pd

CITIES = ["Accra", "Busan", "Cusco", "Dakar", "Essen", "Fargo", "Ghent", "Hobart"]


def make_customers(n, seed):
    """Return n customers, whether each stays or leaves, and the true probability that it leaves."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 90, n).astype(float),
            "income": rng.lognormal(10, 0.8, n),
            "visits": rng.poisson(4, n).astype(float),
            "distance": rng.exponential(12, n),
            "city": pd.Categorical(rng.choice(CITIES, n)),
            "plan": rng.choice(["basic", "plus", "family"], n),
            "newsletter": rng.random(n) < 0.4,
            "shoe_size": rng.normal(41, 2, n),
        }
    )
    seldom = frame["visits"] < 2
    logit = (
        -2.5
        + 4.5 * (seldom & (frame["plan"] != "family"))
        + 2.5 * frame["age"].between(25, 40)
        - 1.6 * np.log(frame["income"] / 22_000)
        + 2.5 * (frame["distance"] > 20) * ~frame["newsletter"]
        + 1.5 * frame["city"].isin(CITIES[:3])
    )
    leaves = 1 / (1 + np.exp(-logit.to_numpy(float)))
    labels = np.where(rng.random(n) < leaves, "leaves", "stays")
    frame.loc[rng.random(n) < 0.1, "distance"] = None  # gaps: so the true probability cannot quite be reached
    frame.loc[rng.random(n) < 0.05, "plan"] = None
    return frame, labels, leaves
