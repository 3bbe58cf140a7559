"""A reader of model files that knows what docs/file_format.md says: NumPy, and nothing of edrvfl.

It reads an EDRVFLClassifier whose encoder is "standard" or None and whose columns are all numbers.
"""

import hashlib
import json
import struct
import zlib
from pathlib import Path

import numpy as np

DTYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "U8": "u1", "U32": "<u4", "BOOL": "?"}


def read_container(path):
    """Return the description and the arrays of a file (sections 1 and 2)."""
    content = Path(path).read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    digits = header["__metadata__"]["sha256"].encode()
    assert content[35:99] == digits
    assert hashlib.sha256(content[:35] + b"0" * 64 + content[99:]).hexdigest().encode() == digits
    data, arrays = content[8 + length :], {}
    for name, entry in header.items():
        if name != "__metadata__":
            start, stop = entry["data_offsets"]
            flat = np.frombuffer(data[start:stop], DTYPES[entry["dtype"]])
            arrays[name] = flat.reshape(entry["shape"])
    return json.loads(header["__metadata__"]["edrvfl"]), arrays


class Tree:
    """The values that a description stands for (section 3). Records are dicts."""

    def __init__(self, description, arrays):
        self.arrays, self.shared = arrays, []
        for entry in description["shared"]:
            self.shared.append(self.value(entry))
        self.fitted = {name: self.value(v) for name, v in description["fitted"].items()}

    def value(self, v):
        if isinstance(v, list):
            return [self.value(part) for part in v]
        if not isinstance(v, dict):
            return v
        if "record" in v:
            return {name: self.value(part) for name, part in v["fields"].items()}
        if "shared" in v:
            return self.shared[v["shared"]]
        if "array" in v:
            return self.arrays[v["array"]].T if v.get("turned") else self.arrays[v["array"]]
        if "texts" in v:
            raw, ends = (self.arrays[name] for name in v["texts"][:2])
            starts = [0, *ends[:-1]]
            return np.array([raw[a:b].tobytes().decode() for a, b in zip(starts, ends, strict=True)])
        if "tuple" in v:
            return tuple(self.value(v["tuple"]))
        if "float" in v:
            return float(v["float"])
        if "number" in v:
            return np.dtype(v["number"][0]).type(self.value(v["number"][1]))
        raise NotImplementedError(str(v))


def uniform(seed, child, size):
    """Numbers in [0, 1) from the top 53 bits of PCG64 (section 5)."""
    bits = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=child)).random_raw(size)
    return (bits >> np.uint64(11)) * 2.0**-53


def weights(network, l):
    """Draw the weights of layer l, and compare their checksum (section 5)."""
    layer, n, d = network["layers"][l], network["n_hidden"], network["inputs"]["width"]
    dtype = network["readouts"][0].dtype
    if layer["W"] is not None:
        return layer["W"]
    rows = d if l == 0 else n + d
    W = (2 * uniform(network["seed"], (l, 0), rows * n) - 1).reshape(rows, n).astype(dtype)
    if layer["kept"] is not None:
        W = W[[*layer["kept"], *range(n, n + d)]]
    if layer["pairs"] is not None:
        W[:, : layer["pairs"].shape[1]] = layer["pairs"]
    assert zlib.crc32(W.tobytes()) == layer["checksum"]
    return W


def softmax(Z):
    E = np.exp(Z - Z.max(axis=-1, keepdims=True))
    return E / E.sum(axis=-1, keepdims=True)


def encode(inputs, X):
    """The columns that the network sees (section 4)."""
    numbers = inputs["numbers"]
    if numbers is None:
        return X
    bound = float(np.finfo(X.dtype).max) ** 0.25
    Z = np.clip(X / numbers["divisor"], -bound, bound)
    Z = (np.where(np.isnan(Z), numbers["fill"], Z) - numbers["mean"]) / numbers["sd"]
    if inputs["missing"] is not None:
        Z = np.concatenate([Z, np.isnan(X[:, inputs["missing"]]).astype(X.dtype)], axis=1)
    return Z


def calibrate(c, P):
    """Calibrated probabilities (section 7)."""
    k = P.shape[1]
    top = P.max(axis=1, keepdims=True)
    logits = c["a"] * np.log((P + c["floor"]) / (top + c["floor"]))
    if k == 2:
        z = bend(c, logits[:, 1] - logits[:, 0])
        logits = np.stack([np.zeros_like(z), z], axis=1)
    Q = (1 - c["uniform"]) * softmax(logits) + c["uniform"] / k
    if c["matrix"] is None:
        return Q
    Z = np.log(Q)
    logits = (Z @ c["matrix"].T if c["matrix"].ndim == 2 else Z * c["matrix"]) + c["offset"]
    return (1 - c["uniform"]) * softmax(logits) + c["uniform"] / k


def bend(c, z):
    low, high = c["low"], c["high"]
    width = max(high - low, 1e-30)

    def area(t):
        return (np.clip(t, low, high) - low) ** 2 / (2 * width) + np.maximum(t, high) - high

    return c["shift"] + c["low_slope"] * z + (c["high_slope"] - c["low_slope"]) * (area(z) - area(0.0))


def predict_proba(path, X):
    """The probabilities that the classifier in a file gives (section 6)."""
    network = Tree(*read_container(path)).fitted["network_"]
    E = encode(network["inputs"], X)
    H = np.zeros((len(X), 0))
    g = {"relu": lambda Z: np.maximum(Z, 0), "tanh": np.tanh, "sigmoid": lambda Z: 0.5 + 0.5 * np.tanh(Z / 2)}
    total = 0.0
    for l, layer in enumerate(network["layers"]):
        kept = slice(None) if layer["kept"] is None else layer["kept"]
        Z = np.concatenate([H[:, kept], E], axis=1) @ weights(network, l)
        H = g[network["activation"]]((Z if layer["scale"] is None else Z * layer["scale"]) + layer["shift"])
        scores = np.concatenate([H, E, np.ones((len(X), 1), X.dtype)], axis=1) @ network["readouts"][l]
        total = total + network["votes"][l] * (softmax(scores) if network["rule"] == "softmax" else scores)
    P = total / sum(network["votes"])
    P = softmax(P) if network["rule"] == "mean" else P
    return P if network["calibrations"][-1] is None else calibrate(network["calibrations"][-1], P)
