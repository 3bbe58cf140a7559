"""The shipped study: its records can be read back, and the tables of the documents follow from them."""

import functools
import gzip
import json
import re
from decimal import ROUND_HALF_UP, Decimal
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import wilcoxon
from statsmodels.stats.multitest import multipletests

from edrvfl.bench.data import CONFIRMATION, FRAMES, GROUPS, VALUES
from edrvfl.bench.report.reasons import REASONS
from edrvfl.bench.store import Store

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "compare.md"
TABLE_3 = ROOT / "src" / "edrvfl" / "bench" / "published" / "table3_accuracy.csv"
PUBLISHED = pd.read_csv(TABLE_3, index_col="dataset")
FIVE = ("edRVFL_O", "edRVFL_N", "WedRVFL", "PedRVFL", "WPedRVFL")  # the paper's, without plain RVFL
TWELVE = ("SNN", "MSRAinit", "Highway", "ResNet", "SCN", "BLS", "H-ELM", *FIVE)


@pytest.fixture(scope="module")
def records(shipped_store):
    with Store(shipped_store, create=False) as store:
        # of several searches of one method the largest counts, as in the report
        found = sorted(store.records(), key=lambda r: r.n_configurations)
        return {(r.dataset, r.method): r for r in found}


def test_the_twelve_methods_are_complete(records):
    """What was tried and how many seeds, by method, on each of the 24 datasets."""
    extent = dict.fromkeys(FIVE, (200, 10)) | dict.fromkeys(("SCN", "BLS", "H-ELM"), (50, 10))
    for name in TWELVE:
        for dataset in GROUPS["uci24"]:
            record = records[dataset, name]
            assert record.status == "ok"
            assert (record.n_configurations, record.seeds) == extent.get(name, (24, 5))
            assert set(record.choices) == {"paper", "strict"}


def percent(record, choice):
    mean = 100 * record.choices[choice].mean_and_sd()[0]
    return Decimal(repr(round(mean, 9))).quantize(Decimal("0.01"), ROUND_HALF_UP)  # without the noise of sums


@pytest.fixture(scope="module")
def measured(records):
    """Mean accuracies (dataset, method) by both choices; NaN where a method was not run."""
    return {
        choice: pd.DataFrame(
            {
                m: {d: float(percent(records[d, m], choice)) for d in GROUPS["uci24"] if (d, m) in records}
                for m in (*TWELVE, "dRVFL", "RVFL")
            }
        ).reindex(GROUPS["uci24"])
        for choice in ("paper", "strict")
    }


def mean_of(figures):
    """The mean of figures of two digits, exactly, rounded half up."""
    exact = sum(Decimal(f"{figure:.2f}") for figure in figures) / len(figures)
    return exact.quantize(Decimal("0.01"), ROUND_HALF_UP)


def span(values):
    return " to ".join(str(value) for value in sorted({min(values), max(values)}))


def test_the_page_prints_what_was_measured(records, measured):
    """The table of the twelve methods: what was tried, the means by both choices, and the ranks."""
    printed = re.findall(
        r"^\| \**([\w-]+)\** \| (\d+(?: to \d+)?) \| (\d+(?: to \d+)?) \| (\d+) \| (.*) \|$",
        PAGE.read_text(),
        re.MULTILINE,
    )
    assert {row[0] for row in printed} == {*TWELVE, "dRVFL", "RVFL"}
    whole = measured["strict"][list(TWELVE)].dropna().index
    assert f"rank on {len(whole)} datasets" in PAGE.read_text()
    frames = (PUBLISHED, measured["paper"], measured["strict"])
    ranks = [frame.loc[whole, list(TWELVE)].rank(axis=1, ascending=False).mean() for frame in frames]
    order = [row[0] for row in printed]
    assert order[:12] == sorted(order[:12], key=lambda m: round(ranks[2][m], 2))
    for name, tried, seeds, datasets, figures in printed:
        own = measured["strict"][name].dropna().index
        assert int(datasets) == len(own), name
        assert tried == span([records[d, name].n_configurations for d in own]), name
        assert seeds == span([records[d, name].seeds for d in own]), name
        means = [f"{mean_of(f[name][own]):.2f}" if name in f else "\N{EN DASH}" for f in frames]
        shown = ", ".join(f"{rank[name]:.2f}" for rank in ranks) if name in TWELVE else "\N{EN DASH}"
        assert figures == " | ".join([*means, shown]), name


def test_the_page_tells_whom_wpedrvfl_beats(measured):
    text = " ".join(PAGE.read_text().split())
    others = [m for m in TWELVE if m != "WPedRVFL"]
    gains = {
        m: (measured["strict"]["WPedRVFL"] - measured["strict"][m]).dropna()
        for m in (*others, "dRVFL", "RVFL")
    }
    p = {m: wilcoxon(gains[m], method="asymptotic").pvalue for m in others}
    table = measured["strict"]
    pairs = list(combinations(TWELVE, 2))
    all_p = [wilcoxon(table[a] - table[b], method="asymptotic").pvalue for a, b in pairs]
    among_all = dict(zip(pairs, multipletests(all_p, method="holm")[1], strict=True))
    among_eleven = dict(zip(others, multipletests(list(p.values()), method="holm")[1], strict=True))
    named = re.search(r"WPedRVFL is significantly ahead of (\S+) \(Wilcoxon .*? also of (\S+)\)", text)
    ahead = [m for m in others if gains[m].mean() > 0]
    assert {m for m in ahead if among_all[m, "WPedRVFL"] < 0.05} == {named[1]}
    assert {m for m in ahead if among_eleven[m] < 0.05} == {named[1], named[2]}
    for m in ("RVFL", "dRVFL"):
        assert re.search(rf"\b{m}, one [a-z -]*,( is)? {gains[m].mean():.1f}\b", text), m
    assert f"{-gains['PedRVFL'].mean():.2f} points apart" in text


