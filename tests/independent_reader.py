"""Read a model's file and answer, as docs/file_format.md says, with NumPy and nothing of edrvfl."""

import datetime
import hashlib
import json
import math
import zlib
import zoneinfo
from types import SimpleNamespace as Record

import numpy as np


def load(path, other=None):
    """Return the record that answers: a Network, KernelModel, Portfolio or Encoding (sections 1 to 3).

    `other` is the name of another fitted attribute to return.
    """
    content = np.fromfile(path, np.uint8).tobytes()
    assert hashlib.sha256(content[:35] + b"0" * 64 + content[99:]).hexdigest().encode() == content[35:99]
    start, arrays, shared = 8 + int.from_bytes(content[:8], "little"), {}, []
    header, data = json.loads(content[8:start]), content[start:]
    description = json.loads(header.pop("__metadata__")["edrvfl"])
    for name, entry in header.items():
        kind, bits = entry["dtype"][0].lower(), entry["dtype"].replace("BOOL", "U8")[1:]
        flat = np.frombuffer(
            data[slice(*entry["data_offsets"])], f"<{kind.replace('b', 'u')}{int(bits) // 8}"
        )
        arrays[name] = flat.reshape(entry["shape"])

    def value_of(v):
        if isinstance(v, list):
            return [value_of(part) for part in v]
        kind = next(iter(v)) if isinstance(v, dict) else None
        return kinds[kind](v[kind], v) if kind in kinds else v

    kinds = {
        "record": lambda name, v: Record(kind=name, **{k: value_of(part) for k, part in v["fields"].items()}),
        "shared": lambda i, v: shared[i],
        "array": lambda name, v: arrays[name].T if v.get("turned") else arrays[name],
        "texts": lambda t, v: [p.tobytes().decode() for p in np.split(arrays[t[0]], arrays[t[1]])[:-1]],
        "tuple": lambda parts, v: value_of(parts),
        "float": lambda text, v: float(text),
    }
    for entry in description["shared"]:
        shared.append(value_of(entry))
    (name,) = {"network_", "model_", "portfolio_", "encoding_"} & set(description["fitted"])
    return value_of(description["fitted"][other or name])


def circle(share):
    return [math.sin(2 * math.pi * share), math.cos(2 * math.pi * share)]


def date_parts(value, kind):
    """Return the parts of a date, a time of day or a duration (section 4)."""
    day = datetime.timedelta(days=1)
    if value is None or value != value:
        return [math.nan] * {"date": 7, "time": 3, "duration": 1}[kind.holds]
    if kind.holds == "duration":
        return [value / day]
    if kind.holds == "time":
        value = datetime.datetime.combine(datetime.date(1970, 1, 1), value)
    if kind.zone is not None:
        value = value.astimezone(zoneinfo.ZoneInfo(kind.zone)).replace(tzinfo=None)
    midnight = datetime.datetime.combine(value.date(), datetime.time())
    share = (value - midnight) / day
    if kind.holds == "time":
        return [24 * share, *circle(share)]
    since = value - datetime.datetime(1970, 1, 1) - kind.origin * day
    of_year = datetime.date(2000, value.month, value.day) - datetime.date(2000, 1, 1)
    return [since / day, *circle(of_year.days / 366), *circle(value.weekday() / 7), *circle(share)]


def text_parts(value, kind):
    """Return the columns of a text (section 4)."""
    if value is None or value != value:
        return [math.nan] * kind.n_columns
    text, total, n = f" {' '.join(value.lower().split())} ", [0] * kind.n_columns, 0

    def stir(h, c):
        h = (h ^ c) * 0x9E3779B97F4A7C15 % 2**64
        return h ^ h >> 29

    def mix(h):
        h = h * 0xBF58476D1CE4E5B9 % 2**64
        return h ^ h >> 32

    for piece in (text[i : i + k] for k in (3, 4, 5) for i in range(len(text) - k + 1)):
        h = 0x243F6A8885A308D3
        for letter in piece:
            h = stir(h, ord(letter))
        bits, n = mix(stir(0x243F6A8885A308D3, mix(h) % 2**16)), n + 1
        total = [t + 1 - 2 * (bits >> k & 1) for k, t in enumerate(total)]
    return [t / math.sqrt(max(n, 1)) for t in total]


