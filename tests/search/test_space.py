"""Which configurations are tried."""

import pytest
from scipy import stats

from edrvfl import EDRVFLClassifier, EDRVFLRegressor, paper_configurations, variant
from edrvfl._search.space import draw_configurations


def draw(distributions, n_iter, seed=0):
    return draw_configurations(EDRVFLClassifier(), distributions, n_iter, seed)


def test_200_configurations_are_20_hidden_settings_with_10_read_outs():
    drawn = paper_configurations(200, random_state=0)
    hidden = {tuple(c[k] for k in ("n_hidden", "norm_scale", "norm_shift", "prune_rate")) for c in drawn}
    assert len(drawn) == 200
    assert len(hidden) == 20
    box = {"n_hidden": (20, 1000), "norm_scale": (0.5, 2), "norm_shift": (-2, 2), "prune_rate": (0, 0.999)}
    box |= {"regularization": (2.0**-12, 2.0**12), "correct_weight": (0.001, 1)}
    for name, (low, high) in box.items():
        assert all(low <= c[name] <= high for c in drawn), name
    assert sum(c["prune_rate"] == 0 for c in drawn) == 40
    assert sum(c["correct_weight"] == 1 for c in drawn) == 40
    with pytest.raises(ValueError, match="n_iter must be at least 1, got 0"):
        paper_configurations(0)


def test_methods_share_what_they_tune():
    few, many = (paper_configurations(30, 5, variant(name)) for name in ("edRVFL_N", "WPedRVFL"))
    assert all(one.items() < other.items() for one, other in zip(few, many, strict=True))
    assert many == paper_configurations(30, 5) == draw(None, 30, 5)
    tuned = {"n_hidden", "regularization"}
    assert set(paper_configurations(1, 0, variant("edRVFL_O"))[0]) == tuned
    assert set(paper_configurations(1, 0, variant("edRVFL_O", correct_weight=0.5))[0]) == tuned | {
        "correct_weight"
    }


def test_a_penalty_that_leave_one_out_chooses_is_not_drawn():
    weighted = paper_configurations(30, 5, EDRVFLClassifier(regularization="loo"))
    many = paper_configurations(30, 5)
    assert all(one.items() < other.items() for one, other in zip(weighted, many, strict=True))
    assert all("regularization" not in one and "correct_weight" in one for one in weighted)
    # without a read-out to tune, every configuration has a hidden setting of its own
    hidden = paper_configurations(30, 5, EDRVFLRegressor(prune_rate=0.2))
    assert len({tuple(one.values()) for one in hidden}) == 30
    assert set(hidden[0]) == {"n_hidden", "norm_scale", "norm_shift", "prune_rate"}
    numbers = paper_configurations(30, 5, EDRVFLRegressor(regularization=1.0, prune_rate=0.2))
    assert [one["prune_rate"] for one in numbers[::4]] == [one["prune_rate"] for one in hidden[:8]]
    assert all("regularization" in one for one in numbers)


def test_draws_are_hidden_settings_times_read_outs():
    space = {"n_hidden": stats.randint(5, 50), "regularization": stats.loguniform(0.1, 10)}
    drawn = draw(space, 200)
    assert len(drawn) == 200
    assert len({c["regularization"] for c in drawn}) == 200
    assert len({c["n_hidden"] for c in drawn}) <= 20
    assert all(5 <= c["n_hidden"] < 50 and 0.1 <= c["regularization"] <= 10 for c in drawn)
    assert drawn == draw(space, 200)
    assert drawn != draw(space, 200, seed=1)
    EDRVFLClassifier(**drawn[0])._validate_params()  # a whole number stays one


@pytest.mark.parametrize("n_iter", [1, 5, 11, 12, 200])
def test_lists_are_drawn_without_repetition(n_iter):
    space = {"activation": ["relu", "sin"], "regularization": [1.0, 2.0, 3.0], "correct_weight": [0.5, 1.0]}
    drawn = draw(space, n_iter)
    assert len(drawn) == len({tuple(sorted(c.items())) for c in drawn}) == min(n_iter, 12)
    assert len(draw([space, {"n_hidden": [1]}], n_iter)) == min(n_iter, 13)


def test_none_tries_every_combination_in_order():
    exact = [{"n_hidden": 10, "regularization": 4.0}, {"n_hidden": 5, "regularization": 2.0}]
    assert draw([{name: [value] for name, value in one.items()} for one in exact], None) == exact
    assert [c["n_hidden"] for c in draw({"n_hidden": [3, 1, 2]}, None)] == [3, 1, 2]


def test_whole_numbers_stay_whole():
    drawn = draw({"n_hidden": stats.randint(5, 50), "n_layers": stats.geom(0.5)}, 12)
    assert all(type(value) is int or hasattr(value, "__index__") for one in drawn for value in one.values())
    for one in drawn:
        EDRVFLClassifier(**one)._validate_params()
