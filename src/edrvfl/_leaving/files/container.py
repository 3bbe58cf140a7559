"""The file: arrays and a text, in the safetensors format, with a checksum of every byte.

8 bytes give the length of the header, the header is JSON, and the raw arrays follow. Every size stands in the
header and is compared with the size of the file before memory is taken for it. Nothing is compressed, so no
small file becomes a large one, and nothing in it is a path or code.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import struct
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy

# The names that safetensors gives to types, which are little-endian.
DTYPES: Mapping[str, str] = {
    "F64": "<f8",
    "F32": "<f4",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "|i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "|u1",
    "BOOL": "|b1",
}
NAMES = {numpy.dtype(code): name for name, code in DTYPES.items()}
MOST_HEADER = 2**24  # bytes
MOST_DIMENSIONS = 8
LONGEST = 2**31  # side of an array
# A header begins so; the 64 digits of the checksum follow.
BEGIN = b'{"__metadata__":{"sha256":"'
DIGITS = slice(8 + len(BEGIN), 8 + len(BEGIN) + 64)
STALE = (
    3600  # seconds; a file half written that nobody has touched for so long was left by a process that died
)


def packed(tree: Mapping[str, Any], arrays: Mapping[str, numpy.ndarray]) -> bytes:
    """Return the bytes of a file that holds a description and arrays."""
    text = json.dumps(tree, separators=(",", ":"), allow_nan=False)
    # numbers of 8 bytes first, so that each array begins at a multiple of the size of its numbers
    order = sorted(arrays, key=lambda name: -arrays[name].dtype.itemsize)
    header: dict[str, Any] = {"__metadata__": {"sha256": "0" * 64, "edrvfl": text}}
    parts, start = [], 0
    for name in order:
        array = arrays[name]
        kind = NAMES[array.dtype.newbyteorder("<")]
        part = array.astype(DTYPES[kind], copy=False).tobytes()
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [start, start + len(part)]}
        parts.append(part)
        start += len(part)
    head = json.dumps(header, separators=(",", ":"), allow_nan=False).encode("ascii")
    head += b" " * (-len(head) % 8)
    if len(head) > MOST_HEADER:
        raise ValueError(
            f"The description of this model takes {len(head)} bytes, and a file may have {MOST_HEADER}. "
            "Fit fewer members, layers or columns, or pickle it."
        )
    content = bytearray(b"".join([struct.pack("<Q", len(head)), head, *parts]))
    content[DIGITS] = hashlib.sha256(content).hexdigest().encode("ascii")
    return bytes(content)


def header_length(begin: bytes, size: int) -> int:
    """Return the length of the header of a file of so many bytes, whose first bytes are given."""
    if len(begin) < DIGITS.stop:
        raise ValueError(f"It has {size} bytes, too few for a model.")
    if not begin.startswith(BEGIN, 8):
        raise ValueError("It does not begin as a model does: it is another kind of file.")
    length: int = struct.unpack_from("<Q", begin)[0]
    if length > MOST_HEADER or 8 + length > size:
        raise ValueError(
            f"Its header should have {length} bytes. The file has {size}, and a header at most "
            f"{MOST_HEADER}: it was cut, or it is no model."
        )
    return length


def unpacked(content: bytes) -> tuple[dict[str, Any], dict[str, numpy.ndarray]]:
    """Return the description and the arrays of a file that is exactly as it was written."""
    length = header_length(content[: DIGITS.stop], len(content))
    zeroed = hashlib.sha256(content[: DIGITS.start])
    zeroed.update(b"0" * 64)
    zeroed.update(memoryview(content)[DIGITS.stop :])
    if zeroed.hexdigest().encode("ascii") != content[DIGITS]:
        raise ValueError("Its checksum is wrong: it was cut or changed after it was written.")
    header = _parsed(content[8 : 8 + length], "header")
    metadata = header.pop("__metadata__", None)
    if not isinstance(metadata, dict) or set(metadata) != {"sha256", "edrvfl"}:
        raise ValueError("Its header has no description of a model.")
    text = metadata["edrvfl"]
    if not isinstance(text, str):
        raise ValueError("Its description is not a text.")
    return _parsed(text, "description"), _arrays(header, memoryview(content)[8 + length :])


def _parsed(text: str | bytes, what: str) -> Any:
    """Parse JSON without the liberties that Python's parser takes. The outermost value is an object."""
    try:
        found = json.loads(
            text, object_pairs_hook=_object, parse_constant=_refuse_constant, parse_float=_finite
        )
    except (ValueError, RecursionError) as error:
        raise ValueError(f"Its {what} is not the JSON it should be ({error}).") from error
    if not isinstance(found, dict):
        raise ValueError(f"Its {what} is not a JSON object.")
    return found


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name comes twice")
    return found


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"JSON has no number {name}")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{digits[:20]} is too large")
    return value


