"""The race: who goes on, what happens when time is up, and many processes."""

from types import SimpleNamespace

import numpy as np
import pytest
from helpers import FixedSeed, Recorder
from scipy.linalg import LinAlgWarning
from sklearn.base import clone

from edrvfl import EDRVFLClassifier, EDRVFLPortfolioClassifier, KernelRidgeClassifier
from edrvfl._doors import raced
from edrvfl._fitting import race
from edrvfl._fitting.race import Progress

NETWORK = EDRVFLClassifier(n_layers=3, n_hidden=10, regularization=0.5, ensemble="mean")
KINDS = {
    "paper": {},
    "sin": {"activation": "sin"},
    "narrow": {"n_hidden": 2},
    "sparse": {"inputs_per_neuron": 1},
}
MEMBERS = [
    *((name, clone(NETWORK).set_params(**values)) for name, values in KINDS.items()),
    ("kernel", KernelRidgeClassifier(bandwidth=1.0, input_scaling=None)),
]


def followed(monkeypatch, X, y, **params):
    """Fit a portfolio; return it, and the race that it ran."""
    ran = []
    plain = race.Race.run

    def run(self, *args):
        ran.append(self)
        return plain(self, *args)

    monkeypatch.setattr(race.Race, "run", run)
    params = {"members": MEMBERS, "random_state": 0, **params}
    return EDRVFLPortfolioClassifier(**params).fit(X, y), ran[0]


@pytest.fixture
def alone(noisy):
    """Fit each network of the portfolio as an estimator alone, with the seed that the race gave it."""
    X, y = noisy

    def fit(member):
        estimator = clone(dict(MEMBERS)[member.name]).set_params(
            random_state=FixedSeed(member.seed), calibration="temperature"
        )
        return estimator.fit(X, y)

    return fit


@pytest.mark.parametrize("finalists", [1, 2, 3])
def test_those_of_the_smallest_loss_after_one_layer_go_on(noisy, monkeypatch, alone, finalists):
    model, ran = followed(monkeypatch, *noisy, finalists=finalists)
    losses = {i: alone(ran.members[i]).loo_log_losses_[0] for i in range(4)}
    assert len({round(loss, 6) for loss in losses.values()}) == 4
    expected = set(sorted(losses, key=losses.get)[:finalists])
    for i in range(4):
        assert len(ran.progress[i].stages) == (3 if i in expected else 1)
    dropped = [i for i in range(4) if i not in expected]
    assert all(model.members_["weight"][i] == 0 for i in dropped)
    assert model.members_["member"] == [name for name, _ in MEMBERS]


@pytest.mark.parametrize("finalists", [4, 9, None])
def test_without_a_race_everybody_grows(noisy, monkeypatch, alone, finalists):
    X, y = noisy
    model, ran = followed(monkeypatch, X, y, finalists=finalists)
    for i in range(4):
        network = alone(ran.members[i])
        found = [stage.loss for stage in ran.progress[i].stages]
        np.testing.assert_allclose(found, network.loo_log_losses_, rtol=1e-6)
        np.testing.assert_allclose(ran.progress[i].voter.answer(X), network.predict_proba(X), atol=1e-7)
    assert len({member.seed for member in ran.members}) == 5
    everyone = clone(model).set_params(finalists=None).fit(X, y)
    np.testing.assert_array_equal(everyone.predict_proba(X), model.predict_proba(X))


def clock(monkeypatch):
    """Let a second pass whenever the fit looks at the clock."""
    seconds = iter(range(10**6))
    monkeypatch.setattr(race, "time", SimpleNamespace(time=lambda: next(seconds), perf_counter=lambda: 0.0))
    monkeypatch.setattr("edrvfl._doors.raced.time", SimpleNamespace(time=lambda: next(seconds)))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_when_time_is_up_at_once_there_is_one_layer_of_one_network(noisy, n_jobs):
    X, y = noisy
    model = EDRVFLPortfolioClassifier(members=MEMBERS, max_seconds=1e-9, n_jobs=n_jobs, random_state=0)
    model.fit(X, y)
    assert model.members_["member"] == ["paper"]
    assert model.members_["n_layers"] == [1]
    assert model.members_["weight"] == [1]
    full = clone(model).set_params(max_seconds=None, finalists=None).fit(X, y)
    (voter,) = model.portfolio_.voters
    np.testing.assert_allclose(voter.readouts[0], full.portfolio_.voters[0].readouts[0], atol=1e-10)


def test_more_time_gives_more(noisy, monkeypatch):
    sizes = []
    for seconds in np.arange(0.5, 11):
        clock(monkeypatch)
        _, ran = followed(monkeypatch, *noisy, max_seconds=seconds, finalists=2)
        assert all(isinstance(done, Progress) for done in ran.progress.values())
        sizes.append(sum(len(done.stages) for done in ran.progress.values()))
        monkeypatch.undo()
    assert sizes == sorted(sizes)
    assert sizes[0] == 1
    # four networks of one layer, two of which grow two more, and the kernel
    assert sizes[-1] == 4 + 2 * 2 + 1
    assert len(set(sizes)) >= 6


