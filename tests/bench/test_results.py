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
    """Mean accuracies (dataset, method) by both choices."""
    return {
        choice: pd.DataFrame(
            {
                m: {d: float(percent(records[d, m], choice)) for d in GROUPS["uci24"]}
                for m in (*TWELVE, "dRVFL", "RVFL")
            }
        )
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
    block = re.search(r"<!-- twelve -->(.*?)<!-- /twelve -->", PAGE.read_text(), re.DOTALL)[1]
    printed = re.findall(r"^\| \**([\w-]+)\** \| (\d+) \| (\d+) \| (.*) \|$", block, re.MULTILINE)
    assert {row[0] for row in printed} == {*TWELVE, "dRVFL", "RVFL"}
    frames = (PUBLISHED, measured["paper"], measured["strict"])
    ranks = [frame[list(TWELVE)].rank(axis=1, ascending=False).mean() for frame in frames]
    order = [row[0] for row in printed]
    assert order[:12] == sorted(order[:12], key=lambda m: round(ranks[2][m], 2))
    for name, tried, seeds, figures in printed:
        own = [records[d, name] for d in GROUPS["uci24"]]
        assert tried == span([r.n_configurations for r in own]), name
        assert seeds == span([r.seeds for r in own]), name
        means = [f"{mean_of(f[name]):.2f}" if name in f else "\N{EN DASH}" for f in frames]
        shown = ", ".join(f"{rank[name]:.2f}" for rank in ranks) if name in TWELVE else "\N{EN DASH}"
        assert figures == " | ".join([*means, shown]), name


def test_the_page_tells_whom_wpedrvfl_beats(measured):
    text = " ".join(PAGE.read_text().split())
    others = [m for m in TWELVE if m != "WPedRVFL"]
    table = measured["strict"]
    gains = {m: table["WPedRVFL"] - table[m] for m in (*others, "dRVFL", "RVFL")}
    p = {
        (a, b): wilcoxon(table[a] - table[b], method="asymptotic").pvalue for a, b in combinations(TWELVE, 2)
    }
    among_all = dict(zip(p, multipletests(list(p.values()), method="holm")[1], strict=True))
    own = [p[m, "WPedRVFL"] for m in others]
    among_eleven = dict(zip(others, multipletests(own, method="holm")[1], strict=True))
    named = re.search(r"WPedRVFL is significantly ahead of (\S+) \(Wilcoxon .*? also of (\S+)\)", text)
    ahead = [m for m in others if gains[m].mean() > 0]
    assert {m for m in ahead if among_all[m, "WPedRVFL"] < 0.05} == {named[1]}
    assert {m for m in ahead if among_eleven[m] < 0.05} == {named[1], named[2]}
    for m in ("RVFL", "dRVFL"):
        assert re.search(rf"\b{m}, one [a-z -]*,( is)? {gains[m].mean():.1f}\b", text), m
    assert f"whose mean is {-gains['PedRVFL'].mean():.2f} points higher" in text


def test_the_page_tells_where_figures_differ_from_the_published(measured):
    text = " ".join(PAGE.read_text().split())
    gaps = measured["paper"][list(TWELVE)] - PUBLISHED[list(TWELVE)]
    assert abs(gaps["edRVFL_O"].mean()) < 0.005
    assert (
        f"within {gaps[['SCN', 'SNN', 'MSRAinit', 'Highway']].mean().abs().max() + 0.05:.1f} points" in text
    )
    ours, bls = gaps["WPedRVFL"], gaps["BLS"]
    assert f"WPedRVFL is {-ours.mean():.1f} below. monks-3 makes {-ours['monks-3'] / 24:.1f} of it" in text
    monks = [f"{frame['WPedRVFL']['monks-3']:.2f}" for frame in (PUBLISHED, measured["paper"])]
    assert f"(published {monks[0]}, measured {monks[1]}:" in text
    rest = [d for d in GROUPS["uci24"] if d != "monks-3"]
    means = [f"{frame['WPedRVFL'][rest].mean():.2f}" for frame in (measured["paper"], PUBLISHED)]
    assert f"at {means[0]} against {means[1]}" in text
    glass = [f"{frame['WPedRVFL']['glass']:.2f}" for frame in (measured["paper"], PUBLISHED)]
    assert ours.drop("monks-3").idxmin() == "glass"
    assert f"({glass[0]} against {glass[1]})" in text
    assert f"BLS is {bls.mean():.1f} above, of which {bls.idxmax()} makes {bls.max() / 24:.1f}" in text
    resnet = gaps["ResNet"].nsmallest(5)
    named = re.search(r"ResNet is (\S+) below: (.*?) cost (\S+) points", text).groups()
    assert named[0] == f"{-gaps['ResNet'].mean():.1f}"
    assert re.split(r", | and ", named[1]) == list(resnet.index)
    assert named[2] == f"{-resnet.sum() / 24:.1f}"
    for m, share in {"WPedRVFL": -ours["monks-3"], "BLS": bls.max()}.items():  # so says the report
        assert f"{share / 24:.1f} of the {abs(gaps[m].mean()):.1f} points" in REASONS[m]
    assert f"{named[1]} cost {named[2]} points" in REASONS["ResNet"]
    lost = (measured["paper"] - measured["strict"])["Highway"].mean()
    assert f"Highway lose {lost:.1f} points from the paper's choice to the strict one" in text


TUNED = ("LightGBM", "XGBoost", "HistGradientBoosting", "RandomForest", "RBF-SVM")


def test_the_page_prints_what_tuned_peers_reached(records):
    """The table of tuned peers, beside themselves at their defaults, WPedRVFL and the portfolio."""
    block = re.search(r"<!-- tuned -->(.*?)<!-- /tuned -->", PAGE.read_text(), re.DOTALL)[1]
    printed = {
        cells[0].strip("*"): cells[1:]
        for line in block.strip().splitlines()[2:]
        for cells in [[cell.strip() for cell in line.strip("|").split("|")]]
    }
    assert set(printed) == {*TUNED, "WPedRVFL", "edRVFL portfolio"}
    defaults, datasets = shipped_defaults(), GROUPS["uci24"]
    strict = pd.DataFrame(
        {
            m: [float(percent(records[d, m], "strict")) for d in datasets]
            for m in printed
            if m != "edRVFL portfolio"
        }
    )
    strict["edRVFL portfolio"] = [
        round(100 * np.mean(defaults[d, "edRVFL portfolio"]["test_accuracy"]), 2) for d in datasets
    ]
    ranks = strict.rank(axis=1, ascending=False).mean()
    for m, (tried, by_paper, by_strict, rank, loss, as_it_comes, its_loss) in printed.items():
        assert rank == f"{ranks[m]:.2f}", m
        if m != "WPedRVFL":
            found = [defaults[d, m] for d in datasets]
            assert as_it_comes == f"{100 * np.mean([np.mean(r['test_accuracy']) for r in found]):.2f}", m
            assert its_loss == f"{np.mean([np.mean(r['log_loss']) for r in found]):.3f}", m
        if m != "edRVFL portfolio":
            found = [records[d, m] for d in datasets]
            assert tried == span([r.n_configurations for r in found]), m
            for choice, figure in (("paper", by_paper), ("strict", by_strict)):
                assert figure == str(mean_of([percent(r, choice) for r in found])), m
            assert (
                loss == f"{np.mean([r.choices['strict'].mean_and_sd('log_loss')[0] for r in found]):.3f}"
            ), m
    assert list(printed) == sorted(printed, key=lambda m: round(ranks[m], 2))


def test_the_page_tells_where_the_portfolio_stands_among_tuned_peers(records):
    text, defaults, datasets = " ".join(PAGE.read_text().split()), shipped_defaults(), GROUPS["uci24"]

    def ours(metric, some=datasets):
        return np.array([np.mean(defaults[d, "edRVFL portfolio"][metric]) for d in some])

    def tuned(m, metric="test_accuracy", some=datasets):
        return np.array([records[d, m].choices["strict"].mean_and_sd(metric)[0] for d in some])

    won = [
        100 * (tuned(m) - [np.mean(defaults[d, m]["test_accuracy"]) for d in datasets]).mean() for m in TUNED
    ]
    assert f"gains LightGBM {won[0]:.1f} points, XGBoost {won[1]:.1f} and HistGradientBoosting none" in text
    assert abs(won[2]) < 0.05
    behind = [100 * (tuned(m) - tuned("WPedRVFL")).mean() for m in TUNED[:4]]
    assert f"{min(behind):.1f} to {max(behind):.1f} points behind the tuned tree ensembles" in text
    few = {d for d in datasets if records[d, "LightGBM"].n_configurations < 50}
    assert len(few) == 7
    assert "on seven larger datasets it had time for fewer than 50 configurations" in text
    assert all(records[d, m].n_configurations == 50 for m in TUNED for d in set(datasets) - few)
    gains = np.round(100 * ours("test_accuracy"), 2) - np.round(100 * tuned("LightGBM"), 2)
    p = wilcoxon(gains).pvalue
    assert f"on {(gains > 0).sum()} of 24 datasets (Wilcoxon's p = {p:.3f}, of one pair)" in text
    assert f"by {gains.mean():.2f} points in the mean" in text
    least = np.min([tuned(m, "log_loss") for m in (*TUNED, "WPedRVFL")], axis=0)
    lowest = (ours("log_loss") < least).sum()
    assert f"the lowest log-loss of the seven on {lowest} datasets" in text
    eight = [
        d for d in datasets if (d, "CatBoost") in records and records[d, "CatBoost"].n_configurations > 1
    ]
    assert {records[d, "CatBoost"].n_configurations for d in eight} == {6}
    assert len(eight) == 8
    as_it_comes = np.mean([np.mean(defaults[d, "CatBoost"]["test_accuracy"]) for d in eight])
    means = tuned("CatBoost", some=eight).mean(), as_it_comes, ours("test_accuracy", eight).mean()
    said = "it reached {:.2f} there, at its defaults {:.2f}, the portfolio {:.2f}"
    assert said.format(*(100 * mean for mean in means)) in text


def test_the_readme_tells_how_the_study_ended(measured, records):
    text = " ".join((ROOT / "README.md").read_text().split())
    strict = measured["strict"][list(TWELVE)]
    assert strict.rank(axis=1, ascending=False).mean().idxmin() == "WPedRVFL"
    ours, by_paper, published = (mean_of(f["WPedRVFL"]) for f in (strict, measured["paper"], PUBLISHED))
    figures = f"(mean {ours} %; by the paper's own choice {by_paper}, where {published} was published)"
    assert f"the best average rank of the twelve {figures}" in text
    best = max(TUNED, key=lambda m: mean_of([percent(records[d, m], "strict") for d in GROUPS["uci24"]]))
    figure = mean_of([percent(records[d, best], "strict") for d in GROUPS["uci24"]])
    assert f"{best} tuned in the same way reaches {figure}" in text
    found = [np.mean(shipped_defaults()[d, "edRVFL portfolio"]["test_accuracy"]) for d in GROUPS["uci24"]]
    assert f"the portfolio, without a search, {100 * np.mean(found):.2f}" in text


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
