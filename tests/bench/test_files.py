from pathlib import Path

import pytest

from edrvfl.bench.files import check_folder, check_writable, write_into_folder, write_whole

FULL = Path("/dev/full")
needs_dev_full = pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")


def test_a_file_is_replaced_as_a_whole(tmp_path):
    path = tmp_path / "a.txt"
    for text in ("long text, ±", "short"):
        check_writable(path)
        assert write_whole(path, text) == path
        assert path.read_text(encoding="utf-8") == text
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("use", [check_writable, lambda path: write_whole(path, "x")])
@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ("/dev/null/x.html", "Not a directory"),
        ("{}/nowhere/x.html", "there is no folder"),
        ("{}", "Is a directory"),
    ],
)
def test_a_file_that_cannot_be_written_is_named(use, where, reason, tmp_path):
    path = where.format(tmp_path)
    with pytest.raises(OSError, match=f"^{path}: cannot be written \\({reason}") as caught:
        use(path)
    assert "choose another place" in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("use", [check_folder, lambda path: write_into_folder(path, "a.txt", "x")])
def test_a_folder_that_cannot_be_made_is_named(use, tmp_path):
    (tmp_path / "file").touch()
    for path in ("/dev/null/f", tmp_path / "file" / "deep" / "er"):
        with pytest.raises(OSError, match=f"^{path}: cannot be written \\(Not a directory"):
            use(path)


@pytest.mark.parametrize("use", [check_writable, lambda path: write_whole(path, "x"), check_folder])
def test_a_read_only_file_system(use):
    """/proc cannot be written by anyone, as little as a read-only disk."""
    if not Path("/proc/self").exists():
        pytest.skip("there is no /proc")
    with pytest.raises(OSError, match=r"^/proc/x\.html: cannot be written"):
        use("/proc/x.html")


def test_checking_a_folder_creates_nothing(tmp_path):
    check_folder(tmp_path / "a" / "b")
    assert not list(tmp_path.iterdir())
    assert write_into_folder(tmp_path / "a" / "b", "c.txt", "x").read_text() == "x"


@needs_dev_full
def test_a_device_is_written_not_replaced(tmp_path):
    check_writable(FULL)
    with pytest.raises(OSError, match="/dev/full: cannot be written"):
        write_whole(FULL, "x" * 100_000)
    assert FULL.is_char_device()
    assert write_whole("/dev/null", "x") == Path("/dev/null")
    assert Path("/dev/null").is_char_device()


def test_what_breaks_off_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.txt"
    write_whole(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "half \ud800")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]
