"""Run the portfolio in TabArena, which compares models of tables on common data, splits and budgets.

``EDRVFLModel`` is what TabArena and AutoGluon call a model. Run as a script, this file compares it with their
random forest on two tables that come with scikit-learn, by TabArena's protocol: eight folds, whose eight
models answer together. It takes some minutes and no network:

    pip install 'tabarena[plot]' edrvfl
    python tabarena_adapter.py

For TabArena's own tables take ``TabArenaContext()`` in place of ``AbstractArenaContext``, and
``subset="lite"`` in place of ``user_tasks``. Without ``debug_mode`` the folds run side by side, and then the
class must be imported from this file, since other processes cannot find a class of a script.
"""

import tempfile
from pathlib import Path
from typing import ClassVar

try:
    from autogluon.core.models import AbstractModel
except ModuleNotFoundError as missing:
    raise SystemExit(f"This example needs TabArena: pip install 'tabarena[plot]'. ({missing})") from missing

from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.model_selection import ShuffleSplit
from threadpoolctl import threadpool_limits

from edrvfl import EDRVFLPortfolioClassifier, EDRVFLPortfolioRegressor


class EDRVFLModel(AbstractModel):
    """The portfolio as a model of AutoGluon. Hyperparameters are those of the portfolio."""

    ag_key = "TA-EDRVFL"
    ag_name = "EDRVFL"
    ag_priority = 65
    seed_name = "random_state"  # AutoGluon puts a seed of each fold here
    _supported_problem_types: ClassVar = ["binary", "multiclass", "regression"]
    # Categories and missing values go to the portfolio as they are, it has an encoder of its own.
    _default_auxiliary_params_extra: ClassVar = {"valid_raw_types": ["int", "float", "category"]}
    default_resources_physical_cores_only = True

    def _set_default_params(self):
        self._set_default_param_value("coverage_from", None)  # nobody asks for intervals

    def _fit(self, X, y, time_limit=None, num_cpus=1, **_):
        """Fit the training rows. Validation rows are not looked at: leave-one-out takes their place."""
        portfolio = EDRVFLPortfolioClassifier
        if self.problem_type == "regression":
            portfolio = EDRVFLPortfolioRegressor
        params = self._get_model_params()
        if time_limit is not None:
            params["max_seconds"] = 0.95 * time_limit
        X = self.preprocess(X, y=y, is_train=True)
        with threadpool_limits(num_cpus):
            self.model = portfolio(**params).fit(X, y)

    # The inherited _predict_proba asks self.model, and takes the second column of two classes.

    @classmethod
    def _estimate_memory_usage_static(cls, *, X, **_):
        """Estimate the bytes that a fit takes, so that AutoGluon knows how many folds fit side by side."""
        rows, columns = X.shape
        features = rows * (1024 + 20 * columns) * 8  # of a layer: neurons, and columns in bins
        kernels = 4 * min(rows, 5000) ** 2 * 8
        return int(500e6 + 4 * features + kernels)

    @classmethod
    def config_generator(cls):
        """Return the default configuration, and the space that TabArena's tuning draws from."""
        from autogluon.common.space import Categorical
        from tabarena.utils.config_utils import ConfigGenerator

        space = {"finalists": Categorical(None, 2), "weights": Categorical("loo", "equal")}
        return ConfigGenerator(model_cls=cls, manual_configs=[{}], search_space=space)


def make_task(name, load, problem_type, folder):
    """Return a table of scikit-learn as a task of TabArena with one split, and what TabArena knows of it."""
    from tabarena.benchmark.task import UserTask

    table = load(as_frame=True).frame
    ((train, test),) = ShuffleSplit(1, test_size=0.33, random_state=0).split(table)
    task = UserTask(task_name=name, task_cache_path=folder)
    made = task.create_task(
        dataset=table,
        target_feature="target",
        problem_type=problem_type,
        splits={0: {0: (train.tolist(), test.tolist())}},
    )
    task.save_task(made)
    return task, made.metadata


def main():
    from tabarena.benchmark.experiment import TabArenaV0pt1ExperimentBundle
    from tabarena.benchmark.task.metadata import TaskMetadataCollection
    from tabarena.contexts import AbstractArenaContext

    folder = Path(tempfile.mkdtemp(prefix="tabarena_"))
    tasks, known = zip(
        make_task("breast_cancer", load_breast_cancer, "classification", folder / "tasks"),
        make_task("diabetes", load_diabetes, "regression", folder / "tasks"),
        strict=True,
    )
    models = [(EDRVFLModel.config_generator(), 0), ("RandomForest", 0)]
    context = AbstractArenaContext(task_metadata=TaskMetadataCollection.from_source(list(known)), methods=[])
    context.build_and_run_jobs(
        TabArenaV0pt1ExperimentBundle(models=models).build_experiments(),
        expname=str(folder / "results"),
        user_tasks=list(tasks),
        debug_mode=True,
    )
    board = context.compare(output_dir=folder / "comparison")
    print(board[["method", "rank", "improvability", "time_train_s", "time_infer_s"]].to_string())


if __name__ == "__main__":
    main()
