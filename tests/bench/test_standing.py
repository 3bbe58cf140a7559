"""Lines of tuned methods and of methods as they come, in one ranking."""

import pytest
from report_samples import DATASETS, a_default, a_result, full_summary

from edrvfl.bench.comparison import average_ranks
from edrvfl.bench.defaults import Defaults
from edrvfl.bench.report.study import Study
from edrvfl.bench.report.summary import summarise


def standing_of(results, defaults=()):
    return summarise(Study(tuple(results), defaults=Defaults.of(defaults))).standing


def test_ranks_are_over_all_lines_and_the_subject_is_first_in_the_table():
    standing = full_summary().standing
    assert list(standing.scores)[:6] == [
        *("edRVFL portfolio", "WPedRVFL", "PedRVFL", "WedRVFL", "edRVFL_N", "edRVFL_O")
    ]
    assert standing.ranks == average_ranks(standing.scores)
    ranks = [standing.ranks[name] for name in standing.entries]
    assert ranks == sorted(ranks)
    assert standing.common == DATASETS


def test_one_configuration_of_a_peer_is_its_default_and_is_shown_once():
    datasets = DATASETS[:2]
    studied = [a_result("LightGBM", d, 70, configurations=1, noise=0) for d in datasets]
    standing = standing_of([*studied, *(a_result("RVFL", d) for d in datasets)])
    assert set(standing.entries) == {"LightGBM, default", "RVFL"}
    assert standing.entries["LightGBM, default"].configurations == "1"
    assert standing.means["LightGBM, default"] == 69.8, "strict"

    both = standing_of([*studied, a_result("RVFL", datasets[0])], [a_default(datasets[0], "LightGBM", 0.9)])
    found = both.entries["LightGBM, default"].results
    assert [found[d].scored["strict"].accuracy for d in datasets] == pytest.approx([90, 69.8])


def test_a_peer_has_two_lines_if_it_was_tuned_and_its_search_stands_apart():
    datasets = DATASETS[:3]
    tuned = [
        a_result("XGBoost", d, 80, configurations=n) for d, n in zip(datasets, (50, 12, 50), strict=True)
    ]
    once = a_result("XGBoost", datasets[0], 60, configurations=1)
    standing = standing_of([*tuned, once], [a_default(d, "XGBoost") for d in datasets])
    assert set(standing.entries) == {"XGBoost, tuned", "XGBoost, default"}
    assert standing.entries["XGBoost, tuned"].configurations == "12-50"
    assert (standing.entries["XGBoost, tuned"].kind, standing.entries["XGBoost, default"].kind) == (
        "peer",
    ) * 2
    summary = summarise(Study((*tuned, once)))
    assert summary.methods == ("XGBoost, tuned",)
    assert summary.extents == ((12, 2), (50, 2))


def test_one_configuration_of_ours_is_a_search_all_the_same():
    alone = a_result("RVFL", "glass", configurations=1)
    assert (alone.line, alone.tuned) == ("RVFL", True)


def test_lines_without_all_datasets_stand_last_and_are_not_ranked():
    results = [a_result(m, d) for m in "ab" for d in DATASETS[:4]]
    results += [a_result("most", d, 99) for d in DATASETS[:3]] + [a_result("few", DATASETS[0], 99)]
    standing = standing_of(results, [a_default("Chile", "LightGBM")])
    assert list(standing.entries)[2:] == ["most", "few"]
    assert set(standing.ranks) == {"a", "b"}
    assert len(standing.common) == 4


def test_where_no_line_has_all_datasets_the_largest_whole_table_counts():
    results = [a_result(m, d) for m in "ab" for d in DATASETS[:4] if (m, d) != ("a", DATASETS[0])]
    results += [a_result("c", DATASETS[1])]
    standing = standing_of(results)
    assert set(standing.ranks) == {"a", "b"}
    assert standing.common == DATASETS[1:4]


def test_defaults_alone_have_a_standing_on_the_papers_datasets():
    records = [
        a_default(d, m, a) for d in ("glass", "OJ") for m, a in (("LightGBM", 0.7), ("edRVFL bins", 0.8))
    ]
    standing = standing_of([], records)
    assert standing.datasets == ("glass",)
    assert list(standing.entries) == ["edRVFL bins", "LightGBM, default"]


def test_means_are_of_printed_figures_and_seconds_geometric():
    records = [
        a_default(d, "LightGBM", loss=loss, seconds=s) for d, loss, s in (("glass", 0.3, 1), ("bank", 0.6, 4))
    ]
    entry = standing_of([], records).entries["LightGBM, default"]
    assert entry.mean("log_loss", ("glass", "bank"), 4) == 0.45
    halves = standing_of([], [a_default(d, "LightGBM", loss=0.4345) for d in ("glass", "bank")])
    found = [halves.entries["LightGBM, default"].mean("log_loss", ("glass", "bank"), n) for n in (4, 3)]
    assert found == [0.4345, 0.435], "rounded once, half up"
    assert entry.seconds(("glass", "bank")) == pytest.approx(2)
    assert not entry.on_gpu
    old = standing_of([a_result("a", "glass")]).entries["a"]
    assert old.mean("calibration_error", ("glass",), 4) is None, "records of old did not measure it"
