"""A made-up frame of customers for the other examples: numbers, categories, text, booleans and gaps."""

import numpy as np
import pandas as pd

CITIES = ["Accra", "Busan", "Cusco", "Dakar", "Essen", "Fargo", "Ghent", "Hobart"]


def make_customers(n, seed):
    """Return n customers, whether each stays or leaves, and the true probability that it leaves."""
    rng = np.random.default_rng(seed)
    frame = draw_customers(n, rng)
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
    return with_gaps(frame, rng), labels, leaves


def make_spenders(n, seed):
    """Return n customers, what each spends in a year, and what one would expect of it."""
    rng = np.random.default_rng(seed)
    frame = draw_customers(n, rng)
    expected = (
        260
        + 110 * np.sqrt(frame["visits"]) * np.where(frame["plan"] == "family", 1.8, 1.0)
        + 130 * np.log(frame["income"] / 22_000)
        - 7 * frame["distance"].clip(upper=25)
        + 120 * frame["city"].isin(CITIES[:3])
        + 90 * frame["age"].between(30, 55)
    ).to_numpy(float)
    spread = 25 + 22 * frame["visits"].to_numpy()  # who comes often is harder to foresee
    return with_gaps(frame, rng), expected + spread * rng.standard_normal(n), expected


def draw_customers(n, rng):
    """Return a frame of n customers without gaps."""
    return pd.DataFrame(
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


def with_gaps(frame, rng):
    """Return the frame with gaps in two columns: so the truth cannot quite be reached."""
    n = len(frame)
    frame.loc[rng.random(n) < 0.1, "distance"] = None
    frame.loc[rng.random(n) < 0.05, "plan"] = None
    return frame
