"""Fitted models whose read-outs are solved again without a training row, by brute force."""

import dataclasses

import numpy as np
from helpers import features_by_layer

from edrvfl._models.kernel import KernelModel
from edrvfl._models.network import Network
from edrvfl._models.portfolio import Portfolio
from edrvfl._ridge.kernels import KERNELS


def ridge(D, Y, w, lam):
    return np.linalg.solve(D.T @ (w[:, None] * D) + lam * np.eye(D.shape[1]), D.T @ (w[:, None] * Y))


def targets(model, memory):
    """One-hot codes, or values as they came."""
    y = memory.rows.y
    return y if model.classes is None else np.eye(memory.n_outputs)[y]


def without(model, memory, left_out):
    """The model with read-outs over the other rows; all else is as the fit left it. `left_out` are places."""
    kept = np.setdiff1d(np.arange(memory.rows.n_rows), left_out)
    if isinstance(model, Portfolio):
        voters = [
            without(voter, dataclasses.replace(memory, voters=(own,)), left_out)
            for voter, own in zip(model.voters, memory.voters, strict=True)
        ]
        return dataclasses.replace(model, voters=tuple(voters))
    return {Network: _network, KernelModel: _kernel}[type(model)](model, memory, kept)


def _network(network, memory, kept):
    (own,), rows = memory.voters, memory.rows
    base, Y = memory.weights(rows.y, rows.counts), targets(network, memory)
    features, readouts = features_by_layer(network, rows.X), []
    if network.joint:
        n = network.n_hidden
        whole = np.hstack([features[0][:, n:], *(D[:, :n] for D in features)])
        readouts = [*network.readouts[:-1], ridge(whole[kept], Y[kept], base[kept], own.lams[-1])]
        return _in_units(network, memory, readouts, whole, base, Y, kept, own.lams[-1])
    for l, D in enumerate(features):
        w = base * own.omega(l) * np.ones(len(base))
        readouts.append(_solved(D, Y, w, kept, own.lams[l], memory, -1))
    return dataclasses.replace(network, readouts=tuple(readouts))


def _in_units(network, memory, readouts, whole, base, Y, kept, lam):
    readouts[-1] = _solved(whole, Y, base, kept, lam, memory, network.bias)
    return dataclasses.replace(network, readouts=tuple(readouts))


def _solved(D, Y, w, kept, lam, memory, bias):
    """The penalty is on the read-out of standardised values, whose mean and scale are those of the fit."""
    if memory.mean is None:
        return ridge(D[kept], Y[kept], w[kept], lam)
    beta = ridge(D[kept], ((Y - memory.mean) / memory.sd)[kept], w[kept], lam) * memory.sd
    beta[bias] += memory.mean
    return beta


def _kernel(model, memory, kept):
    (own,), rows, voter = memory.voters, memory.rows, model.voter
    Y, w = targets(model, memory) - voter.prior, memory.weights(rows.y, own.counts)
    width = voter.width

    def measure(L):
        return KERNELS[voter.kernel].measure(L, voter.inputs.contrasts(L))

    Z = voter.inputs.apply(rows.X)
    if own.solver == "landmarks":  # K(x, Z) (K(Z, Z) whitened by its eigenvectors)
        L = voter.landmarks
        values, V = np.linalg.eigh(KERNELS[voter.kernel].alike(measure(L).own(), width))
        whitening = V / np.sqrt(np.maximum(values, 1e-14))
        D = KERNELS[voter.kernel].alike(measure(L)(Z), width) @ whitening
        alpha = whitening @ ridge(D[kept], Y[kept], w[kept], own.lams[0])
        return dataclasses.replace(model, voter=dataclasses.replace(voter, alpha=alpha / voter.scale))
    landmarks, alphas = [], []
    for part, lam in enumerate(own.lams):
        inside = kept[own.part[kept] == part]
        K = KERNELS[voter.kernel].alike(measure(Z[inside]).own(), width)
        alphas.append(np.linalg.solve(K + lam * np.diag(1 / w[inside]), Y[inside]) / len(own.lams))
        landmarks.append(Z[inside])
    alpha = np.vstack(alphas) / voter.scale
    return dataclasses.replace(
        model, voter=dataclasses.replace(voter, landmarks=np.vstack(landmarks), alpha=alpha)
    )