def _arrays(header: dict[str, Any], data: memoryview) -> dict[str, numpy.ndarray]:
    """Return the arrays that a header names. They must lie side by side and fill the data."""
    places = {name: _place(name, entry, len(data)) for name, entry in header.items()}
    spans = sorted((start, stop) for start, stop, *_ in places.values())
    # before anything is copied: many arrays that overlap would take more memory than the file
    if [0, *(stop for _, stop in spans)] != [*(start for start, _ in spans), len(data)]:
        raise ValueError("Its arrays overlap, or there are bytes that belong to none.")
    arrays = {}
    for name, (start, stop, dtype, shape) in places.items():
        raw = numpy.frombuffer(data[start:stop], dtype=numpy.uint8)
        if dtype == numpy.bool_ and raw.size and raw.max() > 1:
            raise ValueError(f"Array {name[:80]!r} should hold 0 and 1.")
        # a copy, because a model may not depend on how the file lies in memory
        arrays[name] = raw.copy().view(dtype).astype(dtype.newbyteorder("="), copy=False).reshape(shape)
    return arrays


def _place(name: str, entry: Any, size: int) -> tuple[int, int, numpy.dtype[Any], tuple[int, ...]]:
    """Return where an array lies, its type and its shape, after a look at whether these agree."""
    where = f"Array {name[:80]!r}"
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"{where} should have a dtype, a shape and offsets.")
    kind, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(kind, str) or kind not in DTYPES:
        raise ValueError(f"{where} has an unknown dtype; known are {', '.join(DTYPES)}.")
    if not _counts(shape) or len(shape) > MOST_DIMENSIONS or not _counts(offsets) or len(offsets) != 2:
        raise ValueError(f"{where} has an invalid shape or invalid offsets.")
    dtype, (start, stop) = numpy.dtype(DTYPES[kind]), offsets
    if not start <= stop <= size or math.prod(shape) * dtype.itemsize != stop - start:
        raise ValueError(
            f"{where} should lie from {start} to {stop}, which does not fit its shape or the file."
        )
    if any(extent > LONGEST for extent in shape):  # a shape with a 0 in it may name anything else
        raise ValueError(f"{where} has a side that is longer than {LONGEST}.")
    return start, stop, dtype, tuple(shape)


def _counts(values: Any) -> bool:
    return isinstance(values, list) and all(type(v) is int and 0 <= v < 2**53 for v in values)


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file at once: whoever looks sees the old file or the new one, also if the machine stops.

    A link stays a link, to a file that is new, and a file that is replaced passes on its mode. What is no
    file, such as a pipe, is written into.
    """
    target = Path(os.path.realpath(path))
    try:
        if target.exists() and not target.is_file():
            target.write_bytes(content)
        else:
            _replace(target, content)
    except OSError as error:
        folder = str(Path(path).parent)
        problem = f"{error.strerror}, when the model was written into the folder {folder!r}"
        raise OSError(error.errno, problem, os.fspath(path)) from error


def _replace(target: Path, content: bytes) -> None:
    for left in target.parent.glob(".edrvfl.*.part"):
        with contextlib.suppress(OSError):  # it may be somebody else's, or gone
            if time.time() - left.stat().st_mtime > STALE:
                left.unlink()
    beside = target.with_name(f".edrvfl.{uuid.uuid4().hex}.part")
    try:
        with beside.open("xb") as file:
            if target.exists():
                beside.chmod(target.stat().st_mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def read_whole(path: str | os.PathLike[str], most: int) -> bytes:
    """Return the bytes of a file, which may not be larger than `most`, and must begin as a model does."""
    with Path(path).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise ValueError(f"It has {size} bytes, and max_bytes is {most}.")
        begin = file.read(DIGITS.stop)
        header_length(begin, size)
        file.seek(0)
        return file.read(size)
