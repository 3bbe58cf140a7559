"""Rows that come and go, against read-outs that are solved from all rows with the features of the fit."""

import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import sklearn
from cases import ALL, CLASS_MEMBERS, DRAWN, answer, rows_for
from helpers import PAPER, features_by_layer, noisy_rows, noisy_values
from hypothesis import given, settings
from hypothesis import strategies as st
from independent_reader import KERNELS
from sklearn.base import clone, is_classifier
from sklearn.tree import DecisionTreeClassifier

import edrvfl
from edrvfl import (
    EDRVFLClassifier,
    EDRVFLPortfolioClassifier,
    EDRVFLRegressor,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
    RowBlocks,
)
from edrvfl._models.memory import KernelMemory, NetworkMemory

NETWORK = {"n_layers": 3, "n_hidden": 12, "regularization": 0.5, "random_state": 0}
UNCALIBRATED = {"calibration": None, "coverage_from": None}


# --- read-outs by hand -----------------------------------------------------------------------------------


def rows_of(model, X, y):
    """Rows as the model sees them, their standardised targets, and class weights."""
    memory = model.memory_
    X = model._check_new_rows(X, "predict")
    if memory.mean is None:
        codes = np.searchsorted(model.classes_, y)
        return X, np.eye(len(model.classes_))[codes], 1.0 if memory.costs is None else memory.costs[codes]
    return X, (np.reshape(y, (len(y), -1)) - memory.mean) / memory.sd, 1.0


def ridge(D, Y, weights, lam):
    """Solve by the rows themselves, and not by their Gram: |W^(1/2) (D b - Y)|^2 + lam |b|^2."""
    root = np.sqrt(weights)[:, None]
    A = np.vstack([root * D, np.sqrt(lam) * np.eye(D.shape[1])])
    return np.linalg.lstsq(A, np.vstack([root * Y, np.zeros((D.shape[1], Y.shape[1]))]), rcond=None)[0]


def network_by_hand(network, kept, rows, weights, omega):
    """The network with read-outs of these rows; `omega` gives a layer's own weights of rows."""
    X, Y, scale = rows
    features = features_by_layer(network, X)
    inputs = features[0][:, network.n_hidden :]
    readouts = []
    for l, (D, lam) in enumerate(zip(features, kept.lams, strict=True)):
        if network.joint:
            D = np.hstack([inputs, *(H[:, : network.n_hidden] for H in features[: l + 1])])
        beta = ridge(D, Y, weights * omega[l], lam)
        if scale is not None:
            beta = beta * scale[1]
            beta[network.bias] += scale[0]
        readouts.append(beta)
    return replace(network, readouts=tuple(readouts))


def omega_of_new(network, kept, X, Y, scale):
    """What rows that the fit did not see weigh in each layer, by the read-outs of the fit."""
    found = [np.ones(len(X)) for _ in kept.lams]
    for l, D in enumerate(features_by_layer(network, X)[:-1]):
        if (judge := kept.judges[l + 1]) is not None:
            scores = D @ network.readouts[l]
            if scale is None:
                losses = (scores.argmax(axis=1) != Y.argmax(axis=1)) * 1.0
            else:
                losses = (((scores - scale[0]) / scale[1] - Y) ** 2).mean(axis=1)
            found[l + 1] = np.where(losses <= judge.bound, judge.right, judge.wrong)
    return found


def kernel_by_hand(model, kept, rows, weights):
    """The kernel model with coefficients of these rows, each of which is a landmark of its own."""
    X, Y, scale = rows
    voter = model.voter
    E = voter.inputs.apply(X)
    prior = voter.prior if scale is None else 0.0
    K = KERNELS[voter.kernel](np.abs(E[:, None] - E), voter.bandwidth, E.shape[1])
    alpha = np.linalg.solve(K + np.diag(kept.lams[0] / weights), Y - prior)
    return replace(model, voter=replace(voter, landmarks=E, alpha=alpha))


