"""The shipped study: its records can be read back, and the README's table follows from them."""

import functools
import gzip
import json
import re
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from edrvfl.bench.comparison import average_ranks
from edrvfl.bench.data import CONFIRMATION, FRAMES, GROUPS, VALUES
from edrvfl.bench.store import Store

ROOT = Path(__file__).parents[2]
FIVE = ("edRVFL_O", "edRVFL_N", "WedRVFL", "PedRVFL", "WPedRVFL")  # the paper's, without plain RVFL


@pytest.fixture(scope="module")
def records(shipped_store):
    with Store(shipped_store, create=False) as store:
        # of several searches of one method the largest counts, as in the report
        found = sorted(store.records(), key=lambda r: r.n_configurations)
        return {(r.dataset, r.method): r for r in found} | {
            (r.dataset, r.method, r.n_configurations): r for r in found
        }


def test_the_five_methods_are_complete(records):
    for name in FIVE:
        for dataset in GROUPS["uci24"]:
            record = records[dataset, name]
            assert record.status == "ok"
            assert record.n_configurations == 200
            assert record.seeds == 10


def percent(record, choice):
    mean = 100 * record.choices[choice].mean_and_sd()[0]
    return Decimal(repr(mean)).quantize(Decimal("0.01"), ROUND_HALF_UP)


def test_the_readme_prints_what_was_measured(records):
    table = re.findall(
        r"^\| (\w+) \| [\d.]+ \| ([\d.]+) \| ([\d.]+) \| [\d.]+, ([\d.]+) \|$",
        (ROOT / "README.md").read_text(),
        re.MULTILINE,
    )
    assert [row[0] for row in table] == list(FIVE)
    accuracies = {
        choice: {d: {m: percent(records[d, m], choice) for m in FIVE} for d in GROUPS["uci24"]}
        for choice in ("paper", "strict")
    }
    ranks = average_ranks(pd.DataFrame(accuracies["paper"], dtype=float).T)
    for name, paper, strict, rank in table:
        for choice, printed in (("paper", paper), ("strict", strict)):
            mean = sum(accuracies[choice][d][name] for d in GROUPS["uci24"]) / 24
            assert abs(mean - Decimal(printed)) < Decimal("0.006"), (name, choice)
        assert abs(ranks[name] - float(rank)) < 0.006, name


def test_the_readme_prints_what_the_peers_reached(records):
    text = (ROOT / "README.md").read_text()
    names = {"random forest": "RandomForest", "logistic regression": "LogisticRegression"}
    printed = re.search(r"nothing tuned\): (.*?)\. The tree", text, re.DOTALL)[1]
    figures = re.findall(r"([A-Za-z][\w -]*?) (\d\d\.\d\d)", printed)
    assert len(figures) == 6
    for name, figure in figures:
        name = names.get(name.strip(), name.strip())
        mean = sum(percent(records[d, name], "strict") for d in GROUPS["uci24"]) / 24
        assert abs(mean - Decimal(figure)) < Decimal("0.006"), name


def test_the_readme_tells_how_drvfl_did(records):
    """Against edRVFL_N on equal terms: 50 configurations and 5 seeds for both."""
    text = " ".join((ROOT / "README.md").read_text().split())
    for choice in ("strict", "paper"):
        means = [
            sum(percent(records[d, m, 50], choice) for d in GROUPS["uci24"]) / 24
            for m in ("dRVFL", "edRVFL_N")
        ]
        printed = re.search(rf"{choice} choice: (\d+\.\d+) and (\d+\.\d+)", text)
        assert all(
            abs(mean - Decimal(figure)) < Decimal("0.006")
            for mean, figure in zip(means, printed.groups(), strict=True)
        ), (choice, means)


def test_the_readme_prints_the_values_that_were_measured():
    records, datasets = shipped_defaults("values"), tuple(VALUES)
    methods = sorted({m for _, m in records})
    assert len(methods) == 8
    r2 = pd.DataFrame({m: [np.mean(records[d, m]["r2"]) for d in datasets] for m in methods})
    ranks = r2.round(4).rank(axis=1, ascending=False).mean()
    text = (ROOT / "README.md").read_text()
    for m in methods:
        row = f"| {r2[m].mean():.4f} | {ranks[m]:.2f} |"
        assert re.search(rf"^\| \**{m}\** {re.escape(row)}", text, re.MULTILINE), (m, row)
    assert ranks.idxmin() == "edRVFL portfolio"


@functools.cache
def shipped_defaults(kind="defaults"):
    """The records of methods at their defaults, read without the library."""
    with gzip.open(ROOT / "results" / "study.jsonl.gz", "rt") as lines:
        found = [line for line in map(json.loads, lines) if line.get("kind") == kind]
    return {(line["record"]["dataset"], line["record"]["method"]): line["record"] for line in found}


@pytest.mark.parametrize(
    ("datasets", "n_methods"),
    # one fit of CatBoost on leaf_id_flavia takes longer than seven minutes
    [
        (GROUPS["uci24"], 9),
        (tuple(FRAMES), 7),
        (tuple(name for name in CONFIRMATION if name != "leaf_id_flavia"), 4),
    ],
    ids=["the 24", "frames", "confirmation"],
)
def test_the_readme_prints_the_defaults_that_were_measured(datasets, n_methods):
    records = shipped_defaults()
    methods = sorted({m for d, m in records if d == datasets[0]})
    assert len(methods) == n_methods

    def by_dataset(metric):
        return pd.DataFrame({m: [np.mean(records[d, m][metric]) for d in datasets] for m in methods})

    accuracies, losses, errors = map(by_dataset, ("test_accuracy", "log_loss", "calibration_error"))
    # of printed figures, as in the report
    of_accuracy = (100 * accuracies).round(2).rank(axis=1, ascending=False).mean()
    of_loss = losses.round(4).rank(axis=1).mean()
    text = (ROOT / "README.md").read_text()
    for m in methods:
        means = f"{100 * accuracies[m].mean():.2f} | {losses[m].mean():.3f} | {errors[m].mean():.3f}"
        row = f"| {means} | {of_accuracy[m]:.2f} | {of_loss[m]:.2f} |"
        assert re.search(rf"^\| \**{m}\** {re.escape(row)}$", text, re.MULTILINE), (m, row)


def test_the_readme_tells_the_means_without_monks_3():
    records, text = shipped_defaults(), (ROOT / "README.md").read_text()
    datasets = [d for d in GROUPS["uci24"] if d != "monks-3"]
    for m in ("edRVFL portfolio", "CatBoost"):
        accuracy = 100 * np.mean([np.mean(records[d, m]["test_accuracy"]) for d in datasets])
        loss = np.mean([np.mean(records[d, m]["log_loss"]) for d in datasets])
        assert f"at {accuracy:.2f} and {loss:.3f}" in " ".join(text.split()), m
