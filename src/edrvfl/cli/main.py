"""The way into the command `edrvfl`: what it can say before anything slow or optional is imported."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec

import edrvfl

# What the extras `cli` and `bench` bring. All of it is looked for before any work: a command that computes
# for an hour and then lacks matplotlib has lost the hour.
MODEL_EXTRA = ("pandas", "rich", "typer")
EXTRA = (*MODEL_EXTRA, "filelock", "jinja2", "matplotlib", "pooch", "requests", "scikit_posthocs", "tqdm")
NEEDS_MODEL_EXTRA = (
    "edrvfl's command line needs the extra cli: pip install 'edrvfl[cli]' "
    "(from a clone: pip install '.[cli]')"
)
NEEDS_EXTRA = (
    "edrvfl bench needs the extra bench: pip install 'edrvfl[bench]' (from a clone: pip install '.[bench]')"
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status: 0 done, 1 something failed, 2 misuse, 130 interrupted."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        return _run(arguments)
    except KeyboardInterrupt:  # during the imports; a command that runs catches its own
        print("edrvfl: interrupted before anything was done", file=sys.stderr)
        return 130
    except OSError as error:  # where even the version cannot be printed
        print(f"edrvfl: the output cannot be written ({error.strerror})", file=sys.stderr)
        return 2


def _run(arguments: list[str]) -> int:
    if arguments[:1] == ["--version"]:
        print(f"edrvfl {edrvfl.__version__}", flush=True)
        return 0
    # a shell that completes a command passes what was typed in its environment
    typed = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or ""
    study = "bench" in (arguments[:1] or typed.split()[1:2])
    if any(find_spec(name) is None for name in (EXTRA if study else MODEL_EXTRA)):
        print(NEEDS_EXTRA if study else NEEDS_MODEL_EXTRA, file=sys.stderr)
        return 2
    os.environ.setdefault("SCIPY_ARRAY_API", "1")  # scikit-learn asks for it before it lets tensors through
    from .app import call  # imports scikit-learn, which takes a second

    return call(arguments, study)