def encode(columns, inputs, table, dtype):
    """Turn a table, a list of columns, into the inputs of a network (section 4)."""
    coded = []
    for j, column in enumerate(table):
        known = None if columns is None else columns.categories[j]
        kind = None if columns is None else (getattr(columns, "kinds", None) or [None] * len(table))[j]
        place = None if known is None else {value: i for i, value in enumerate(known)}
        rows = []
        for value in column:
            if kind is not None:
                rows.append({"Dates": date_parts, "Text": text_parts}[kind.kind](value, kind))
            elif value is None or value != value:
                rows.append([np.nan])
            else:
                rows.append([value if place is None else place.get(value, -1)])
        coded.append(np.array(rows, dtype=float))
    X = np.hstack(coded).astype(dtype)
    Z, parts, bound = X[:, :0], [], float(np.finfo(dtype).max) ** 0.25
    if (part := inputs.numbers) is not None:
        Z = np.clip((X if part.columns is None else X[:, part.columns]) / part.divisor, -bound, bound)
        Z = R = np.where(np.isnan(Z), part.fill, Z)
        if (ranks := getattr(part, "ranks", None)) is not None:
            steps = np.clip((Z[:, None] - ranks.left) * ranks.slope, 0, 1)
            R = (steps * ranks.height).sum(axis=1)
        if part.center is not None:
            R = np.clip((Z - part.center) / part.spread, -bound, bound)
            R = R / np.sqrt(1 + (R / 3) ** 2)
        R = (R - part.mean) / part.sd
        parts.append(R if part.center is None else np.clip(R, -8, 8))
    if inputs.missing is not None:
        parts.append(np.isnan(X[:, inputs.missing]))
    if (part := inputs.bins) is not None:
        R = (Z[:, part.columns] - part.left) * part.slope + part.offset
        parts.append(np.clip(R, part.low, part.high))
    if (part := inputs.categories) is not None:
        code = X[:, part.columns]
        e = np.where(np.isnan(code), part.end, np.clip(code + part.start + 1, part.start, part.end - 1))
        Z = np.hstack([Z, part.table[e.astype(int)]])
    if (part := inputs.onehots) is not None:
        V = Z[:, part.columns]
        parts.append(np.where((part.low <= V) & (part.high > V), part.on, part.off))
    if (codes := getattr(inputs, "codes", None)) is not None:
        plain = np.hstack([*parts, X[:, :0]]).astype(dtype)
        plain = plain * (1 if inputs.factors is None else inputs.factors[: plain.shape[1]])
        return np.hstack([plain, np.where(np.isnan(X[:, codes]), -2, X[:, codes])]).astype(dtype)
    return np.hstack(parts or [X]).astype(dtype) * (1 if inputs.factors is None else inputs.factors)


def differences(inputs, E, landmarks):
    """Compare rows with landmarks, column by column; a code counts as two columns (section 8)."""
    D = np.abs(E[:, None] - landmarks)
    if (codes := getattr(inputs, "codes", None)) is None:
        return D
    n = E.shape[1] - len(codes)
    apart = (D[..., n:] != 0) * (1.0 if inputs.factors is None else inputs.factors[n:])
    return np.concatenate([D[..., :n], apart, apart], axis=2)


def draw(network, l, dtype):
    """Give the hidden weights of layer l again, and compare their checksum (section 5)."""
    layer, draws, n, d = network.layers[l], network.draws, network.n_hidden, network.inputs.width

    def u(what, *shape):
        generator = np.random.PCG64(np.random.SeedSequence(network.seed, spawn_key=(l, what)))
        return ((generator.random_raw(int(np.prod(shape))) >> np.uint64(11)) * 2.0**-53).reshape(shape)

    W = 2 * u(0, d + n * (l > 0), n) - 1
    if (q := draws.inputs_per_neuron) is not None:
        names, source = np.unique(network.inputs.source, return_inverse=True)
        order = u(3, len(names), n).argsort(0).argsort(0)
        W[-d:] *= (order < np.floor(1 + u(2, n) * min(q, len(names))))[source]
    if l > 0 and (draws.hidden_per_neuron or n) < n:
        W[:n] *= u(4, n, n).argsort(0).argsort(0) < draws.hidden_per_neuron
    W = (W if layer.kept is None else np.vstack([W[layer.kept], W[-d:]])).astype(dtype)
    if layer.pairs is not None:
        W[:, : layer.pairs.shape[1]] = layer.pairs
    assert zlib.crc32(np.ascontiguousarray(W).tobytes()) == layer.checksum
    return W


def softmax(Z):
    E = np.exp(Z - Z.max(axis=1, keepdims=True))
    return E / E.sum(axis=1, keepdims=True)


