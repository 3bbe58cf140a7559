import pytest

from edrvfl.bench import published
from edrvfl.bench.datasets import UCI24
from edrvfl.bench.published import Table, two_digits


def test_every_table_is_in_the_package():
    for name in published.TITLES:
        found = published.table(name)
        assert found.rows
        assert all(len(row) == len(found.columns) for row in found.rows)
    numbers = {name[5] for name in published.TITLES}
    assert numbers == set("12345678")


def test_an_unknown_table_names_the_known():
    with pytest.raises(ValueError, match="choose one of table1_datasets"):
        published.table("table9")


def test_table_3_has_the_datasets_of_the_study_in_the_papers_order():
    scores = published.accuracies()
    assert scores.datasets == tuple(UCI24) == published.table("table1_datasets").column("dataset")
    assert len(scores.methods) == 12
    assert scores.get("monks-3", "WPedRVFL") == 82.35
    assert published.standard_deviations().get("monks-3", "WPedRVFL") == 1.57


def test_all_twelve_means_and_ranks_follow_to_the_last_printed_digit():
    feet = published.feet()
    assert len(feet) == 12
    for foot in feet:
        assert foot.recomputed_mean == foot.mean
        assert foot.recomputed_rank == foot.rank
        assert foot.recomputed_sd == foot.sd
        assert not foot.differs
    in_table_4 = {
        r["method"]: float(r["average_rank"]) for r in published.table("table4_vs_wpedrvfl").records()
    }
    assert in_table_4 == {foot.method: foot.rank for foot in feet}
    in_table_6 = {r["method"]: float(r["average_std"]) for r in published.table("table6_std").records()}
    assert in_table_6 == {foot.method: foot.sd for foot in feet if foot.sd is not None}


def test_table_4_p_values_agree_for_three_methods_only():
    rows = {row.method: row for row in published.printed_p_values()}
    assert len(rows) == 11
    assert [m for m, row in rows.items() if not row.differs] == ["ResNet", "SCN", "BLS"]
    for method in ("ResNet", "SCN", "BLS"):
        assert two_digits(rows[method].comparison.p_normal) == "1.8e-5"
    pruned = rows["PedRVFL"]
    assert (two_digits(pruned.printed), two_digits(pruned.comparison.p_normal)) == ("1.7e-1", "3.4e-4")
    assert (pruned.comparison.wins, pruned.comparison.losses) == (21, 3)
    assert 0.01 < published.recomputed_pairs().p_value("WPedRVFL", "PedRVFL", adjust=True) < 0.013


def test_table_5_signs_that_do_not_follow():
    signs = {(s.row, s.column): s for s in published.printed_signs()}
    assert len(signs) == 12 * 11
    assert signs["WPedRVFL", "PedRVFL"].differs
    assert signs["WPedRVFL", "PedRVFL"].recomputed == signs["WPedRVFL", "PedRVFL"].recomputed_holm == "+"
    assert signs["WedRVFL", "SNN"].recomputed == "+"
    assert signs["SNN", "Highway"].recomputed == ""
    assert all(signs[b, a].differs == sign.differs for (a, b), sign in signs.items())


def test_settings_of_section_5_5_and_times_of_5_6():
    assert published.sensitivity_settings() == {"lambda": 1, "n": 500, "l": 3, "gamma": 1, "alpha": 0}
    assert published.training_seconds()["spambase", "SNN"] == 8.6586
    assert len(published.training_seconds()) == 10


def test_a_table_as_csv_quotes_what_it_must():
    text = Table("t", "T", ("a", "b"), (('x,"y', None), (1.5, 2))).to_csv()
    assert text == 'a,b\n"x,""y",\n1.5,2\n'
