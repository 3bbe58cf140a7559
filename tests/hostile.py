"""Files that someone changed: bytes flipped, or parts replaced and the checksum made right again."""

import copy
import hashlib
import json
import struct
import tracemalloc
from contextlib import contextmanager

import numpy as np

from edrvfl._doors.files import ESTIMATORS
from edrvfl._leaving.files.container import DIGITS, packed, unpacked
from edrvfl._leaving.files.models import unpacked_model

# What a value of a description may become.
VALUES = (
    None,
    True,
    False,
    0,
    1,
    -1,
    2**31,
    2**40,
    -(2**63),
    0.5,
    -0.0,
    1e300,
    -1e-300,
    "",
    "relu",
    "x" * 1000,
    [],
    {},
)
OBJECTS = (
    {"float": "nan"},
    {"float": "inf"},
    {"float": 1},
    {"tuple": []},
    {"tuple": [1]},
    {"dict": [["a", 1], ["a", 2]]},
    {"record": "Network", "fields": {}},
    {"record": "os.system", "fields": {"command": "true"}},
    {"estimator": "TabularEncoder", "params": {}},
    {"estimator": "Path", "params": {}},
    {"shared": 0},
    {"shared": 10**6},
    {"array": "nowhere"},
    {"number": ["int64", 3]},
    {"number": ["object", 3]},
    {"texts": ["a", "b", -1]},
    {"objects": [[1]]},
    {"random_state": []},
)
NUMBERS = (np.nan, np.inf, -np.inf, 0.0, -1.0, 1e300, -1e300, 1e-300, 1e15)


def loaded(content):
    """Return the model of a file's bytes."""
    return unpacked_model(content, ESTIMATORS)


