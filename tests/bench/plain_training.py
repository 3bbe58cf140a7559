"""The oracle of the stacks: one network, trained in plain steps with autograd."""

import itertools

import numpy as np
import torch

from edrvfl.bench.baselines.fnn.networks import SELU_FLOOR
from edrvfl.bench.baselines.fnn.training import SMOOTHING

F = torch.nn.functional
MASK = (1 << 64) - 1


def splitmix64(key, i):
    """Output number i, from 1, of the generator that starts at `key`, as its authors print it."""
    z = (key + i * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def uniform(seed, epoch, place, step, shape):
    """What a network draws for one of its dropouts in a step."""
    key = splitmix64(splitmix64(seed, epoch), place + 1)
    rows, neurons = shape
    counters = [[((step << 20) + r << 20) + j + 1 for j in range(neurons)] for r in range(rows)]
    return torch.tensor([[(splitmix64(key, i) >> 40) / 2**24 for i in row] for row in counters])


def logits_of(job, layers, x, drop):
    architecture, sizes = job.kind
    linear = [(lambda h, W=W, b=b: F.linear(h, W.T, b)) for W, b in layers]
    *hidden, readout = linear
    if architecture in ("snn", "msra"):
        g = F.selu if architecture == "snn" else F.relu
        for f in hidden:
            x = drop(g(f(x)))
        return readout(x)
    stem, *hidden = hidden
    x = F.relu(stem(x))
    if architecture == "highway":
        for transform, gate in zip(hidden[::2], hidden[1::2], strict=True):
            T = torch.sigmoid(gate(x))
            x = T * drop(F.relu(transform(x))) + (1 - T) * x
    else:
        for i in range(0, len(hidden), sizes.block_layers):
            *inner, last = hidden[i : i + sizes.block_layers]
            f = x
            for one in inner:
                f = drop(F.relu(one(f)))
            x = F.relu(x + last(f))
    return readout(x)


def dropped(h, uniforms, rate, *, alpha):
    if not alpha:
        return h * (uniforms >= rate) / (1 - rate)
    a = (1 - rate + SELU_FLOOR**2 * rate * (1 - rate)) ** -0.5
    return a * torch.where(uniforms >= rate, h, SELU_FLOOR) - a * rate * SELU_FLOOR


def train_plainly(job):
    """Return the kept layers, their epoch, both lists of losses and whether it diverged."""
    r, X, y = job.recipe, job.rows.X, job.rows.y
    layers = [(W.clone().requires_grad_(), b.clone().requires_grad_()) for W, b in job.layers]
    parameters = [p for layer in layers for p in layer]
    kept, kept_epoch, least = [p.detach().clone() for p in parameters], 0, np.inf
    losses, validation = [], []
    g = torch.Generator().manual_seed(job.batch_seed)
    for epoch in range(1, r.epochs + 1):
        total = 0.0
        for step, batch in enumerate(torch.randperm(len(y), generator=g).split(r.batch_size)):
            places = itertools.count()

            def drop(h, step=step, places=places, epoch=epoch):
                if not r.dropout:
                    return h
                uniforms = uniform(job.dropout_seed, epoch, next(places), step, h.shape)
                return dropped(h, uniforms, r.dropout, alpha=job.kind[0] == "snn")

            loss = F.cross_entropy(logits_of(job, layers, X[batch], drop), y[batch])
            gradients = torch.autograd.grad(loss, parameters)
            with torch.no_grad():
                for p, gradient in zip(parameters, gradients, strict=True):
                    p -= r.learning_rate * gradient
            total += loss.item() * len(batch)
        losses.append(total / len(y))
        smoothed = -epoch
        if job.held_out is not None:
            with torch.no_grad():
                answers = logits_of(job, layers, job.held_out.X, lambda h: h)
            validation.append(F.cross_entropy(answers, job.held_out.y).item())
            smoothed = np.mean(validation[-SMOOTHING:])
        if not all(p.isfinite().all() for p in parameters) or not np.isfinite(losses[-1]):
            return kept, kept_epoch, losses, validation, True
        if smoothed < least:
            kept, kept_epoch, least = [p.detach().clone() for p in parameters], epoch, smoothed
        elif epoch - kept_epoch >= r.patience:
            break
    return kept, kept_epoch, losses, validation, False
