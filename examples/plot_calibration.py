"""
Probabilities before and after calibration
==========================================

Of all rows that get the probability 0.8, about 80 % should belong to the class. The paper's network ranks
rows well, but its probabilities stay near the middle. ``fit`` therefore learns from leave-one-out scores how
the network's answers become probabilities that come true.
"""

import matplotlib.pyplot as plt
from sklearn.calibration import calibration_curve
from sklearn.datasets import make_classification
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import train_test_split

from edrvfl import EDRVFLClassifier

X, y = make_classification(9000, n_informative=8, class_sep=0.5, flip_y=0, weights=[0.65], random_state=0)
X, X_new, y, y_new = train_test_split(X, y, train_size=3000, stratify=y, random_state=0)

# %%
# The same network twice, without calibration and with it. Accuracy hardly moves; log-loss does.

answers = {}
for calibration, name in ((None, "before (None)"), ("loo", 'after ("loo")')):
    model = EDRVFLClassifier(calibration=calibration, random_state=0).fit(X, y)
    answers[name] = model.predict_proba(X_new)[:, 1]
    accuracy, loss = accuracy_score(y_new, answers[name] > 0.5), log_loss(y_new, answers[name])
    print(f"{name}: accuracy {accuracy:.3f}, log-loss {loss:.3f}")

# %%
# The curve of the answers before calibration is steep: where 0.6 is said, nearly all rows are of class 1.
# Afterwards what is said is what happens. Each point stands for the same number of rows.

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
axes.plot([0, 1], [0, 1], ":", color="0.4", label="as predicted")
for (name, P), look in zip(answers.items(), ("o-", "s-"), strict=True):
    observed, predicted = calibration_curve(y_new, P, n_bins=15, strategy="quantile")
    axes.plot(predicted, observed, look, label=f"{name}, log-loss {log_loss(y_new, P):.2f}")
axes.set(xlabel="predicted probability of class 1", ylabel="share of class 1 among these rows")
axes.set_title("Calibration by leave-one-out")
axes.legend(frameon=False, loc="upper left")
axes.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Below, how often each probability is given: calibrated answers dare to come near 0 and 1.

figure, axes = plt.subplots(figsize=(6, 2.6), layout="constrained")
axes.hist(list(answers.values()), bins=25, range=(0, 1), label=list(answers))
axes.set(xlabel="predicted probability of class 1", ylabel="rows", title="How often a probability is given")
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
plt.show()
