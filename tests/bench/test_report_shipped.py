"""The first screen of the shipped records, computed again with NumPy and SciPy alone."""

import gzip
import json
import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from report_samples import cells
from scipy import stats
from test_figure_labels import check_names_are_apart

from edrvfl.bench.report.front import make_front
from edrvfl.bench.report.sections.published import show_published
from edrvfl.bench.report.study import read_study
from edrvfl.bench.report.summary import summarise

SHIPPED = Path(__file__).parents[2] / "results" / "study.jsonl.gz"
PEERS = ("RBF-SVM", "RandomForest", "HistGradientBoosting", "LightGBM", "XGBoost", "CatBoost")
PEERS += ("LogisticRegression",)
PAPERS = ("SNN", "MSRAinit", "Highway", "ResNet", "SCN", "BLS", "H-ELM")
PAPERS += ("edRVFL_O", "edRVFL_N", "WedRVFL", "PedRVFL", "WPedRVFL")


def printed(value, digits):
    """Round half up, with room for noise below the ninth digit."""
    return np.floor(value * 10**digits + 0.5 + 1e-7) / 10**digits


@pytest.fixture(scope="module")
def summary(shipped_store):
    return summarise(read_study(shipped_store))


@pytest.fixture(scope="module")
def front(summary):
    return make_front(summary)


def test_names_in_figures_lie_apart(front, summary):
    names = check_names_are_apart(front.picture.draw(front.picture.table))
    assert set(names) == set(front.picture.table["method"])
    (scatter,) = show_published(summary).pictures
    assert check_names_are_apart(scatter.draw(scatter.table))


@pytest.fixture(scope="module")
def lines():
    """The figures that the screen must show: method -> dataset -> metrics, read without the library."""
    with gzip.open(SHIPPED, "rt") as text:
        rows = [row for row in map(json.loads, text) if row["line"] == "record"]
    searched = [row["record"] for row in rows if row["kind"] == "study" and row["record"]["status"] == "ok"]
    searched.sort(key=lambda r: (r["n_configurations"], r["seeds"], r["finished"]))  # the last one counts
    datasets, found = {r["dataset"] for r in searched}, {}
    for r in searched:
        tuned = r["method"] not in PEERS or r["n_configurations"] > 1
        name = r["method"] + ("" if r["method"] not in PEERS else ", tuned" if tuned else ", default")
        tried, strict = r["n_configurations"] if tuned else 1, r["choices"]["strict"]
        found.setdefault(name, {})[r["dataset"]] = {**strict, "configurations": tried}
    for r in (row["record"] for row in rows if row["kind"] == "defaults"):
        if r["dataset"] in datasets and r["status"] == "ok":
            name = r["method"] + (", default" if r["method"] in PEERS else "")
            found.setdefault(name, {})[r["dataset"]] = {**r, "configurations": 1}
    return found


@pytest.fixture(scope="module")
def accuracies(lines):
    """Printed accuracies of the methods that have all datasets, datasets in one order."""
    datasets = sorted({d for by_dataset in lines.values() for d in by_dataset})
    assert len(datasets) == 24
    whole = [m for m, by_dataset in lines.items() if len(by_dataset) == len(datasets)]
    return {
        m: np.array([printed(100 * np.mean(lines[m][d]["test_accuracy"]), 2) for d in datasets])
        for m in whole
    }


def test_every_figure_of_the_table(front, lines, accuracies):
    rows = cells(front.grid)
    assert set(rows) == set(lines)
    table = np.column_stack(list(accuracies.values()))
    ranks = dict(zip(accuracies, stats.rankdata(-table, axis=1).mean(axis=0), strict=True))
    order = [head for head in rows if head in ranks]
    assert list(rows)[: len(order)] == order, "what is not complete stands last"
    assert [ranks[m] for m in order] == sorted(ranks.values())
    for name, row in rows.items():
        tried = sorted({one["configurations"] for one in lines[name].values()})
        assert row["configurations tried"].text == "-".join(
            str(n) for n in dict.fromkeys((tried[0], tried[-1]))
        )
        if name not in accuracies:
            assert row["accuracy %"].text == f"{len(lines[name])} of 24"
            continue
        assert float(row["accuracy %"].text) == pytest.approx(accuracies[name].mean(), abs=0.0051)
        assert float(row["average rank"].text) == pytest.approx(ranks[name], abs=0.0051)
        for metric, column in (("log_loss", "log-loss"), ("calibration_error", "calibration error")):
            of_all = [one.get(metric) for one in lines[name].values()]
            if None in of_all:
                assert row[column].text == "missing"
            else:
                expected = np.mean([printed(np.mean(one), 4) for one in of_all])
                assert float(row[column].text) == pytest.approx(expected, abs=0.00051)
        seconds = stats.gmean([np.median(one["fit_seconds"]) for one in lines[name].values()])
        assert float(row["seconds of a fit"].text.split()[0]) == pytest.approx(seconds, rel=0.051)


def best_boosting(accuracies, said):
    """The tuned boosting package of the best average rank, of several the one that is named, and its mean."""
    table = np.column_stack(list(accuracies.values()))
    ranks = dict(zip(accuracies, stats.rankdata(-table, axis=1).mean(axis=0), strict=True))
    packages = [f"{m}, tuned" for m in PEERS if "oost" in m or m == "LightGBM"]
    least = min(ranks[m] for m in packages if m in ranks)
    tied = [m for m in packages if m in ranks and ranks[m] < least + 1e-9]
    best = next((m for m in tied if f"(best: {m.removesuffix(', tuned')}," in said), tied[0])
    return best, printed(accuracies[best].mean(), 2)


def test_the_first_sentence(front, lines, accuracies):
    said = front.answer[0].replace("\N{NO-BREAK SPACE}", " ")
    whole = [m for m in PAPERS if m in accuracies]
    among = "the paper's 12" if len(whole) == 12 else f"the {len(whole)} of the paper's 12"
    assert said.startswith(f"Among {among} methods")

    def p_value(a, b):
        return stats.wilcoxon(
            (accuracies[a] - accuracies[b]).round(2), zero_method="wilcox", correction=False, method="approx"
        ).pvalue

    def adjusted(methods):
        """Holm's p-values of all pairs."""
        pairs = list(combinations(methods, 2))
        p = np.array([p_value(a, b) for a, b in pairs])
        found, worst = {}, 0.0
        for place, k in enumerate(np.argsort(p)):
            worst = min(1.0, max(worst, (len(p) - place) * p[k]))
            found[frozenset(pairs[k])] = worst
        return found

    holm = adjusted(whole)
    mine = accuracies["WPedRVFL"]
    clear = [m for m in whole if m != "WPedRVFL" and holm[frozenset((m, "WPedRVFL"))] < 0.05]
    better = sum((mine - accuracies[m]).mean() > 0 for m in clear)
    counts = re.search(r"clearly better than (\w+) of the other (\d+) and clearly worse than (\w+)", said)
    expected = (str(better or "none"), str(len(whole) - 1), str(len(clear) - better or "none"))
    assert counts.groups() == expected
    (name, share), every = best_boosting(accuracies, said), adjusted(accuracies)
    p = every[frozenset(("WPedRVFL", name))]
    clear = "significant" if p < 0.05 else "not significant"
    wins = (mine > accuracies[name]).sum()
    assert (
        f"(best: {name.removesuffix(', tuned')}, {share:.2f} %; ahead on {wins} of 24, {clear} among " in said
    )
    assert float(re.search(r"p = ([^)]+)\)", said)[1]) == pytest.approx(p, rel=0.051), (
        "adjusted over all pairs"
    )
