"""Networks in a stack are the networks trained alone; both are what a plain loop with autograd makes."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from edrvfl.bench.baselines.fnn import FNNClassifier, fit_together
from edrvfl.bench.baselines.fnn.networks import BUILDERS, Sizes, draw_layers
from edrvfl.bench.baselines.fnn.training import Job, Recipe, Rows, group_jobs, train_jobs

torch = pytest.importorskip("torch")

from plain_training import splitmix64, train_plainly, uniform  # noqa: E402  these import torch

from edrvfl.bench.baselines.fnn import stack  # noqa: E402

CPU = torch.device("cpu")
ARCHITECTURES = ("snn", "msra", "highway", "resnet")


# --- jobs ------------------------------------------------------------------------------------------------

PLAIN = Recipe(learning_rate=0.05, dropout=0.0, batch_size=8, epochs=7, patience=20)


def make_rows(seed, m=27, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 5))
    y = (X @ rng.standard_normal((5, 3)) + noise * rng.standard_normal((m, 3))).argmax(1)
    return Rows(torch.asarray(X), torch.asarray(y))


def make_job(architecture, rows, held_out, *, depth=2, seed=0, recipe=PLAIN, units=6, **form):
    sizes = Sizes(5, 3, depth, units, **form)
    design = BUILDERS[architecture](sizes)
    layers = draw_layers(design.plan, torch.Generator().manual_seed(seed))
    wide = [(W.double(), b.double()) for W, b in layers]
    return Job((architecture, sizes), design, wide, rows, held_out, recipe, 100 + seed, 200 + seed)


def varied_jobs(architecture, **form):
    """Different depths, rates, dropout, rows, batch sizes and seeds; one diverges, one stops early."""
    few, many, held, other = make_rows(0, 19), make_rows(1, 27), make_rows(2, 11), make_rows(3, 8)
    noise = make_rows(4, 20, noise=30)

    def job(rows, held_out, depth, seed, **recipe):
        recipe = dataclasses.replace(PLAIN, **recipe)
        return make_job(architecture, rows, held_out, depth=depth, seed=seed, recipe=recipe, **form)

    return [
        job(few, held, 2, 0, learning_rate=0.3),
        job(many, held, 4, 0, dropout=0.3, batch_size=9),
        job(many, held, 2, 0, dropout=0.05),
        job(noise, other, 2, 1, dropout=0.5, learning_rate=0.5, patience=1, epochs=9),
        job(few, held, 2, 1, learning_rate=1e200),
        job(many, held, 4, 1, epochs=3),
        job(noise, other, 4, 2, dropout=0.3, learning_rate=0.01, epochs=11),
    ]


def assert_same(one, other, tolerance=1e-9):
    assert (one.epoch, one.diverged) == (other.epoch, other.diverged)
    for found, expected in ((one.losses, other.losses), (one.validation_losses, other.validation_losses)):
        assert len(found) == len(expected)
        finite = len(found) - one.diverged  # whether the last loss is infinite or NaN depends on the device
        np.testing.assert_allclose(found[:finite], expected[:finite], rtol=tolerance)
    for a, b in zip(flat(one), flat(other), strict=True):
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


def flat(trained):
    return [p for layer in trained.layers for p in layer]


FORMS = {
    **{name: (name, {}) for name in ARCHITECTURES},
    "conic": ("snn", {"form": "conic"}),
    "diavolo": ("resnet", {"form": "diavolo", "block_layers": 3}),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("hold_out", [True, False])
def test_a_network_in_a_stack_is_the_one_trained_alone_and_the_one_of_a_plain_loop(form, hold_out):
    architecture, parameters = FORMS[form]
    jobs = varied_jobs(architecture, **parameters)
    if not hold_out:
        jobs = [dataclasses.replace(job, held_out=None) for job in jobs]
    together = train_jobs(jobs, CPU)
    assert any(t.diverged for t in together)
    if hold_out:
        assert len(together[3].losses) < jobs[3].recipe.epochs, "stops early"
    for job, found in zip(jobs, together, strict=True):
        (alone,) = train_jobs([job], CPU)
        assert_same(found, alone)
        kept, epoch, losses, validation, diverged = train_plainly(job)
        assert (found.epoch, found.diverged) == (epoch, diverged)
        if not diverged:
            np.testing.assert_allclose(found.losses, losses, rtol=1e-9)
            np.testing.assert_allclose(found.validation_losses, validation, rtol=1e-9)
        for ours, plain in zip(flat(found), kept, strict=True):
            torch.testing.assert_close(ours, plain, rtol=1e-9, atol=1e-9)


def test_networks_of_the_same_rows_may_hold_out_different_ones():
    rows = make_rows(0)
    jobs = [make_job("snn", rows, make_rows(seed, m)) for seed, m in ((1, 9), (2, 6))]
    for job, found in zip(jobs, train_jobs(jobs, CPU), strict=True):
        (alone,) = train_jobs([job], CPU)
        assert_same(found, alone)


def test_a_row_that_only_fills_up_the_held_out_rows_does_no_harm():
    """Such a row is 0. This network overflows there, and for none of its own rows."""
    rows = Rows(torch.full((8, 5), 1e200, dtype=torch.float64), torch.arange(8) % 3)
    held = Rows(rows.X[:4], rows.y[:4])
    more = make_job("msra", rows, Rows(rows.X[:6], rows.y[:6]), seed=1)
    job = make_job("msra", rows, held)
    wide = {"dtype": torch.float64}
    first = torch.full((5, 6), -1e105, **wide), torch.full((6,), 1e300, **wide)
    last = torch.full((6, 3), 1e10, **wide), torch.zeros(3, **wide)
    fragile = [first, *job.layers[1:-1], last]
    for one in train_jobs([dataclasses.replace(j, layers=fragile) for j in (job, more)], CPU):
        assert not one.diverged


def test_jobs_are_not_changed_and_their_seconds_are_shares():
    jobs = varied_jobs("highway")
    before = [[p.clone() for layer in job.layers for p in layer] for job in jobs]
    trained = train_jobs(jobs, CPU)
    for job, old in zip(jobs, before, strict=True):
        assert all(torch.equal(p, q) for p, q in zip((p for l in job.layers for p in l), old, strict=True))
    assert all(t.seconds > 0 for t in trained)
    assert trained[1].seconds > trained[2].seconds, "deeper, and as many epochs"


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_step_without_rows_changes_no_weight(architecture):
    """A network that has no batch left takes such steps beside its neighbours."""
    first, *others = varied_jobs(architecture)
    jobs = [first, *(job for job in others if job.kind == first.kind)]
    made = stack.Stack(jobs, [job.layers for job in jobs], CPU)
    before = [p.detach().clone() for layer in made.layers for p in layer]
    for rows, changed in ((-1, False), (0, True)):
        made._descend(torch.full((len(jobs), 3), rows), None)
        after = [p.detach() for layer in made.layers for p in layer]
        assert any(torch.equal(p, q) for p, q in zip(before, after, strict=True)) is not changed


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_stacks_on_a_gpu_are_those_of_the_processor():
    jobs = [job for form, parameters in FORMS.values() for job in varied_jobs(form, **parameters)]
    for found, expected in zip(train_jobs(jobs, torch.device("cuda")), train_jobs(jobs, CPU), strict=True):
        on_host = [(W.cpu(), b.cpu()) for W, b in found.layers]
        assert_same(dataclasses.replace(found, layers=on_host), expected, 1e-8)


# --- draws -----------------------------------------------------------------------------------------------


def test_draws_are_those_of_splitmix64():
    known = (0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F)  # of the seed 0
    assert tuple(splitmix64(0, i) for i in (1, 2, 3)) == known
    seeds, shape = (7, 2**63 - 1), (4, 5)
    keys = torch.from_numpy(np.stack([stack.stream_keys(seed, 6, 2) for seed in seeds]))
    for step, place, (s, seed) in itertools.product((0, 9), range(2), enumerate(seeds)):
        found = stack.draw(keys[:, place], step, *shape)[s] / 2**24
        assert torch.equal(found, uniform(seed, 6, place, step, shape))


def test_draws_are_uniform_and_neighbours_are_not_alike():
    keys = torch.from_numpy(np.stack([stack.stream_keys(seed, 1, 2) for seed in (1, 2)]))
    # by step, place, seed, row and neuron
    drawn = [[stack.draw(keys[:, place], step, 100, 200) for place in (0, 1)] for step in (0, 1)]
    first, second = (torch.stack(places) / 2**24 for places in drawn)
    uniforms = torch.cat([first.flatten(), second.flatten()]).numpy()
    counts = np.histogram(uniforms, bins=50, range=(0, 1))[0]
    assert ((counts - len(uniforms) / 50) ** 2 / (len(uniforms) / 50)).sum() < 86, (
        "chi-squared with 49 degrees, 0.1 %"
    )
    a = first[0, 0]
    for b in (second[0, 0], first[1, 0], first[0, 1], a.roll(1, 0), a.roll(1, 1)):
        assert abs(np.corrcoef(a.flatten(), b.flatten())[0, 1]) < 0.025


# --- grouping --------------------------------------------------------------------------------------------


@given(
    choices=st.lists(
        st.tuples(st.sampled_from(ARCHITECTURES), st.integers(1, 4), st.sampled_from([3, 6])), max_size=12
    ),
    networks=st.integers(1, 5),
)
def test_every_job_is_in_one_stack_with_its_kind_and_a_stack_fits(choices, networks):
    rows = make_rows(0, 6)
    jobs = [make_job(a, rows, None, depth=d, units=n) for a, d, n in choices]
    memory = networks * max((job.bytes for job in jobs), default=1)
    stacks = group_jobs(jobs, memory)
    assert sorted(i for places in stacks for i in places) == list(range(len(jobs)))
    for places in stacks:
        assert len({jobs[i].kind for i in places}) == 1
        assert sum(jobs[i].bytes for i in places) <= memory
    assert len(group_jobs(jobs, 1 << 40)) == len({job.kind for job in jobs})


def test_networks_share_a_stack_only_at_one_depth_and_a_large_one_is_alone():
    rows = make_rows(0)
    jobs = [make_job("snn", rows, None, depth=d) for d in (2, 3, 2)]
    assert group_jobs(jobs, 1 << 30) == [[0, 2], [1]]
    assert group_jobs(jobs, 1) == [[0], [2], [1]]


# --- classifiers -----------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:The training diverged:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_classifiers_fitted_together_are_those_fitted_alone(architecture):
    X, y = load_iris(return_X_y=True)
    parts = [(X[::2], y[::2]), (X[:130], y[:130]), (X[10:], np.array(["a", "b", "c"])[y[10:]])]
    base = FNNClassifier(architecture, n_units=12, max_epochs=6)
    grid = itertools.product((1, 3), (0.0, 0.2), (0, 1), range(3))
    models = [clone(base).set_params(n_layers=l, dropout=r, random_state=s) for l, r, s, _ in grid]
    rows = [parts[i % 3] for i in range(len(models))]
    alone = [clone(model).fit(*part) for model, part in zip(models, rows, strict=True)]
    fitted, seconds = fit_together(models, rows)
    assert fitted == models
    assert min(seconds) > 0
    for one, other, (A, _) in zip(fitted, alone, rows, strict=True):
        assert one.n_epochs_ == other.n_epochs_
        assert one.classes_.tolist() == other.classes_.tolist()
        np.testing.assert_allclose(one.losses_, other.losses_, rtol=1e-4)
        np.testing.assert_allclose(one.predict_proba(A), other.predict_proba(A), rtol=1e-3, atol=1e-4)


def test_of_classifiers_fitted_together_the_one_that_diverges_is_told():
    X, y = load_iris(return_X_y=True)
    models = [FNNClassifier("resnet", learning_rate=r, max_epochs=2, random_state=0) for r in (0.01, 1e9)]
    with pytest.warns(ConvergenceWarning, match="learning_rate=1000000000.0") as told:
        fit_together(models, [(X, y), (X, y)])
    assert len(told) == 1


def test_parameters_are_checked_before_classifiers_are_fitted_together():
    with pytest.raises(ValueError, match="The 'dropout' parameter"):
        fit_together([FNNClassifier(dropout=1.0)], [([[0.0], [1.0]], [0, 1])])
