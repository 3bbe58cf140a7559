"""Many networks at once: each is the network fitted alone."""

import numpy as np
import pytest
from conftest import to_host
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from edrvfl import _network, _paths, _readout
from edrvfl._network import Settings, fit, layer_scores
from edrvfl._paths import Draws, path_scores
from edrvfl._readout import ridge, ridge_path


def problem(seed, m, d=4):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d))
    y = np.digitize(X[:, 0] + X[:, 1] * X[:, 2] + 0.8 * rng.standard_normal(m), [-0.6, 0.6])
    return X, y, rng.standard_normal((9, d)), rng


def alone(settings, index):
    """The Settings of one network of a stack."""

    def of(value):
        return float(np.asarray(value)[index[:-1]])

    return Settings(
        n_layers=settings.n_layers,
        n_hidden=settings.n_hidden,
        activation=settings.activation,
        renormalize=settings.renormalize,
        lam=float(settings.lam[index]),
        gamma=of(settings.gamma),
        alpha=of(settings.alpha),
        omega_r=float(settings.omega_r[index]),
        p=of(settings.p),
        weight_from=settings.weight_from,
    )


def decided(X, y, X_new, settings, fitted, loo):
    """Whether no label and no pruning cut hangs on a difference that rounding could turn."""
    clear = True
    for scores in (to_host(layer_scores(fitted.network, X)), *loo):
        top = np.sort(scores, axis=-1)
        clear &= (top[..., -1] - top[..., -2]).min() > 1e-6
    cut = int(settings.p * settings.n_hidden + 1e-9)
    for layer in fitted.network.layers:
        theta = np.sort(np.abs(to_host(layer.beta)[: settings.n_hidden]).sum(axis=-1))
        clear &= cut == 0 or theta[cut] - theta[cut - 1] > 1e-6
    return clear


def seen(readout, loo):
    """The read-out, its leave-one-out scores noted."""
    if readout.loo is not None:
        loo.append(to_host(readout.loo))
    return readout


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("side_by_side", [False, True], ids=["one by one", "as a stack"])
@given(data=st.data())
def test_every_network_is_the_one_fitted_alone(library, side_by_side, data):
    asarray = pytest.importorskip("torch").asarray if library == "torch" else np.asarray
    m, n = data.draw(st.integers(20, 70)), data.draw(st.integers(2, 90))
    X, y, X_new, rng = problem(data.draw(st.integers(0, 2**31)), m)
    assume(len(np.unique(y)) == 3)
    weighted, weighting = data.draw(st.booleans()), data.draw(st.booleans())
    s = rng.integers(1, 4, m).astype(float) if weighted else None
    cost = np.where(y == 1, 2.0, 1.0) if data.draw(st.booleans()) else None
    f, r = (data.draw(st.integers(1, 3)) if side_by_side else None), data.draw(st.integers(1, 4))
    stack = () if f is None else (f,)
    rate = data.draw(st.sampled_from([0.0, 0.3, 0.9]))
    settings = Settings(
        n_layers=3,
        n_hidden=n,
        activation=data.draw(st.sampled_from(["relu", "sigmoid"])),
        renormalize=data.draw(st.booleans()),
        lam=2.0 ** rng.uniform(-3, 6, (*stack, r))
        * (rng.random((*stack, r)) > data.draw(st.sampled_from([0, 0.2]))),
        gamma=rng.uniform(0.5, 2, stack) if stack else 1.3,
        alpha=rng.uniform(-1, 1, stack) if stack else -0.4,
        omega_r=rng.uniform(0.1, 1, (*stack, r)) if weighting else np.ones((*stack, r)),
        p=np.full(stack, rate) if stack else rate,
        weight_from=data.draw(st.sampled_from(["train", "loo"])),
    )
    arrays = [asarray(a) for a in (X, y, X_new)]
    weights = {name: None if w is None else asarray(w) for name, w in (("s", s), ("cost", cost))}
    with pytest.MonkeyPatch.context() as patch:
        for module in (_paths, _readout):
            patch.setattr(module, "on_accelerator", lambda _: side_by_side)
        scores = path_scores(
            arrays[0], arrays[1], 3, arrays[2], settings, Draws(5, 4, n, arrays[0]), **weights
        )
    assert scores.shape == (*stack, r, 3, 9, 3)
    for index in np.ndindex((*stack, r)):
        one = alone(settings, index)
        loo = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_network, "ridge", lambda *args, loo=loo: seen(ridge(*args), loo))
            fitted = fit(arrays[0], arrays[1], 3, one, 5, **weights)
        assert len(loo) == 2 * one.weighs_by_loo
        assume(decided(arrays[0], y, X_new, one, fitted, loo))
        expected = to_host(layer_scores(fitted.network, arrays[2]))
        np.testing.assert_allclose(to_host(scores[index]), expected, atol=1e-8)


@pytest.mark.parametrize("shape", [(40, 9), (9, 40)], ids=["primal", "dual"])
@pytest.mark.parametrize("weights", ["none", "two levels", "two levels and base"])
def test_a_path_is_one_ridge_after_another(xp, rng, shape, weights):
    D, Y = rng.standard_normal(shape), rng.standard_normal((shape[0], 2))
    lam = np.array([0.1, 1.0, 30.0])
    omega = np.where(rng.random((3, shape[0])) < 0.3, 1.7, 0.6) if weights != "none" else None
    base = rng.uniform(0.5, 2, shape[0]) if "base" in weights else None
    path = ridge_path(
        xp.asarray(D),
        xp.asarray(Y),
        lam,
        None if omega is None else xp.asarray(omega),
        None if base is None else xp.asarray(base),
    )
    for i in range(3):
        w = np.ones(shape[0]) * (1 if omega is None else omega[i]) * (1 if base is None else base)
        expected = Ridge(alpha=lam[i], fit_intercept=False, solver="svd").fit(D, Y, w).coef_.T
        np.testing.assert_allclose(to_host(path.beta)[i], expected, atol=1e-8)


def test_draws_are_made_once():
    like = np.zeros(1)
    draws = Draws(3, 4, 6, like)
    assert draws(2)[0] is draws(2)[0]
    assert draws(0)[0].shape == (4, 6)
    assert draws(1)[0].shape == (10, 6)


def test_overflow_is_an_error():
    X, y, X_new, _ = problem(0, 40)
    settings = Settings(2, 8, "relu", False, np.array([1.0, 2.0]), 1.0, 0.0, np.ones(2), 0.0)
    with pytest.raises(ValueError, match="overflow float64"):
        path_scores(X * 1e200, y, 3, X_new, settings, Draws(0, 4, 8, X), standardize=False)
