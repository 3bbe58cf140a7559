"""The way in, the streams, and what becomes of errors: everything that all commands share."""

import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from edrvfl import __version__, cli
from edrvfl.bench.data import ALL_FRAMES
from edrvfl.bench.store import Store
from edrvfl.cli.app import MODEL_COMMANDS
from edrvfl.cli.main import EXTRA, MODEL_EXTRA, NEEDS_EXTRA, NEEDS_MODEL_EXTRA
from edrvfl.cli.study import COMMANDS, repeat_options

ROOT = Path(__file__).parents[1]


def command(*arguments, before="", **options):
    """Run `edrvfl` in a process of its own, after some lines of Python."""
    code = f"import sys\n{before}\nfrom edrvfl.cli import main\nsys.exit(main(sys.argv[1:]))"
    known = {"capture_output": True, "text": True, "timeout": 120}
    if "stdout" in options:
        known = {"stderr": subprocess.PIPE, "text": True, "timeout": 120}
    return subprocess.run([sys.executable, "-c", code, *map(str, arguments)], check=False, **known | options)


# --- the way in --------------------------------------------------------------------------------------


def test_the_version_is_told_without_importing_anything():
    lines = (
        "import importlib.util, sys, edrvfl",
        "known = set(sys.modules)",
        "from edrvfl.cli import main",
        "main(['--version'])",
        "print(*set(sys.modules) - known)",
    )
    code = [sys.executable, "-c", "\n".join(lines)]
    ended = subprocess.run(code, capture_output=True, text=True, check=True)
    version, imported = ended.stdout.splitlines()
    assert version == f"edrvfl {__version__}"
    assert set(imported.split()) == {"edrvfl.cli", "edrvfl.cli.main"}


@pytest.mark.parametrize("missing", ["typer", "matplotlib"])
def test_a_missing_extra_is_told_in_one_line_before_the_work(missing):
    ended = command("bench", "sensitivity", "--datasets", "iris", before=f"sys.modules[{missing!r}] = None")
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", NEEDS_EXTRA + "\n")


@pytest.mark.parametrize("missing", ["typer", "pandas"])
def test_a_missing_extra_for_models_is_told_in_one_line(missing):
    ended = command("inspect", "model.edrvfl", before=f"sys.modules[{missing!r}] = None")
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", NEEDS_MODEL_EXTRA + "\n")


def test_models_need_nothing_of_the_study():
    others = sorted(set(EXTRA) - set(MODEL_EXTRA))
    ended = command("fit", "--help", before=f"sys.modules |= dict.fromkeys({others})")
    assert ended.returncode == 0
    assert "--target" in ended.stdout


def test_without_the_extra_there_is_still_a_version():
    ended = command("--version", before="sys.modules['typer'] = None")
    assert (ended.returncode, ended.stdout) == (0, f"edrvfl {__version__}\n")


def test_all_of_the_extra_is_looked_for():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for name, looked_for in (("bench", EXTRA), ("cli", MODEL_EXTRA)):
        assert {text.split(">")[0].replace("-", "_") for text in extras[name]} == set(looked_for)


@pytest.mark.parametrize("arguments", [[], ["bench"]])
def test_a_group_alone_prints_its_help(arguments, capsys):
    assert cli.main(arguments) == 0
    assert "Usage: edrvfl" in capsys.readouterr().out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_study_has_help(name, capsys):
    assert cli.main(["bench", name, "--help"]) == 0
    assert COMMANDS[name].__doc__.split(".")[0][:40] in capsys.readouterr().out


@pytest.mark.parametrize("name", MODEL_COMMANDS)
def test_every_command_for_models_has_help(name, capsys):
    assert cli.main([name, "--help"]) == 0
    assert MODEL_COMMANDS[name].__doc__.split(".")[0][:40] in capsys.readouterr().out


def test_the_help_of_run_names_the_groups(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "150")
    cli.main(["bench", "run", "--help"])
    out = capsys.readouterr().out
    assert "edrvfl, randomised, fnn and peers" in out
    assert "uci24 and demo" in out


# --- lists -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "typed", ["--m A B C", "--m A,B,C", "--m A, B ,C", "--m=A,B C", "--m A --m B --m C", "--m A,B --m C"]
)
def test_lists_are_separated_by_spaces_commas_or_the_option(typed):
    assert list(repeat_options([*typed.split(), "--q"], {"--m"})) == [
        "--m",
        "A",
        "--m",
        "B",
        "--m",
        "C",
        "--q",
    ]


def test_only_lists_are_taken_apart():
    typed = ["--csv", "a,b.csv", "--weights", "-1", "--quiet", "file"]
    assert list(repeat_options(typed, {"--weights"})) == typed
    assert list(repeat_options(["--m"], {"--m"})) == ["--m"]  # typer then says what is missing


# --- values and places that are refused before the work ----------------------------------------------