@contextmanager
def memory_below(most):
    """Fail if the block takes so many bytes or more at once."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()


def with_checksum(content):
    """Return the bytes of a file with a checksum that is right."""
    content = bytearray(content)
    content[DIGITS] = b"0" * 64
    content[DIGITS] = hashlib.sha256(content).hexdigest().encode()
    return bytes(content)


def rewritten(content, change):
    """Return a file whose description and arrays were changed in place by `change(tree, arrays)`."""
    tree, arrays = unpacked(content)
    change(tree, arrays)
    return packed(tree, arrays)


def with_header(content, change):
    """Return a file whose header was changed by `change(header)`, with a right checksum."""
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    data = content[8 + length :]
    header = change(header) or header
    head = json.dumps(header, separators=(",", ":")).encode()
    return with_checksum(struct.pack("<Q", len(head)) + head + data)


def places(tree, path=()):
    """Yield the way to every value of a description."""
    entries = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in entries:
        yield (*path, key)
        yield from places(value, (*path, key))


def at(tree, path):
    for key in path:
        tree = tree[key]
    return tree


def hostile(content, rng):
    """Return what was done to a file, and its bytes."""
    kinds = (_flip, _cut, _flip_right, _header, _tree, _tree, _tree, _array, _array)
    kind = kinds[rng.integers(len(kinds))]
    return kind.__name__.strip("_"), kind(content, rng)


def _flip(content, rng):
    content = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        content[rng.integers(len(content))] ^= 1 << rng.integers(8)
    return bytes(content)


def _flip_right(content, rng):
    """Flip a bit, most often one of the header, and make the checksum right."""
    (length,) = struct.unpack("<Q", content[:8])
    flipped = bytearray(content)
    flipped[rng.integers(8 + length if rng.random() < 0.8 else len(content))] ^= 1 << rng.integers(8)
    return with_checksum(flipped)


def _cut(content, rng):
    cut = content[: rng.integers(len(content))]
    if rng.random() < 0.3:
        cut = content + bytes(rng.integers(256, size=rng.integers(1, 20), dtype=np.uint8))
    return with_checksum(cut) if len(cut) > DIGITS.stop and rng.random() < 0.7 else cut


def _header(content, rng):
    def change(header):
        names = [name for name in header if name != "__metadata__"]
        entry = header[names[rng.integers(len(names))]]
        other = header[names[rng.integers(len(names))]]
        what = rng.integers(8)
        if what == 0:
            entry["data_offsets"] = [int(v) for v in rng.integers(-5, 2**40, size=2)]
        elif what == 1:
            entry["data_offsets"] = list(other["data_offsets"])
        elif what == 2:
            entry["shape"] = [int(v) for v in rng.integers(-1, 2**45, size=rng.integers(0, 4))]
        elif what == 3:
            entry["dtype"] = ("F64", "I64", "F32", "BOOL", "U8", "F16", "object", 7)[rng.integers(8)]
        elif what == 4:
            entry["shape"] = list(entry["shape"])[::-1] + [1] * int(rng.integers(2))
        elif what == 5:
            entry.update(copy.deepcopy(other))
        elif what == 6:
            entry["shape"] = [0, 2**60]
        else:
            text = "[" * 3000 + "]" * 3000
            header["__metadata__"]["edrvfl"] = (
                text if rng.random() < 0.5 else header["__metadata__"]["edrvfl"] * 2
            )

    return with_header(content, change)


def _tree(content, rng):
    def change(tree, arrays):
        for _ in range(rng.integers(1, 3)):
            ways = list(places(tree))
            *path, key = ways[rng.integers(len(ways))]
            parent, what = at(tree, path), rng.random()
            if what < 0.15:
                del parent[key]
            elif what < 0.3:
                parent[key] = copy.deepcopy(at(tree, ways[rng.integers(len(ways))]))
            elif what < 0.4 and isinstance(parent, dict):
                parent[f"{key}x"] = parent.pop(key)
            elif what < 0.5 and isinstance(parent[key], (int, float)) and not isinstance(parent[key], bool):
                parent[key] = parent[key] * (2, -1, 0.5, 1000)[rng.integers(4)] + int(rng.integers(-1, 2))
            elif what < 0.6 and arrays:
                parent[key] = {"array": list(arrays)[rng.integers(len(arrays))]}
            elif what < 0.8:
                parent[key] = copy.deepcopy(OBJECTS[rng.integers(len(OBJECTS))])
            else:
                parent[key] = copy.deepcopy(VALUES[rng.integers(len(VALUES))])

    return rewritten(content, change)


def _array(content, rng):
    def change(tree, arrays):
        names = list(arrays)
        name = names[rng.integers(len(names))]
        array, what = arrays[name], rng.integers(7)
        if what == 0:
            arrays[name] = array[: rng.integers(len(array) + 1)] if array.ndim else array
        elif what == 1:
            arrays[name] = array.astype(
                (np.float32, np.float64, np.int64, np.uint8, np.bool_)[rng.integers(5)]
            )
        elif what == 2:
            arrays[name] = arrays[names[rng.integers(len(names))]]
        elif what == 3:
            arrays[name] = array[None] if rng.random() < 0.5 else array.T
        elif what == 4:
            del arrays[name]
        elif array.size:
            changed = array.copy()
            flat = changed.reshape(-1)
            chosen = rng.integers(flat.size, size=rng.integers(1, 4))
            with np.errstate(all="ignore"):
                if array.dtype.kind == "f":
                    flat[chosen] = NUMBERS[rng.integers(len(NUMBERS))]
                else:
                    flat[chosen] = np.asarray(rng.integers(-3, 300, size=len(chosen))).astype(array.dtype)
                if what == 6 and array.dtype.kind == "f":
                    flat[...] = NUMBERS[rng.integers(len(NUMBERS))]
            arrays[name] = changed

    with np.errstate(all="ignore"):
        return rewritten(content, change)


def outcome(content, answers, expected):
    """Return what a file does: "refused", "equal", "different", or what escaped.

    `answers` is given the model; it asks with rows of the columns that the model names.
    """
    try:
        model = loaded(content)
    except ValueError:
        return "refused"
    except BaseException as error:
        return f"load raised {type(error).__name__}: {error}"
    try:
        found = answers(model)  # rows with the columns that the model names
    except BaseException as error:
        return f"a model raised {type(error).__name__}: {error}"
    for method, values in found.items():
        if values.dtype.kind == "f" and np.isnan(values).any():
            return f"a model gave NaN in {method}"
    same = found.keys() == expected.keys() and all(
        np.array_equal(found[method], expected[method]) for method in found
    )
    return "equal" if same else "different"