def test_whenever_time_is_up_there_is_a_model(noisy, monkeypatch):
    X, y = noisy
    for seconds in np.arange(0.5, 10):
        clock(monkeypatch)
        model, ran = followed(monkeypatch, X, y, max_seconds=seconds, finalists=2)
        monkeypatch.undo()
        assert sum(model.members_["weight"]) == pytest.approx(1)
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
        networks = [i for i in ran.progress if i != 4]
        finalists = sorted(networks, key=lambda i: ran.progress[i].stages[0].loss)[:2]
        weighted = {i for i, w in zip(sorted(ran.progress), model.members_["weight"], strict=True) if w > 0}
        assert weighted <= {*finalists, 4}  # networks that were dropped have no weight


def test_with_time_to_spare_a_limit_changes_nothing(noisy):
    X, y = noisy
    model = EDRVFLPortfolioClassifier(members=MEMBERS, finalists=2, random_state=0)
    expected = clone(model).fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(model.set_params(max_seconds=1e6).fit(X, y).predict_proba(X), expected)


def test_a_portfolio_of_kernels_alone_has_a_model_in_no_time(noisy):
    X, y = noisy
    kernels = [(name, KernelRidgeClassifier(bandwidth=h)) for name, h in (("near", 0.3), ("far", 3.0))]
    model = EDRVFLPortfolioClassifier(members=kernels, max_seconds=1e-9).fit(X, y)
    assert model.members_["member"] == ["near"]
    assert clone(model).set_params(max_seconds=None).fit(X, y).members_["member"] == ["near", "far"]


@pytest.fixture
def processes(monkeypatch, limit):
    """Let small data go to processes, as memory maps that nobody may write to; note how many are used."""
    used, plain = [], race.Parallel

    def parallel(*, n_jobs, **params):
        used.append(n_jobs)
        return plain(n_jobs=n_jobs, max_nbytes=100, **params)

    monkeypatch.setattr(race, "Parallel", parallel)
    limit(WORTH_PROCESSES=0)
    return used


def test_two_processes_fit_the_same_model(noisy, processes):
    X, y = noisy
    model = EDRVFLPortfolioClassifier(members=MEMBERS, finalists=2, random_state=0)
    one = clone(model).fit(X, y)
    assert processes == []
    two = model.set_params(n_jobs=2).fit(X, y)
    assert processes == [2, 2]  # the first layers, and those that go on
    np.testing.assert_allclose(two.predict_proba(X), one.predict_proba(X), atol=1e-12)
    assert two.members_["member"] == one.members_["member"]
    for name in ("weight", "loo_accuracy", "loo_log_loss"):
        np.testing.assert_allclose(two.members_[name], one.members_[name], rtol=1e-9)


@pytest.mark.usefixtures("processes")
def test_a_callback_can_end_a_fit_in_processes(noisy):
    X, y = noisy
    model = EDRVFLPortfolioClassifier(members=MEMBERS, finalists=2, random_state=0, n_jobs=2)
    model.set_callbacks(Recorder(stop_after=2)).fit(
        X, y
    )  # warnings are errors: nobody hears of cancelled work
    assert len(model.members_["member"]) == 2
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_a_member_that_fails_is_named(noisy):
    deep = EDRVFLClassifier(n_layers=100, n_hidden=100, renormalize=False, activation="relu")
    model = EDRVFLPortfolioClassifier(members=[*MEMBERS, ("deep", deep)], finalists=None)
    with pytest.raises(ValueError, match=r"Member 'deep': The hidden features overflow float32 in layer \d+"):
        model.fit(noisy[0].astype(np.float32), noisy[1])
    assert not hasattr(model, "portfolio_")


def test_networks_of_one_layer_are_dropped_too(noisy):
    X, y = noisy
    members = [(name, clone(e).set_params(n_layers=1)) for name, e in MEMBERS if hasattr(e, "n_layers")]
    model = EDRVFLPortfolioClassifier(members=members, finalists=1, random_state=0).fit(X, y)
    best = int(np.argmin(model.members_["loo_log_loss"]))
    assert model.members_["weight"] == [float(i == best) for i in range(len(members))]


def test_a_singular_system_is_told(noisy):
    X, y = noisy
    twice = np.hstack([X, X])  # with these columns twice nothing but the least norm decides
    members = [("unpenalised", EDRVFLClassifier(n_layers=1, n_hidden=5, regularization=1e-300, prune_rate=0))]
    with pytest.warns(LinAlgWarning, match=r"member unpenalised"):
        EDRVFLPortfolioClassifier(members=members, random_state=0).fit(twice, y)


@pytest.mark.parametrize("finalists", [1, 3, None])
def test_the_number_of_pieces_is_known_before(noisy, monkeypatch, finalists):
    X, y = noisy
    reported = []
    plain = raced._report
    monkeypatch.setattr(raced, "_report", lambda *args: reported.append(args[3]) or plain(*args))
    _, ran = followed(monkeypatch, X, y, finalists=finalists)
    assert ran.n_pieces(finalists) == len(reported)