@pytest.mark.parametrize(
    ("typed", "phrase"),
    [
        ("run --trials x", "'--trials': expected a whole number of at least 1, got 'x'"),
        ("run --seeds 0", "'--seeds': expected a whole number of at least 1, got '0'"),
        ("run --jobs 1.5", "'--jobs': expected a whole number of at least 1, got '1.5'"),
        ("run --methods", "'--methods' requires an argument"),
        ("sensitivity --datasets iris --rates 0.5 1", "'prune_rate' parameter of EDRVFLClassifier must be"),
        ("sensitivity --rates a", "'--rates': expected a number, got 'a'"),
        ("sensitivity --datasets iris --weights 0", "(0.0, 1.0]. Got 0.0 instead"),
        ("sensitivity --datasets iris --weights 1 2", "(0.0, 1.0]. Got 2.0 instead"),
        ("sensitivity --datasets iris --weights nan", "(0.0, 1.0]. Got nan instead"),
        ("sensitivity --datasets iris --activations relu,foo", "Got 'foo' instead"),
        ("timing --repeats 0", "'--repeats': expected a whole number of at least 1"),
        ("report --out /dev/null/x.html", "/dev/null/x.html: cannot be written (Not a directory)"),
        ("report --out report.html/x.md", "report.html/x.md: cannot be written"),
        ("report --figures /dev/null/f", "/dev/null/f: cannot be written (Not a directory)"),
        ("report --out /proc/x.html", "/proc/x.html: cannot be written"),  # as on a read-only disk
    ],
)
def test_what_cannot_be_is_refused_before_the_work(typed, phrase, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    Path("study.db").touch()
    assert cli.main(["bench", *typed.split()]) == 2
    out, err = capsys.readouterr()
    assert phrase in err
    assert (out, [path.name for path in tmp_path.iterdir()]) == ("", ["study.db"])
    assert Path("study.db").stat().st_size == 0


# --- the streams -------------------------------------------------------------------------------------


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("typed", ["bench data", "--help"])
def test_an_output_that_cannot_be_written_is_one_line(typed):
    with Path("/dev/full").open("w") as full:
        ended = command(*typed.split(), stdout=full)
    assert ended.returncode == 2
    assert "No space left on device" in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_a_reader_who_leaves_is_no_error():
    reading, writing = os.pipe()
    os.close(reading)
    ended = command("bench", "data", stdout=writing)
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_closed_output_is_no_error():
    closing = ["sh", "-c", 'exec "$@" >&-', "sh"]
    edrvfl = [sys.executable, "-m", "edrvfl.cli", "bench", "data"]
    ended = subprocess.run([*closing, *edrvfl], stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == 0
    assert "Traceback" not in ended.stderr


def test_a_pipe_gets_whole_lines_without_colours():
    colourful = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    ended = command("bench", "data", env=colourful | {"TERM": "xterm-256color", "COLUMNS": "20"})
    assert ended.returncode == 0
    assert "\x1b" not in ended.stdout
    names = [line.split()[0] for line in ended.stdout.splitlines()]
    assert names[0] == "dataset"
    tail = ["iris", "wine", "breast_cancer", "digits", *ALL_FRAMES]
    assert names[-len(tail) :] == tail


# --- Ctrl-C ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_ends_cleanly_and_says_how_to_go_on(tmp_path, jobs):
    path = tmp_path / "study.db"
    options = ["bench", "run", "--datasets", "iris", "--trials", "50", "--store", str(path), "--jobs", jobs]
    process = subprocess.Popen(
        [sys.executable, "-m", "edrvfl.cli", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        time.sleep(0.05)
        if path.exists():
            with Store(path) as store:
                if store.counts():
                    break
    os.killpg(process.pid, signal.SIGINT)  # a terminal tells the whole group
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert out == ""
    assert "Interrupted. What was done is stored; go on with\n  edrvfl bench run --datasets iris" in err
    assert "Traceback" not in err
    with Store(path, own=True) as store:  # nobody holds the store any more
        assert store.counts()


def test_ctrl_c_while_the_command_starts_is_one_line(monkeypatch, capsys):
    class Interrupted:
        """An import system in which Ctrl-C comes while the study is imported."""

        @staticmethod
        def find_spec(name, path=None, target=None):
            if name == "edrvfl.cli.app":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "edrvfl.cli.app")
    monkeypatch.setattr(sys, "meta_path", [Interrupted, *sys.meta_path])
    assert cli.main(["bench", "data"]) == 130
    assert capsys.readouterr().err == "edrvfl: interrupted before anything was done\n"


def test_the_version_on_a_full_disk_is_one_line():
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "edrvfl.cli", "--version"], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert ended.returncode == 2
    assert ended.stderr.startswith("edrvfl: the output cannot be written")
    assert "Traceback" not in ended.stderr
