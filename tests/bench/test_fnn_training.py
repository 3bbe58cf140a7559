"""The trainer of the four networks against torch's own layers and optimiser, and what it draws."""

import dataclasses
import itertools

import numpy as np
import pytest

from edrvfl.bench.baselines.fnn.networks import BUILDERS, SELU_FLOOR, Sizes, draw_layers
from edrvfl.bench.baselines.fnn.training import Job, Rows, draw, splitmix64, train

torch = pytest.importorskip("torch")
F = torch.nn.functional
CPU = torch.device("cpu")
FORMS = {
    **{name: (name, {}) for name in BUILDERS},
    "conic": ("snn", {"form": "conic"}),
    "diavolo": ("resnet", {"form": "diavolo", "block_layers": 3}),
}


def make_rows(seed, m):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 5))
    return Rows(torch.asarray(X), torch.asarray((X @ rng.standard_normal((5, 3))).argmax(1)))


def make_job(form, **changes):
    architecture, parameters = FORMS[form]
    design = BUILDERS[architecture](Sizes(5, 3, 2, 6, **parameters))
    drawn = draw_layers(design.plan, torch.Generator().manual_seed(0))
    layers = [(W.double(), b.double()) for W, b in drawn]
    job = Job(design, layers, make_rows(0, 27), make_rows(1, 11), 0.05, 0.0, 8, 4, 20, 100, 200)
    return dataclasses.replace(job, **changes)


def logits_of(form, layers, x, drop):
    """The networks in torch's functions."""
    architecture, parameters = FORMS[form]
    *hidden, readout = [lambda h, W=W, b=b: F.linear(h, W.T, b) for W, b in layers]
    if architecture in ("snn", "msra"):
        for f in hidden:
            x = drop((F.selu if architecture == "snn" else F.relu)(f(x)))
        return readout(x)
    stem, *hidden = hidden
    x = F.relu(stem(x))
    size = parameters.get("block_layers", 2)
    for block in (hidden[i : i + size] for i in range(0, len(hidden), size)):
        if architecture == "highway":
            T = torch.sigmoid(block[1](x))
            x = T * drop(F.relu(block[0](x))) + (1 - T) * x
        else:
            f = x
            for one in block[:-1]:
                f = drop(F.relu(one(f)))
            x = F.relu(x + block[-1](f))
    return readout(x)


def uniform(seed, epoch, place, step, shape):
    """What a network draws for one of its dropouts in a step."""
    key = splitmix64(splitmix64(seed, epoch), place)
    counters = [[((step << 20) + r << 20) + j + 1 for j in range(shape[1])] for r in range(shape[0])]
    return torch.tensor([[(splitmix64(key, i) >> 40) / 2**24 for i in row] for row in counters])


def train_plainly(form, job):
    """Train for all epochs with torch's optimiser; return parameters, losses and validation losses."""
    parameters = [p.clone().requires_grad_() for layer in job.layers for p in layer]
    optimiser = torch.optim.SGD(parameters, lr=job.learning_rate)
    g = torch.Generator().manual_seed(job.batch_seed)
    losses, validation = [], []
    for epoch in range(1, job.epochs + 1):
        total = 0.0
        for step, batch in enumerate(torch.randperm(27, generator=g).split(job.batch_size)):
            places = itertools.count(1)

            def drop(h, step=step, places=places, epoch=epoch):
                kept = uniform(job.dropout_seed, epoch, next(places), step, h.shape) >= job.dropout
                if FORMS[form][0] != "snn":
                    return h * kept / (1 - job.dropout)
                a = (1 - job.dropout + SELU_FLOOR**2 * job.dropout * (1 - job.dropout)) ** -0.5
                return a * torch.where(kept, h, SELU_FLOOR) - a * job.dropout * SELU_FLOOR

            layers = list(zip(parameters[::2], parameters[1::2], strict=True))
            loss = F.cross_entropy(logits_of(form, layers, job.rows.X[batch], drop), job.rows.y[batch])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            total += loss.item() * len(batch)
        losses.append(total / 27)
        answers = logits_of(form, layers, job.held_out.X, lambda h: h)
        validation.append(F.cross_entropy(answers, job.held_out.y).item())
    return parameters, losses, validation


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("form", FORMS)
def test_the_trainer_does_what_torchs_optimiser_does(form, dropout):
    job = make_job(form, dropout=dropout)
    parameters, losses, validation = train_plainly(form, job)
    held = train(job, CPU)
    np.testing.assert_allclose(held.losses, losses, rtol=1e-9)
    np.testing.assert_allclose(held.validation_losses, validation, rtol=1e-9)
    last = train(dataclasses.replace(job, held_out=None), CPU)
    assert (last.epoch, last.diverged, last.validation_losses) == (job.epochs, False, [])
    for ours, plain in zip((p for layer in last.layers for p in layer), parameters, strict=True):
        torch.testing.assert_close(ours, plain.detach(), rtol=1e-9, atol=1e-9)


def test_the_layers_of_a_job_stay_as_they_are_and_come_back_if_the_first_epoch_diverges():
    job = make_job("msra", learning_rate=1e200)
    before = [p.clone() for layer in job.layers for p in layer]
    trained = train(job, CPU)
    assert (trained.diverged, trained.epoch, len(trained.losses)) == (True, 0, 1)
    for layers in (job.layers, trained.layers):
        assert all(torch.equal(p, q) for p, q in zip((p for l in layers for p in l), before, strict=True))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("form", FORMS)
def test_a_gpu_trains_what_the_processor_trains(form):
    job = make_job(form, dropout=0.3)
    found, expected = train(job, torch.device("cuda")), train(job, CPU)
    assert found.epoch == expected.epoch
    np.testing.assert_allclose(found.losses, expected.losses, rtol=1e-8)
    for ours, other in zip(found.layers, expected.layers, strict=True):
        torch.testing.assert_close(ours[0].cpu(), other[0], rtol=1e-8, atol=1e-8)


# --- draws -----------------------------------------------------------------------------------------------


def test_draws_are_those_of_splitmix64():
    known = (0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F)  # of the seed 0
    assert tuple(splitmix64(0, i) for i in (1, 2, 3)) == known
    for step, place, seed in itertools.product((0, 9), (1, 2), (7, 2**63 - 1)):
        key = splitmix64(splitmix64(seed, 6), place)
        found = draw(key, step, torch.empty(4, 5)) / 2**24
        assert torch.equal(found, uniform(seed, 6, place, step, (4, 5)))


def test_draws_are_uniform_and_neighbours_are_not_alike():
    a, *others = (
        draw(splitmix64(splitmix64(seed, 1), place), step, torch.empty(200, 200)) / 2**24
        for seed, place, step in ((1, 1, 0), (1, 1, 1), (1, 2, 0), (2, 1, 0))
    )
    counts = np.histogram(torch.stack([a, *others]), bins=50, range=(0, 1))[0]
    expected = counts.sum() / 50
    assert ((counts - expected) ** 2 / expected).sum() < 86, "chi-squared with 49 degrees, 0.1 %"
    for b in (*others, a.roll(1, 0), a.roll(1, 1)):
        assert abs(np.corrcoef(a.flatten(), b.flatten())[0, 1]) < 0.025