def test_the_page_tells_where_figures_differ_from_the_published(measured):
    text = " ".join(PAGE.read_text().split())
    gaps = measured["paper"][list(TWELVE)] - PUBLISHED[list(TWELVE)]
    assert abs(gaps["edRVFL_O"].mean()) < 0.005
    assert (
        f"within {gaps[['SCN', 'SNN', 'MSRAinit', 'Highway']].mean().abs().max() + 0.05:.1f} points" in text
    )
    ours, bls = gaps["WPedRVFL"], gaps["BLS"]
    assert f"WPedRVFL is {-ours.mean():.1f} below. monks-3 makes {-ours['monks-3'] / 24:.1f} of it" in text
    rest = [d for d in GROUPS["uci24"] if d != "monks-3"]
    means = [f"{frame['WPedRVFL'][rest].mean():.2f}" for frame in (measured["paper"], PUBLISHED)]
    assert f"at {means[0]} against {means[1]}" in text
    glass = [f"{frame['WPedRVFL']['glass']:.2f}" for frame in (measured["paper"], PUBLISHED)]
    assert ours.drop("monks-3").idxmin() == "glass"
    assert f"({glass[0]} against {glass[1]})" in text
    assert f"BLS is {bls.mean():.1f} above, of which {bls.idxmax()} makes {bls.max() / 24:.1f}" in text
    resnet = gaps["ResNet"].nsmallest(5)
    named = re.search(r"ResNet is (\S+) below: (.*?) make (\S+) of it", text).groups()
    assert named[0] == f"{-gaps['ResNet'].mean():.1f}"
    assert re.split(r", | and ", named[1]) == list(resnet.index)
    assert named[2] == f"{-resnet.sum() / 24:.1f}"
    shares = {"WPedRVFL": -ours["monks-3"], "BLS": bls.max(), "ResNet": -resnet.sum()}
    for m, share in shares.items():  # the report gives the same reasons
        assert f"{share / 24:.1f} of the {abs(gaps[m].mean()):.1f} points" in REASONS[m]
    lost = (measured["paper"] - measured["strict"])["Highway"].mean()
    assert f"Highway lose {lost:.1f} points from the paper's choice to the strict one" in text


def test_the_page_prints_what_the_peers_reached(records):
    text = PAGE.read_text()
    names = {"random forest": "RandomForest", "logistic regression": "LogisticRegression"}
    printed = re.search(r"nothing tuned\): (.*?)\. The tree", text, re.DOTALL)[1]
    figures = re.findall(r"([A-Za-z][\w -]*?) (\d\d\.\d\d)", printed)
    assert len(figures) == 6
    for name, figure in figures:
        name = names.get(name.strip(), name.strip())
        mean = sum(percent(records[d, name], "strict") for d in GROUPS["uci24"]) / 24
        assert abs(mean - Decimal(figure)) < Decimal("0.006"), name


def test_the_page_prints_the_values_that_were_measured():
    records, datasets = shipped_defaults("values"), tuple(VALUES)
    methods = sorted({m for _, m in records})
    assert len(methods) == 8
    r2 = pd.DataFrame({m: [np.mean(records[d, m]["r2"]) for d in datasets] for m in methods})
    ranks = r2.round(4).rank(axis=1, ascending=False).mean()
    text = PAGE.read_text()
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
def test_the_page_prints_the_defaults_that_were_measured(datasets, n_methods):
    records = shipped_defaults()
    methods = sorted({m for d, m in records if d == datasets[0]})
    assert len(methods) == n_methods

    def by_dataset(metric):
        return pd.DataFrame({m: [np.mean(records[d, m][metric]) for d in datasets] for m in methods})

    accuracies, losses, errors = map(by_dataset, ("test_accuracy", "log_loss", "calibration_error"))
    # of printed figures, as in the report
    of_accuracy = (100 * accuracies).round(2).rank(axis=1, ascending=False).mean()
    of_loss = losses.round(4).rank(axis=1).mean()
    text = PAGE.read_text()
    for m in methods:
        means = f"{100 * accuracies[m].mean():.2f} | {losses[m].mean():.3f} | {errors[m].mean():.3f}"
        row = f"| {means} | {of_accuracy[m]:.2f} | {of_loss[m]:.2f} |"
        assert re.search(rf"^\| \**{m}\** {re.escape(row)}$", text, re.MULTILINE), (m, row)


def test_the_page_tells_the_means_without_monks_3():
    records, text = shipped_defaults(), PAGE.read_text()
    datasets = [d for d in GROUPS["uci24"] if d != "monks-3"]
    for m in ("edRVFL portfolio", "CatBoost"):
        accuracy = 100 * np.mean([np.mean(records[d, m]["test_accuracy"]) for d in datasets])
        loss = np.mean([np.mean(records[d, m]["log_loss"]) for d in datasets])
        assert f"at {accuracy:.2f} and {loss:.3f}" in " ".join(text.split()), m