def voter_by_hand(voter, kept, rows, stays, scale):
    """A voter of the rows (X, Y, weights) of the fit that stay, and of new ones behind all of the fit."""
    m = len(kept.right[0]) if isinstance(kept, NetworkMemory) else len(kept.part)
    some = np.r_[stays, m : len(rows[0])]
    X, Y, weights = (part[some] for part in rows)
    if isinstance(kept, KernelMemory):
        return kernel_by_hand(voter, kept, (X, Y, scale), weights)
    new = omega_of_new(voter, kept, rows[0][m:], rows[1][m:], scale)
    omega = [np.r_[np.ones(m) * kept.omega(l), own][some] for l, own in enumerate(new)]
    return network_by_hand(voter, kept, (X, Y, scale), weights, omega)


def by_hand(model, X, y, weights, stays):
    """The model of the rows of its fit that stay, and of the rows that stand behind all of these."""
    memory = model.memory_
    scale = None if memory.mean is None else (memory.mean, memory.sd)
    X, Y, costs = rows_of(model, X, y)
    voters = getattr(model._model, "voters", (model._model,))
    changed = tuple(
        voter_by_hand(voter, kept, (X, Y, weights * costs), stays, scale)
        for voter, kept in zip(voters, memory.voters, strict=True)
    )
    return replace(model._model, voters=changed) if hasattr(model._model, "voters") else changed[0]


def assert_alike(model, expected, X, near=1e-9):
    found = model._model.answer(model._check_new_rows(X, "predict"))
    wanted = expected.answer(model._check_new_rows(X, "predict"))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=near * max(1.0, np.abs(wanted).max()))


