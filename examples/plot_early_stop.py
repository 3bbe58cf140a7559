"""
Stop early, by a callback
=========================

scikit-learn's callbacks are told after each layer and may say stop. This one ends the fit when two layers in
a row did not lower the leave-one-out log-loss: no validation rows are needed.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from edrvfl import EDRVFLClassifier

X, y = load_breast_cancer(return_X_y=True)
X, X_new, y, y_new = train_test_split(X, y, stratify=y, random_state=0)


class Patience:
    """Say stop when some layers in a row were no better than the best before them."""

    def __init__(self, layers):
        self.layers = layers

    def setup(self, estimator, context): ...

    def teardown(self, estimator, context): ...

    def on_fit_task_begin(self, estimator, context, *, X=None, metadata=None): ...

    def on_fit_task_end(self, estimator, context, *, X=None, fitted_estimator=None):  # noqa: ARG002
        if context.task_name != "layer":
            return False
        losses = list(fitted_estimator.loo_log_losses_)
        return len(losses) - 1 - losses.index(min(losses)) >= self.layers


# %%
# ``layer_votes="prefix"`` drops the layers after the best one, on which the callback has waited.

options = {"n_hidden": 128, "n_layers": 12, "encoder": "bins", "layer_votes": "prefix", "random_state": 0}
whole = EDRVFLClassifier(**options).fit(X, y)
losses = list(whole.loo_log_losses_)
stopped = EDRVFLClassifier(**options).set_callbacks(Patience(2)).fit(X, y)
grown = len(stopped.loo_log_losses_)
print(f"{grown} layers were grown and {stopped.n_layers_} kept, accuracy {stopped.score(X_new, y_new):.3f}")
print(f"all 12 grown and {whole.n_layers_} kept: accuracy {whole.score(X_new, y_new):.3f}")

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
axes.plot(range(1, 13), losses, "o-", color="0.75", label="layers that were not grown")
axes.plot(range(1, grown + 1), losses[:grown], "o-", color="#0072b2", label="grown before the stop")
axes.axvline(stopped.n_layers_, color="#d55e00", linewidth=1, label="kept up to here")
axes.set(xlabel="layers", ylabel="log-loss by leave-one-out", xticks=range(1, 13))
axes.set_title("A fit that a callback has stopped")
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
plt.show()
