"""Algorithm 1 once more, in plain loops and the paper's own formulas; nothing comes from edrvfl."""

import math

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.kernel_ridge import KernelRidge

G = {
    "relu": lambda z: max(z, 0.0),
    "selu": lambda z: 1.0507009873554805 * (z if z > 0 else 1.6732632423543772 * (math.exp(z) - 1)),
    "sigmoid": lambda z: 1 / (1 + math.exp(-z)),
    "tanh": math.tanh,
    "sin": math.sin,
    "radbas": lambda z: math.exp(-z * z),
    "swish": lambda z: z / (1 + math.exp(-z)),
}


def output_weights(D, Y, omega, lam):
    m, c = D.shape
    W_l = np.diag(omega)
    if c <= m:  # Eq. 15
        return np.linalg.solve(D.T @ W_l @ D + lam * np.eye(c), D.T @ W_l @ Y)
    return D.T @ np.linalg.solve(W_l @ D @ D.T + lam * np.eye(m), W_l @ Y)  # Eq. 16, as printed


def scores_without_themselves(D, Y, omega, lam):
    """Scores of each row by the read-out of all the other rows."""
    scores = []
    for i in range(len(D)):
        others = [j for j in range(len(D)) if j != i]
        scores.append(D[i] @ output_weights(D[others], Y[others], omega[others], lam))
    return np.array(scores)


def losses(scores, Y, classes):
    """1 for a row whose largest score is not that of its class, or the mean squared error of values."""
    if classes:
        return [float(np.argmax(s) != np.argmax(t)) for s, t in zip(scores, Y, strict=True)]
    return [
        sum((a - b) ** 2 for a, b in zip(s, t, strict=True)) / len(t) for s, t in zip(scores, Y, strict=True)
    ]


def which_are_right(losses, classes):
    """Which rows count as right in Eq. 12: rows without a loss, or rows of values not above the median."""
    limit = 0.0 if classes else sorted(losses)[(len(losses) - 1) // 2]
    return [loss <= limit for loss in losses]


def generator(seed, *child):
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=child))


def drop_unseen(W, seed, l, n, inputs_per_neuron, hidden_per_neuron):
    """Set to 0 what a neuron does not see: some of the d inputs, and in deeper layers of the n neurons."""
    d = len(W) if l == 0 else len(W) - n
    if inputs_per_neuron is not None:
        how_many = generator(seed, l, 2).random(n)
        keys = generator(seed, l, 3).random((d, n))
        for j in range(n):
            count = 1 + int(how_many[j] * min(inputs_per_neuron, d))
            chosen = sorted(range(d), key=lambda i, j=j: keys[i, j])[:count]
            for i in range(d):
                if i not in chosen:
                    W[len(W) - d + i, j] = 0
    if hidden_per_neuron is not None and l > 0 and hidden_per_neuron < n:
        keys = generator(seed, l, 4).random((n, n))
        for j in range(n):
            chosen = sorted(range(n), key=lambda i, j=j: keys[i, j])[:hidden_per_neuron]
            for i in range(n):
                if i not in chosen:
                    W[i, j] = 0