def check_changes(estimator, X, y, weights, n_new, near=1e-9):
    """Rows come to a fit and others go, and each time the answers are those by hand."""
    m, gone = len(y) - n_new, max(1, n_new // 2)
    given = (None, None) if (weights == 1).all() else (weights[:m], weights[m:])
    model = clone(estimator).set_params(remember="rows").fit(X[:m], y[:m], given[0])
    plain = clone(estimator).fit(X[:m], y[:m], given[0])
    np.testing.assert_array_equal(answer(model, X), answer(plain, X))  # what is kept changes nothing
    all_rows, stays = np.arange(m), np.arange(gone, m)
    more, both = (by_hand(model, X, y, weights, some) for some in (all_rows, stays))
    fewer = by_hand(model, X[:m], y[:m], weights[:m], stays)
    assert model.update(X[m:], y[m:], given[1]) is model
    assert_alike(model, more, X, near)
    model.forget(ids=np.arange(gone))  # of copies values name the newest
    assert_alike(model, both, X, near)
    model.forget(ids=np.arange(m, len(y)))  # arrays are numbered in the order in which they came
    assert_alike(model, fewer, X, near)
    assert model.frozen_since_ == (n_new, n_new + gone)


@settings(max_examples=25)
@given(data=st.data())
def test_a_network_is_the_one_of_all_rows(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    m, share = data.draw(st.integers(20, 90)), data.draw(st.sampled_from([0.0, 0.1, 0.5]))
    k, classes = data.draw(st.integers(1, 3)), data.draw(st.booleans())
    n = data.draw(st.sampled_from([6, 60]))
    weights = rng.choice([0.4, 1.0, 3.0], m) if data.draw(st.booleans()) else np.ones(m)
    options = data.draw(
        st.sampled_from(
            [
                {},
                {"correct_weight": 0.5, "prune_rate": 0.3, "weight_from": "train"},
                {"correct_weight": 0.4, "weight_from": "loo", "regularization": 2.0},
                {"readout": "joint"},
            ]
        )
    )
    options = (
        NETWORK | {"n_hidden": n, "correct_weight": 1.0, "prune_rate": 0.0, "input_scaling": None} | options
    )
    whole = data.draw(st.booleans())  # then rows agree by chance
    if classes:
        X, y = noisy_rows(rng, m, 4)
        y[:3] = 0, 1, 2  # no class is new
        cost = data.draw(st.sampled_from([None, "balanced"]))
        model = EDRVFLClassifier(**options, **UNCALIBRATED, class_weight=cost)
    else:
        X, y = noisy_values(rng, m, 4, k)
        model = EDRVFLRegressor(**options, coverage_from=None)
    check_changes(model, np.round(X) if whole else X, y, weights, max(1, round(share * m)))


def test_rows_of_groups_come_and_go_as_others_do(rng):
    X, y = noisy_rows(rng, 120, 3)
    X = np.round(X)  # copies in several groups are judged apart
    weighed = NETWORK | {"correct_weight": 0.5, "weight_from": "loo"}
    model = EDRVFLClassifier(**weighed, remember="rows")
    model.fit(X[:100], y[:100], groups=np.arange(100) // 4)
    more, ones = by_hand(model, X, y, np.ones(120), np.arange(10, 100)), np.arange(10)
    model.update(X[100:], y[100:]).forget(ids=ones)
    assert_alike(model, more, X)


OTHERS = {
    "calibrated network that chose its penalties": EDRVFLClassifier(
        **{**NETWORK, **PAPER, "regularization": "loo"}, **DRAWN, pair_share=0.5, encoder="bins"
    ),
    "votes of layers": EDRVFLRegressor(**NETWORK, layer_votes="weighted"),
    "a prefix": EDRVFLRegressor(**NETWORK, layer_votes="prefix", readout="joint"),
    "kernel of classes": KernelRidgeClassifier(regularization=0.1, class_weight="balanced"),
    "kernel of values": KernelRidgeRegressor(kernel="product", encoder="ranks"),
    "portfolio of classes": ALL["class portfolio"],
    "portfolio of values": ALL["value portfolio"],
}


@settings(max_examples=15)
@given(data=st.data())
def test_a_kernel_is_the_one_of_all_rows(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    m, share = data.draw(st.integers(20, 90)), data.draw(st.sampled_from([0.0, 0.1, 0.5]))
    weights = rng.choice([0.4, 1.0, 30.0], m) if data.draw(st.booleans()) else np.ones(m)
    options = {
        "regularization": data.draw(st.sampled_from([0.03, 2.0])),
        "bandwidth": 1.0,
        "input_scaling": None,
    }
    options["kernel"] = data.draw(st.sampled_from(["laplace", "matern", "product", "additive"]))
    if data.draw(st.booleans()):
        X, y = noisy_rows(rng, m, 4)
        y[:3] = 0, 1, 2  # no class is new
        cost = data.draw(st.sampled_from([None, "balanced"]))
        model = KernelRidgeClassifier(**options, **UNCALIBRATED, class_weight=cost)
    else:
        X, y = noisy_values(rng, m, 4, data.draw(st.integers(1, 3)))
        model = KernelRidgeRegressor(**options, coverage_from=None)
    check_changes(model, X, y, weights, max(1, round(share * m)))


@pytest.mark.parametrize(("weighted", "n_new"), [(False, 1), (True, 55)])
@pytest.mark.parametrize("name", OTHERS)
def test_every_voter_is_the_one_of_all_rows(name, weighted, n_new):
    model = clone(OTHERS[name]).set_params(random_state=0)
    rng = np.random.default_rng(4)
    X, y = noisy_rows(rng, 110, 5) if is_classifier(model) else noisy_values(rng, 110, 5, 2)
    check_changes(model, X, y, rng.choice([0.5, 1.0, 2.0], 110) if weighted else np.ones(110), n_new)


@pytest.mark.parametrize("kernel", ["laplace", "product", "additive"])
def test_a_kernel_that_compares_categories_solves_the_system_of_all_rows(rng, kernel):
    X, y = noisy_values(rng, 120, 3)
    table = pd.DataFrame(X, columns=list("abc"))
    table["city"] = np.array(list("uvwxyz"))[rng.integers(0, 6, 120)]
    table.loc[110, "city"] = "a city that the fit did not see"
    model = KernelRidgeRegressor(kernel=kernel, encoder="loo", remember="rows").fit(table[:90], y[:90])
    model.update(table[90:], y[90:])
    model.forget(table[:15], y[:15])
    # y - score is lambda times the coefficient of the row, and no coefficients but one set do that
    voter, sd = model.model_.voter, model.memory_.sd
    rest = y[15:] - model.predict(table[15:])
    np.testing.assert_allclose(rest, (voter.lam * voter.alpha * sd)[:, 0], atol=1e-9)


@pytest.mark.parametrize("gone", [10, 95])  # or fewer rows are left than there are landmarks
def test_landmarks_stay_and_their_coefficients_are_those_of_all_rows(rng, gone):
    X, y = noisy_values(rng, 120, 4, 2)
    model = KernelRidgeRegressor(n_landmarks=30, random_state=0, remember="rows").fit(X[:100], y[:100])
    voter, memory = model.model_.voter, model.memory_
    model.update(X[100:], y[100:])
    assert "landmarks" in model.forget(X[:gone], y[:gone])

    def alike(E):
        return KERNELS["laplace"](np.abs(E[:, None] - voter.landmarks), voter.bandwidth, E.shape[1])

    K, M = alike(voter.inputs.apply(X[gone:])), alike(voter.landmarks)
    Y = (y[gone:] - memory.mean) / memory.sd
    root = np.sqrt(memory.voters[0].lams[0]) * np.linalg.cholesky(M).T
    alpha = np.linalg.lstsq(np.vstack([K, root]), np.vstack([Y, np.zeros((30, 2))]), rcond=None)[0]
    expected = alike(voter.inputs.apply(X)) @ alpha * memory.sd + memory.mean
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-9)


def test_of_parts_the_smallest_takes_new_rows_and_those_that_lose_rows_are_solved_again(rng, limit):
    limit(PART_ROWS={False: 60, True: 60}, MOST_ROWS={False: 150, True: 150}, LEAST_PART=10)
    X, y = noisy_rows(rng, 220, 3)
    weights = rng.choice([0.5, 1.0, 2.0], 220)
    given = {"bandwidth": 1.0, "regularization": 0.1, "input_scaling": None, "encoder": None}
    model = KernelRidgeClassifier(**given, **UNCALIBRATED, remember="rows").fit(
        X[:200], y[:200], weights[:200]
    )

    def assert_solved():
        """Each part solves its rows with the weights of all rows that they were drawn for."""
        voter, (kept,), rows = model.model_.voter, model.memory_.voters, model.memory_.rows
        scores = voter.prior
        for i, lam in enumerate(kept.lams):
            some = kept.part == i
            K = KERNELS["laplace"](np.abs(rows.X[some][:, None] - rows.X[some]), 1.0, 3)
            Y = np.eye(3)[rows.y[some]] - voter.prior
            alpha = np.linalg.solve(K + np.diag(lam / kept.counts[some]), Y) / len(kept.lams)
            scores = scores + KERNELS["laplace"](np.abs(X[:, None] - rows.X[some]), 1.0, 3) @ alpha
            assert kept.sizes[i] == some.sum()
        expected = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-9)
        assert model.n_landmarks_ == sum(kept.sizes)
        return kept

    kept = assert_solved()
    assert len(kept.sizes) == 3
    drawn = np.flatnonzero(kept.part >= 0)
    assert len(drawn) < 200
    model.forget(ids=np.append(drawn[kept.part[drawn] == 1][:9], np.flatnonzero(kept.part < 0)[:2]))
    assert np.argmin(assert_solved().sizes) == 1
    model.update(X[200:], y[200:], weights[200:])
    assert set(assert_solved().part[-20:]) == {1}


def test_an_iterated_system_meets_its_targets(rng):
    X, y = noisy_values(rng, 300, 3)
    model = KernelRidgeRegressor(bandwidth=1.0, regularization=0.1, encoder=None, remember="rows").fit(X, y)
    exact = model.forget(ids=[3, 4]) and model.predict(X)
    model.memory_ = replace(model.memory_, voters=(replace(model.memory_.voters[0], solver="iterated"),))
    model.update(X[3:5], y[3:5])
    model.forget(X[3:5], y[3:5])
    np.testing.assert_allclose(model.predict(X), exact, atol=5e-3)
    assert np.abs(model.predict(X) - exact).max() > 0


@pytest.mark.parametrize("name", ["class network, weighed", "value network, joint", "class kernel, smooth"])
def test_update_and_forget_of_the_same_rows_change_nothing(name):
    X, y = rows_for(name)
    model = clone(ALL[name]).set_params(remember="rows").fit(X[:60], y[:60])
    before = answer(model, X)
    for _ in range(3):
        model.update(X[50:], y[50:])  # some of them are copies
        model.forget(X[50:], y[50:])
    np.testing.assert_allclose(answer(model, X), before, atol=1e-12)


def test_a_thousand_updates_of_one_row_are_one_update(rng):
    X, y = noisy_values(rng, 1_100, 3)
    model = EDRVFLRegressor(n_layers=1, n_hidden=10, encoder=None, remember="sums").fit(X[:100], y[:100])
    at_once = copy.copy(model).update(X[100:], y[100:])
    solved = by_hand(model, X, y, np.ones(1_100), np.arange(100))
    for i in range(100, 1_100):
        model.update(X[i : i + 1], y[i : i + 1])
    assert_alike(model, solved, X)
    np.testing.assert_allclose(model.predict(X), at_once.predict(X), atol=1e-10)
    assert model.frozen_since_ == at_once.frozen_since_ == (1_000, 0)


@pytest.mark.parametrize("name", ["class network, weighed", "value kernel, given", "value portfolio"])
def test_single_precision_is_near(name):
    X, y = rows_for(name)
    X = X.astype(np.float32)
    model = clone(ALL[name]).set_params(remember="rows").fit(X[:50], y[:50])
    double = clone(ALL[name]).set_params(remember="rows").fit(X[:50].astype(float), y[:50])
    for one in (model, double):
        one.update(X[50:], y[50:])
        one.forget(ids=[4, 8])
    assert answer(model, X).dtype == np.float32
    np.testing.assert_allclose(answer(model, X), answer(double, X), atol=2e-2)


@pytest.mark.parametrize("library", ["torch", "array_api_strict"])
@pytest.mark.parametrize("name", ["class network, weighed", "value kernel, given"])
def test_arrays_of_other_libraries(name, library):
    xp = pytest.importorskip(library)
    X, y = rows_for(name)
    model = clone(ALL[name]).set_params(remember="rows").fit(X[:50], y[:50]).update(X[50:], y[50:])
    model.forget(X[:5], y[:5])
    with sklearn.config_context(array_api_dispatch=True):
        A, b = xp.asarray(X), xp.asarray(y)
        other = clone(model).fit(A[:50, :], b[:50]).update(A[50:, :], b[50:])
        other.forget(A[:5, :], b[:5])
        found = np.asarray(answer(other, A))
        assert type(answer(other, A)) is type(A)
    np.testing.assert_allclose(found, answer(model, X), atol=1e-8)


def test_blocks_of_rows_are_summed_and_take_further_rows(rng):
    X, y = noisy_rows(rng, 400, 4)
    weighed = EDRVFLClassifier(**{**NETWORK, **PAPER}, calibration=None, remember="sums")
    model = clone(weighed).fit(RowBlocks.from_arrays(X[:300], y[:300], rows=90))
    memory = clone(weighed).fit(X[:300], y[:300])
    for one in (model, memory):
        one.update(X[300:], y[300:])
        one.forget(X[310:320], y[310:320])
    np.testing.assert_allclose(model.predict_proba(X), memory.predict_proba(X), atol=1e-8)
    with pytest.raises(ValueError, match=r"equals no remembered row.*came in a RowBlocks"):
        model.forget(X[:1], y[:1])
    with pytest.raises(ValueError, match="RowBlocks, which is read block by block"):
        model.set_params(remember="rows").fit(RowBlocks.from_arrays(X, y, rows=90))


def test_a_portfolio_of_networks_keeps_sums_of_blocks_too(rng):
    X, y = noisy_rows(rng, 300, 4)
    members = [(name, member) for name, member in CLASS_MEMBERS if name != "kernel"]
    model = EDRVFLPortfolioClassifier(members=members, remember="sums", random_state=0)
    model.fit(RowBlocks.from_arrays(X[:200], y[:200], rows=90))
    before = model.predict_proba(X)
    model.update(X[200:], y[200:])
    assert np.abs(model.predict_proba(X) - before).max() > 0.01
    model.forget(X[200:], y[200:])
    np.testing.assert_allclose(model.predict_proba(X), before, atol=1e-9)


def test_what_is_kept_does_not_leave_by_onnx_or_move_to_a_device(noisy):
    pytest.importorskip("onnx")
    torch = pytest.importorskip("torch")
    X, y = noisy
    model = EDRVFLClassifier(**NETWORK, remember="rows").fit(X[:60], y[:60]).update(X[60:], y[60:])
    plain = edrvfl.to_onnx(copy.copy(model).set_params(remember=None)).SerializeToString()
    assert edrvfl.to_onnx(model).SerializeToString() == plain
    with sklearn.config_context(array_api_dispatch=True):
        moved = edrvfl.to_numpy(clone(model).fit(torch.asarray(X[:60]), torch.asarray(y[:60])))
    moved.update(X[60:], y[60:])
    np.testing.assert_allclose(moved.predict_proba(X), model.predict_proba(X), atol=1e-8)


# --- names, copies, weights ------------------------------------------------------------------------------


def test_rows_are_named_by_the_index_of_a_frame(rng):
    X, y = noisy_rows(rng, 80, 3)
    frame = pd.DataFrame(X, columns=list("abc"), index=[f"row {i}" for i in range(80)])
    model = EDRVFLClassifier(**NETWORK, remember="rows").fit(frame[:60], y[:60])
    other = clone(model).fit(frame[:60], y[:60])
    model.update(frame[60:], y[60:]).forget(ids=["row 3", "row 70"])
    other.update(frame[60:], y[60:]).forget(frame.iloc[[3, 70]], y[[3, 70]])
    np.testing.assert_array_equal(model.predict_proba(frame), other.predict_proba(frame))
    assert list(model.feature_names_in_) == list("abc")
    model.update(frame[:2], y[:2], ids=["person", "person"])
    model.forget(ids="person")  # all rows of a name
    assert model.memory_.rows.n_rows == 78


def test_copies_are_several_rows_and_weights_go_whole(rng):
    X, y = noisy_rows(rng, 60, 3)
    twice = np.r_[X, X[:6]], np.r_[y, y[:6]]
    once = EDRVFLClassifier(**NETWORK, remember="sums").fit(X, y)
    copied = clone(once).fit(*twice)
    weights = np.ones(60)
    weights[:6] = 2.0
    weighted = clone(once).fit(X, y, weights)
    np.testing.assert_allclose(weighted.predict_proba(X), copied.predict_proba(X), atol=1e-9)
    copied.forget(X[:3], y[:3])
    copied.forget(X[:3], y[:3])
    weighted.forget(X[:3], y[:3])
    np.testing.assert_allclose(weighted.predict_proba(X), copied.predict_proba(X), atol=1e-9)
    with pytest.raises(ValueError, match="Row 0 of X"):
        copied.forget(X[:1], y[:1])
    with pytest.raises(ValueError, match="Row 1 of X"):
        copied.forget(X[[3, 3, 3]][1:], np.r_[y[3], 1 - y[3]])


def test_rows_of_weight_zero_are_no_rows(rng):
    X, y = noisy_rows(rng, 60, 3)
    weights = (np.arange(60) % 5 > 0) * 1.0
    model = EDRVFLClassifier(**NETWORK, remember="rows").fit(X[:40], y[:40], weights[:40])
    model.update(X[40:], y[40:], weights[40:])
    assert model.memory_.rows.n_rows == 48
    np.testing.assert_array_equal(model.memory_.rows.ids[:4], [1, 2, 3, 4])
    with pytest.raises(ValueError, match="id 5"):
        model.forget(ids=[1, 5])
    before = model.predict_proba(X)
    assert model.forget(ids=[])
    with pytest.raises(ValueError, match="zero"):
        model.update(X, y, np.zeros(60))
    np.testing.assert_array_equal(model.predict_proba(X), before)


def test_rows_that_were_held_back_are_no_rows(rng):
    X, y = noisy_rows(rng, 200, 3)
    model = EDRVFLClassifier(**NETWORK, coverage_from="split", remember="rows").fit(X, y)
    known = model.memory_.rows
    assert known.n_rows == 160
    np.testing.assert_array_equal(known.X, X[known.ids])
    np.testing.assert_array_equal(known.y, y[known.ids])


# --- what one is told ------------------------------------------------------------------------------------


def test_drift_tells_when_rows_become_others(rng):
    X, y = noisy_rows(rng, 600, 4)
    model = EDRVFLClassifier(**NETWORK, remember="sums").fit(X[:300], y[:300])
    assert model.drift_ is None
    assert model.frozen_since_ == (0, 0)
    P = model.predict_proba(X[300:400])
    own = -np.log(P[np.arange(100), y[300:400]]).mean()
    model.update(X[300:400], y[300:400])
    np.testing.assert_allclose(model.drift_, own / model.loo_log_losses_[-1])
    assert 0.7 < model.drift_ < 1.3
    model.update(X[400:], (y[400:] + 1) % 3)
    assert model.drift_ > 2
    model.forget(X[400:], (y[400:] + 1) % 3)  # what went tells nothing any more
    np.testing.assert_allclose(model.drift_, own / model.loo_log_losses_[-1])


def test_drift_of_values_is_of_squared_errors(rng):
    X, y = noisy_values(rng, 400, 4, 2)
    model = KernelRidgeRegressor(remember="rows").fit(X[:300], y[:300])
    errors = (model.predict(X[300:]) - y[300:]) / y[:300].std(axis=0)
    model.update(X[300:], y[300:])
    np.testing.assert_allclose(model.drift_, (errors**2).mean() / (1 - model.loo_r2_score_))


@pytest.mark.parametrize(
    ("model", "value"),
    [
        (EDRVFLClassifier(**NETWORK), "sums"),
        (KernelRidgeClassifier(), "rows"),
        (ALL["class portfolio"], "rows"),
    ],
)
def test_without_a_memory_an_error_says_what_to_set(noisy, model, value):
    model = clone(model).fit(*noisy)
    for verb in (model.update, model.forget):
        with pytest.raises(ValueError, match=f'remember=None. Fit it again with remember="{value}"'):
            verb(*noisy)
    assert model.frozen_since_ == (0, 0)
    assert model.drift_ is None


WRONG = {
    "the class 7": lambda m, X, y: m.update(X[:3], np.full(3, 7)),
    "inconsistent numbers": lambda m, X, y: m.update(X[:3], y[:2]),
    "has 2 features": lambda m, X, y: m.update(X[:3, :2], y[:3]),
    "equals no remembered row": lambda m, X, y: m.forget(X[:3], (y[:3] + 1) % 3),
    "the id 99": lambda m, X, y: m.forget(ids=[1, 99]),
    "the id 'a'": lambda m, X, y: m.forget(ids=["1", "a"]),
    "missing value in place 1": lambda m, X, y: m.update(X[:2], y[:2], ids=["a", None]),
    "missing value in place 0": lambda m, X, y: m.forget(ids=[np.nan]),
    "leave no row": lambda m, X, y: m.forget(X, y),
    "give one of both": lambda m, X, y: m.forget(X),
    "by their ids: give": lambda m, X, y: m.forget(X, y, ids=[1]),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_change_that_fails_changes_nothing(noisy, wrong):
    X, y = noisy
    model = EDRVFLClassifier(**NETWORK, remember="rows").fit(X, y)
    before = vars(model).copy()
    with pytest.raises(ValueError, match=wrong):
        WRONG[wrong](model, X, y)
    assert vars(model) == before


def test_forgetting_twice_is_an_error(noisy):
    X, y = noisy
    model = EDRVFLClassifier(**NETWORK, remember="rows").fit(X, y)
    model.forget(ids=[4])
    for again in ({"ids": [4]}, {"X": X[4:5], "y": y[4:5]}):
        with pytest.raises(ValueError, match="forgotten before"):
            model.forget(**again)


def test_sums_know_no_ids_and_outputs_are_as_many_as_before(rng):
    X, y = noisy_values(rng, 60, 3, 2)
    model = EDRVFLRegressor(**NETWORK, remember="sums").fit(X, y)
    with pytest.raises(ValueError, match="no rows that an id could name"):
        model.forget(ids=[1])
    with pytest.raises(ValueError, match="got 1 outputs in y, and the fit had 2"):
        model.update(X[:2], y[:2, 0])


def test_members_that_cannot_change_are_refused_by_name(noisy):
    tree = EDRVFLPortfolioClassifier(members=[*CLASS_MEMBERS[1:2], ("oak", DecisionTreeClassifier())])
    with pytest.raises(ValueError, match=r"'oak' is a DecisionTreeClassifier.*remember=None"):
        tree.set_params(remember="rows").fit(*noisy)
    with pytest.raises(ValueError, match=r"'kernel' is a KernelRidgeClassifier.*remember=\"rows\""):
        clone(ALL["class portfolio"]).set_params(remember="sums").fit(*noisy)
    with pytest.raises(ValueError, match="Member 'n' sets remember"):
        EDRVFLPortfolioClassifier(members=[("n", EDRVFLClassifier(remember="rows"))]).fit(*noisy)


# --- what is saved ---------------------------------------------------------------------------------------


def assert_nowhere(content, numbers):
    """No number of a row is in the bytes, in either precision, nor as text."""
    for number in np.ravel(numbers):
        for form in (
            np.float64(number).tobytes(),
            np.float32(number).tobytes(),
            repr(float(number)).encode(),
        ):
            assert form not in content


@pytest.mark.parametrize(
    "estimator",
    [
        EDRVFLClassifier(**NETWORK, encoder="standard"),
        KernelRidgeClassifier(encoder="standard"),
        EDRVFLPortfolioClassifier(
            members=[(n, m.set_params(encoder="standard", **({"pair_share": 0.0} if n == "dense" else {})))
                     for n, m in [(n, clone(m)) for n, m in CLASS_MEMBERS]], random_state=0
        ),
    ],
    ids=["network", "kernel", "portfolio"],
)  # fmt: skip
def test_a_file_does_not_hold_what_was_forgotten(rng, estimator, tmp_path):
    X, y = noisy_rows(rng, 90, 4)
    model = clone(estimator).set_params(remember="rows").fit(X, y)
    middle = np.flatnonzero((np.abs(X) < np.abs(X).max(axis=0)).all(axis=1))[:5]  # no largest values, a scale
    model.save(tmp_path / "before.edrvfl")
    content = (tmp_path / "before.edrvfl").read_bytes()
    with pytest.raises(AssertionError):
        assert_nowhere(content, X[middle])
    encoded = np.concatenate([inputs.apply(X[middle]) for inputs in model._model.encodings()], axis=1)
    frozen = model.forget(ids=middle)
    assert any("scale of columns" in name for name in frozen)
    model.update(X[middle[:1]] + 0.5, y[middle[:1]])
    model.forget(X[middle[:1]] + 0.5, y[middle[:1]])
    model.save(tmp_path / "after.edrvfl")
    content = (tmp_path / "after.edrvfl").read_bytes()
    assert_nowhere(content, X[middle])
    assert_nowhere(content, encoded)
    assert_nowhere(content, X[middle[:1]] + 0.5)


@pytest.mark.parametrize("name", ["class network, weighed", "value kernel, given", "value portfolio"])
def test_a_model_from_a_file_goes_on_where_it_was(name, tmp_path):
    X, y = rows_for(name)
    model = clone(ALL[name]).set_params(remember="rows").fit(X[:50], y[:50]).update(X[50:55], y[50:55])
    model.save(tmp_path / "model.edrvfl")
    again = edrvfl.load(tmp_path / "model.edrvfl")
    assert again.drift_ == model.drift_
    assert again.frozen_since_ == model.frozen_since_
    for one in (model, again):
        one.forget(ids=[2, 51])
        one.update(X[55:], y[55:])
    np.testing.assert_array_equal(answer(again, X), answer(model, X))
