import pytest

from edrvfl.bench import paper
from edrvfl.bench.data import UCI24
from edrvfl.bench.paper import two_digits


@pytest.mark.parametrize(
    "name",
    [
        "table1_datasets",
        "table2_search_box",
        "table3_accuracy",
        "table3_summary",
        "table4_vs_wpedrvfl",
        "table5_pairwise",
        "table6_std",
        "table7_sensitivity_settings",
        "table8_training_time",
    ],
)
def test_every_table_is_in_the_package(name):
    assert not paper.table(name).empty


def test_table_3_has_the_datasets_of_the_study_in_the_papers_order():
    scores = paper.accuracies()
    assert list(scores.index) == list(UCI24) == list(paper.table("table1_datasets").index)
    assert scores.shape == (24, 12)
    assert scores.loc["monks-3", "WPedRVFL"] == 82.35
    assert paper.standard_deviations().loc["monks-3", "WPedRVFL"] == 1.57


def test_who_changes_a_table_changes_only_an_own_copy():
    mine = paper.accuracies()
    mine.loc["monks-3", "WPedRVFL"] = 0.0
    assert paper.accuracies().loc["monks-3", "WPedRVFL"] == 82.35


def test_all_twelve_means_and_ranks_follow_to_the_last_printed_digit():
    feet = paper.feet()
    assert len(feet) == 12
    for foot in feet:
        assert foot.recomputed_mean == foot.mean
        assert foot.recomputed_rank == foot.rank
        assert foot.recomputed_sd == foot.sd
        assert not foot.differs
    assert paper.table("table4_vs_wpedrvfl")["average_rank"].to_dict() == {f.method: f.rank for f in feet}
    in_table_6 = paper.table("table6_std")["average_std"].to_dict()
    assert in_table_6 == {foot.method: foot.sd for foot in feet if foot.sd is not None}


def test_table_4_p_values_agree_for_three_methods_only():
    rows = {row.method: row for row in paper.printed_p_values()}
    assert len(rows) == 11
    assert [m for m, row in rows.items() if not row.differs] == ["ResNet", "SCN", "BLS"]
    for method in ("ResNet", "SCN", "BLS"):
        assert two_digits(rows[method].comparison.p_normal) == "1.8e-5"
    assert rows["BLS"].comparison.p_exact == pytest.approx(2 / 2**24)  # 24 wins
    pruned = rows["PedRVFL"]
    assert (two_digits(pruned.printed), two_digits(pruned.comparison.p_normal)) == ("1.7e-1", "3.4e-4")
    assert (pruned.comparison.wins, pruned.comparison.losses) == (21, 3)
    assert 0.01 < pruned.comparison.p_holm < 0.013


def test_table_5_signs_that_do_not_follow():
    signs = {(s.row, s.column): s for s in paper.printed_signs()}
    assert len(signs) == 12 * 11
    assert signs["WPedRVFL", "PedRVFL"].differs
    assert signs["WPedRVFL", "PedRVFL"].recomputed == "+"
    assert signs["WedRVFL", "SNN"].recomputed == "+"
    assert signs["SNN", "Highway"].recomputed == ""
    assert all(signs[b, a].differs == sign.differs for (a, b), sign in signs.items())


def test_settings_of_section_5_5_and_times_of_5_6():
    assert paper.sensitivity_settings() == {"lambda": 1, "n": 500, "l": 3, "gamma": 1, "alpha": 0}
    assert paper.training_seconds()["spambase", "SNN"] == 8.6586
    assert len(paper.training_seconds()) == 10