def layer_scores(
    X, y, X_new, seed, n_layers, n, lam, g, renormalize, gamma, alpha, omega_r, p, weight_from="train",
    inputs_per_neuron=None, hidden_per_neuron=None, encode=True, seen=None,
):  # fmt: skip
    """Scores of each layer for the rows of X_new, as an array (layers, rows, classes).

    Columns are standardised unless `encode` is False. A list `seen` gets the features of both sets of rows,
    the rows' weights and the penalty of each layer.

    y holds the classes 0, 1, ..., or is a matrix of values, which are standardised; the scores are then in
    their units. lam may be "loo"; gamma and alpha may be pairs, between which each neuron's own is drawn.
    """
    m, d = X.shape
    classes, offset, unit = np.ndim(y) == 1, 0.0, 1.0
    if classes:
        Y = np.array([[float(label == k) for k in range(max(y) + 1)] for label in y])
    else:
        offset, unit = y.mean(axis=0), y.std(axis=0)
        Y = (y - offset) / unit
    mean, sd = X.mean(axis=0), X.std(axis=0)
    if encode:
        X, X_new = (X - mean) / sd, (X_new - mean) / sd
    A, A_new, omega, scores = X, X_new, np.ones(m), []
    keep = None
    for l in range(n_layers):
        W = generator(seed, l, 0).uniform(-1, 1, (d if l == 0 else n + d, n))
        b = generator(seed, l, 1).uniform(0, 1, n)
        drop_unseen(W, seed, l, n, inputs_per_neuron, hidden_per_neuron)
        gammas = (
            np.full(n, gamma)
            if np.ndim(gamma) == 0
            else np.exp(generator(seed, l, 5).uniform(math.log(gamma[0]), math.log(gamma[1]), n))
        )
        alphas = np.full(n, alpha) if np.ndim(alpha) == 0 else generator(seed, l, 6).uniform(*alpha, n)
        if keep is not None:  # Eq. 6 without the rows of the pruned neurons
            W = np.array([W[j] for j in range(n + d) if j >= n or j in keep])
        Z, Z_new = A @ W, A_new @ W
        H, H_new = np.empty((m, n)), np.empty((len(X_new), n))
        for j in range(n):
            mu, var = 0.0, 1 - 1e-5
            if renormalize:
                mu = sum(Z[:, j]) / m  # Eq. 8
                var = sum((z - mu) ** 2 for z in Z[:, j]) / m  # Eq. 9
            factor, shift = (gammas[j], alphas[j]) if renormalize else (1.0, 0.0)
            for rows, out in ((Z, H), (Z_new, H_new)):
                for i in range(len(rows)):
                    hat = (rows[i, j] - mu) / math.sqrt(var + 1e-5)  # Eq. 10
                    out[i, j] = G[g](factor * hat + shift + b[j])  # Eq. 11, 5, 6
        D = np.hstack([H, X, np.ones((m, 1))])
        D_new = np.hstack([H_new, X_new, np.ones((len(X_new), 1))])
        penalty = lam
        if lam == "loo":
            total = {}
            for value in [2.0**x for x in range(-12, 13)]:
                each = losses(scores_without_themselves(D, Y, omega, value), Y, classes)
                total[value] = round(sum(w * loss for w, loss in zip(omega, each, strict=True)), 9)
            penalty = min(total, key=lambda value: (total[value], -value))
        if seen is not None:
            seen.append((D, D_new, omega, penalty))
        beta = output_weights(D, Y, omega, penalty)
        scores.append(D_new @ beta * unit + offset)

        answers = D @ beta if weight_from == "train" else scores_without_themselves(D, Y, omega, penalty)
        right = which_are_right(losses(answers, Y, classes), classes)
        n_r, n_w = sum(right), m - sum(right)  # Eq. 12
        if n_r == 0 or n_w == 0 or omega_r == 1:
            omega = np.ones(m)
        else:
            omega_w = (m - n_r * omega_r) / n_w  # Eq. 14
            omega = np.array([omega_r if r else omega_w for r in right])
        theta = [sum(abs(a) for a in beta[j]) for j in range(n)]  # Eq. 17
        ranked = sorted(range(n), key=lambda j: (theta[j], j))
        keep = sorted(ranked[min(n - 1, int(p * n + 1e-9)) :])
        A = np.hstack([H[:, keep], X])
        A_new = np.hstack([H_new[:, keep], X_new])
    return np.array(scores)


def scores_without_each_row(D, Y, lam, omega, counts, twins=None):
    """Scores of each row by the read-out fitted without the row and its twins, one fit for each row."""
    scores, twins = [], np.arange(len(D)) if twins is None else twins
    for i in range(len(D)):
        kept = twins != twins[i]
        w = (counts * omega)[kept]
        if lam == 0:
            root = np.sqrt(w)[:, None]
            beta = np.linalg.pinv(D[kept] * root) @ (Y[kept] * root)
        else:
            beta = output_weights(D[kept], Y[kept], w, lam)
        scores.append(D[i] @ beta)
    return np.array(scores)


def kernel_scores_without_each_row(Z, Y, h, lam, prior):
    """Scores of each row by a kernel ridge of Y - prior, fitted to all the other rows of Z."""
    K, scores = np.exp(-cdist(Z, Z) / (h * np.sqrt(Z.shape[1]))), []
    for i in range(len(Z)):
        rest = np.arange(len(Z)) != i
        ridge = KernelRidge(alpha=lam, kernel="precomputed").fit(K[np.ix_(rest, rest)], (Y - prior)[rest])
        scores.append(np.atleast_1d(ridge.predict(K[[i]][:, rest])[0]) + prior)
    return np.array(scores)


def joint_features(X, X_new, seed, n_layers, n, counts, g="relu"):
    """The columns [X, 1, H1, ..., HL] of dRVFL, for training rows and new rows, re-normalised (gamma 1)."""
    total = sum(counts)
    mean = counts @ X / total
    sd = np.sqrt(counts @ (X - mean) ** 2 / total)
    X, X_new = (X - mean) / sd, (X_new - mean) / sd
    A, A_new = np.hstack([X, np.ones((len(X), 1))]), np.hstack([X_new, np.ones((len(X_new), 1))])
    before, before_new = X, X_new
    for l in range(n_layers):
        W = generator(seed, l, 0).uniform(-1, 1, (before.shape[1], n))
        b = generator(seed, l, 1).uniform(0, 1, n)
        Z, Z_new = before @ W, before_new @ W
        mu = counts @ Z / total
        deviation = np.sqrt(counts @ (Z - mu) ** 2 / total + 1e-5)
        H, H_new = (np.vectorize(G[g])((some - mu) / deviation + b) for some in (Z, Z_new))
        A, A_new = np.hstack([A, H]), np.hstack([A_new, H_new])
        before, before_new = np.hstack([H, X]), np.hstack([H_new, X_new])
    return A, A_new
