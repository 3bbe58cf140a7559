"""The way in, the streams, and what becomes of errors: everything that all commands share."""

import os
import signal
import subprocess
import sys
import time
import tomllib
from contextlib import contextmanager
from pathlib import Path

import pytest

from edrvfl import __version__, cli
from edrvfl.bench.data import ALL_FRAMES
from edrvfl.bench.store import Store
from edrvfl.cli.app import MODEL_COMMANDS
from edrvfl.cli.main import EXTRA, MODEL_EXTRA, NEEDS_EXTRA, NEEDS_MODEL_EXTRA
from edrvfl.cli.study import COMMANDS, repeat_options

ROOT = Path(__file__).parents[1]


@contextmanager
def output(stream, monkeypatch):
    """Let commands write to a stream; like the end of a process, the end of this writes what is left."""
    with stream, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        yield


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


@pytest.mark.parametrize(
    ("typed", "missing", "needs"),
    [
        ("bench sensitivity --datasets iris", "typer", NEEDS_EXTRA),
        ("bench sensitivity --datasets iris", "matplotlib", NEEDS_EXTRA),
        ("inspect model.edrvfl", "typer", NEEDS_MODEL_EXTRA),
        ("inspect model.edrvfl", "pandas", NEEDS_MODEL_EXTRA),
    ],
)
def test_a_missing_extra_is_told_in_one_line_before_the_work(typed, missing, needs, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, missing, None)  # how Python marks a module that cannot be imported
    assert cli.main(typed.split()) == 2
    assert capsys.readouterr() == ("", needs + "\n")
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr() == (f"edrvfl {__version__}\n", "")


def test_models_need_nothing_of_the_study():
    others = sorted(set(EXTRA) - set(MODEL_EXTRA))
    without = f"import sys; sys.modules |= dict.fromkeys({others})"
    code = f"{without}; from edrvfl.cli import main; main(['fit', '--help'])"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "--target" in ended.stdout


def test_all_of_the_extra_is_looked_for():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for name, looked_for in (("bench", EXTRA), ("cli", MODEL_EXTRA)):
        assert {text.split(">")[0].replace("-", "_") for text in extras[name]} == set(looked_for)


@pytest.mark.parametrize("arguments", [[], ["bench"]])
def test_a_group_alone_prints_its_help(arguments, capsys):
    assert cli.main(arguments) == 0
    assert "Usage: edrvfl" in capsys.readouterr().out


@pytest.mark.parametrize("typed", [*MODEL_COMMANDS, *(f"bench {name}" for name in COMMANDS)])
def test_every_command_has_help_that_fits_a_terminal(typed, capsys):
    assert cli.main([*typed.split(), "--help"]) == 0
    out = capsys.readouterr().out
    known = COMMANDS if typed.startswith("bench") else MODEL_COMMANDS
    assert known[typed.split()[-1]].__doc__.split(".")[0][:40] in out
    assert "<bool>" not in out
    assert max(map(len, out.splitlines())) <= 80
    assert ("the probability of each class.\n" in out) is (typed == "predict")  # a paragraph is one


def test_the_help_of_run_names_the_groups(capsys):
    cli.main(["bench", "run", "--help"])
    out = " ".join(capsys.readouterr().out.split())
    assert "edrvfl, randomised, fnn and peers" in out
    assert "uci24 and demo" in out


@pytest.mark.parametrize("of", [[], ["bench"]])
def test_no_command_is_described_by_half_a_sentence(of, capsys):
    cli.main([*of, "--help"])
    commands = capsys.readouterr().out.partition("Commands:")[2]
    assert "  compare " in commands
    assert "..." not in commands


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("fit t.csv --out m", "Missing option '--target' / '-t'. See `edrvfl fit --help`."),
        (
            "fit t.csv --target y --out m --model tree",
            "Invalid value for '--model': 'tree' is not one of 'portfolio', 'network'. "
            "See `edrvfl fit --help`.",
        ),
        ("fits", "No such command 'fits'. Did you mean 'fit'? See `edrvfl --help`."),
        (
            "bench run --foo",
            "No such option: --foo (Possible options: --folder). See `edrvfl bench run --help`.",
        ),
    ],
)
def test_errors_of_options_are_one_line(typed, said, capsys):
    assert cli.main(typed.split()) == 2
    assert capsys.readouterr() == ("", f"edrvfl: {said}\n")


@pytest.mark.parametrize(
    ("typed", "found"),
    [("edrvfl fit --tar", "--target"), ("edrvfl bench ret", "retry"), ("edrvfl ev", "evaluate")],
)
def test_shells_complete_commands_and_options(typed, found, monkeypatch, capsys):
    words = {"_EDRVFL_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    for name, value in words.items():
        monkeypatch.setenv(name, value)
    assert cli.main([]) == 0
    assert capsys.readouterr().out.split() == [found]


# --- lists -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "typed", ["--m A B C", "--m A,B,C", "--m A, B ,C", "--m=A,B C", "--m A --m B --m C", "--m A,B --m C"]
)
def test_lists_are_separated_by_spaces_commas_or_the_option(typed):
    assert " ".join(repeat_options([*typed.split(), "--q"], {"--m"})) == "--m A --m B --m C --q"


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
        ("sensitivity --datasets iris --weights 0", "(0.0, 1.0] or a str among {'loo'}. Got 0.0 instead"),
        ("sensitivity --datasets iris --weights 1 2", "(0.0, 1.0] or a str among {'loo'}. Got 2.0 instead"),
        ("sensitivity --datasets iris --weights nan", "(0.0, 1.0] or a str among {'loo'}. Got nan instead"),
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
@pytest.mark.parametrize(("typed", "where"), [("bench data", "standard output:"), ("--help", "[Errno 28]")])
def test_an_output_that_cannot_be_written_is_one_line(typed, where, monkeypatch, capsys):
    with output(Path("/dev/full").open("w"), monkeypatch):
        assert cli.main(typed.split()) == 2
    assert capsys.readouterr().err == f"edrvfl: {where} No space left on device\n"


def test_a_reader_who_leaves_is_no_error(monkeypatch, capsys):
    reading, writing = os.pipe()
    os.close(reading)
    with output(os.fdopen(writing, "w"), monkeypatch):
        assert cli.main(["bench", "data"]) == 0
    assert "Error" not in (err := capsys.readouterr().err)
    assert err.count("\n") <= 1  # where the 24 datasets are not here, it says so


def test_a_closed_output_is_no_error(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdout", None)  # as Python has it after `>&-`
    assert cli.main(["bench", "data"]) == 0
    assert "Error" not in (err := capsys.readouterr().err)
    assert err.count("\n") <= 1  # where the 24 datasets are not here, it says so


def test_a_pipe_gets_whole_lines_without_colours(monkeypatch, capsys):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "20")
    assert cli.main(["bench", "data"]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    rows, sources = out.split("\n\n")
    names = [line.split()[0] for line in rows.splitlines()]
    assert names[0] == "dataset"
    tail = ["iris", "wine", "breast_cancer", "digits", *ALL_FRAMES]
    assert names[-len(tail) :] == tail
    assert "demo: from scikit-learn" in sources
    assert max(map(len, rows.splitlines())) <= 87  # the longest name of a dataset, of a group and of a state


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