def calibrate(c, P):
    """Turn probabilities into others (section 7)."""
    if c is None:
        return P
    z = c.a * np.log((P + c.floor) / (P.max(axis=1, keepdims=True) + c.floor))
    if P.shape[1] == 2:
        t = np.append(z[:, 1] - z[:, 0], 0)  # the last one gives f(0)
        f = np.maximum(t, c.high) + (np.clip(t, c.low, c.high) - c.low) ** 2 / 2 / max(c.high - c.low, 1e-30)
        z = np.outer((c.shift + c.low_slope * t + (c.high_slope - c.low_slope) * (f - f[-1]))[:-1], [0, 1])
    Q = (1 - c.uniform) * softmax(z) + c.uniform / P.shape[1]
    if c.matrix is None:
        return Q
    M = np.diag(c.matrix) if c.matrix.ndim == 1 else c.matrix
    return (1 - c.uniform) * softmax(np.log(Q) @ M.T + c.offset) + c.uniform / P.shape[1]


G = {"relu": lambda z: np.maximum(z, 0), "sigmoid": lambda z: 1 / (1 + np.exp(-z)), "tanh": np.tanh,
    "sin": np.sin, "radbas": lambda z: np.exp(-(z**2)), "swish": lambda z: z / (1 + np.exp(-z)),
    "selu": lambda z: 1.0507009873554805 * np.where(z > 0, z, 1.6732632423543772 * np.expm1(z))}  # fmt: skip


def matern(t):
    return (1 + t) * np.exp(-t)


KERNELS = {  # of the differences (rows, landmarks, columns), the bandwidth and the number of columns
    "laplace": lambda D, h, d: np.exp(-np.sqrt((D**2).sum(axis=2)) / (h * np.sqrt(d))),
    "matern": lambda D, h, d: matern(np.sqrt(3 * (D**2).sum(axis=2)) / (h * np.sqrt(d))),
    "product": lambda D, h, d: np.exp(-D.sum(axis=2) / (h * d)),
    "additive": lambda D, h, d: np.exp(-D / h).mean(axis=2) ** 2,
}
RULES = {"softmax": softmax, "vote": lambda scores: np.eye(scores.shape[1])[scores.argmax(axis=1)]}


def answer(model, table):
    """Answer the rows of a table, with probabilities or values (sections 6 and 8)."""
    regresses = model.classes is None
    if model.kind != "Network":
        if model.kind == "KernelModel":
            E = encode(model.columns, model.voter.inputs, table, model.voter.alpha.dtype)
            D = differences(model.voter.inputs, E, model.voter.landmarks)
            kernel = KERNELS[getattr(model.voter, "kernel", "laplace")]
            K = kernel(D, model.voter.bandwidth, D.shape[2])
            scores = model.voter.scale * (K @ model.voter.alpha) + model.voter.prior
        else:
            answers = np.stack([answer(voter, table) for voter in model.voters])
            scores = np.tensordot(model.weights, answers if regresses else np.log(answers + 1e-30), axes=1)
        return scores if regresses else calibrate(model.calibration, softmax(scores))
    E = encode(model.columns, model.inputs, table, model.readouts[0].dtype)
    H, features, scores = E[:, :0], [E, np.ones_like(E[:, :1])], []
    for l, layer in enumerate(model.layers):
        A = np.hstack([H if layer.kept is None else H[:, layer.kept], E])
        Z = A @ (draw(model, l, E.dtype) if layer.W is None else layer.W)
        H = G[model.activation](Z * (1 if layer.scale is None else layer.scale) + layer.shift)
        features = [*features, H] if model.joint else [H, *features[-2:]]
        scores.append(np.hstack(features) @ model.readouts[l])
    answers = [RULES[model.rule](s) if model.rule in RULES else s for s in scores]
    P = answers[-1] if model.joint else np.average(answers, axis=0, weights=model.votes)
    return calibrate(model.calibrations[-1], softmax(P) if model.rule == "mean" else P)


def read_outs(memory, kept, network):
    """Solve the read-outs of a network from the sums that its fit remembers (section 10)."""
    for l, (beta, lam) in enumerate(zip(network.readouts, kept.lams, strict=True)):
        sums, c = kept.sums[min(l, len(kept.sums) - 1)], len(beta)
        found = np.linalg.solve(sums.G[:c, :c] + lam * np.eye(c), sums.R[:c])
        if memory.sd is not None:
            found = found * memory.sd
            found[network.inputs.width if network.joint else -1] += memory.mean
        yield found
