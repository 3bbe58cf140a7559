"""Write files whole or not at all, and find out before the work whether they can be written."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path


def check_writable(path: str | Path) -> None:
    """Raise an OSError that names the path if a file cannot be written there. Its folder must exist."""
    target = Path(path)
    if _is_device(target):
        return
    try:
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        _try_folder(target.parent)
    except OSError as error:
        raise _explained(target, error) from error


def check_folder(path: str | Path) -> None:
    """Raise an OSError that names the path if files cannot be written into the folder.

    The folder need not exist. Nothing is created: the nearest parent that exists is tried instead.
    """
    target = Path(path)
    try:
        _try_folder(next(p for p in (target.absolute(), *target.absolute().parents) if p.exists()))
    except OSError as error:
        raise _explained(target, error) from error


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Give a temporary file beside the path, which takes its place when everything went well.

    A failure or a kill half-way leaves the file that was there before. A link keeps leading to its file.
    """
    target = Path(path).resolve()
    # /dev/stdout cannot be replaced, and /dev/null should not be: a device is written directly
    part = target if _is_device(target) else target.with_name(f".{uuid.uuid4().hex}.part")
    try:
        yield part
        if part != target:
            with part.open("rb") as written:
                os.fsync(written.fileno())  # a machine that stops leaves the old file or the new one
            part.replace(target)
    except OSError as error:
        if error.filename not in (None, str(part)):  # another file, which is read meanwhile
            raise
        raise _explained(Path(path), error) from error
    finally:
        # nothing is left after `replace`; on a read-only file system there never was a part, and unlink fails
        if part != target:
            with contextlib.suppress(OSError):
                part.unlink()


def write_whole(path: str | Path, text: str) -> Path:
    """Write a text file whole or not at all."""
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")
    return Path(path)


def write_into_folder(folder: str | Path, name: str, text: str) -> Path:
    """Write a text file into a folder, which is created if it does not exist."""
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _explained(target, error) from error
    return write_whole(target / name, text)


def _is_device(path: Path) -> bool:
    return path.exists() and not path.is_file() and not path.is_dir()


def _try_folder(folder: Path) -> None:
    """Create and delete a file: permissions alone do not tell a file system that is read-only or full."""
    with tempfile.TemporaryFile(dir=folder):
        pass


def _explained(path: Path, error: OSError) -> OSError:
    what = error.strerror or str(error)
    if isinstance(error, FileNotFoundError) and not path.parent.is_dir():
        what = f"there is no folder {str(path.parent)!r}"
    return type(error)(f"{path}: cannot be written ({what}); choose another place.")
