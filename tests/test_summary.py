"""Notebooks show scikit-learn's picture of an estimator, and below it what was fitted, in safe HTML."""

from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, clone
from small_models import NAMES, SMALL, numbers, small_model

from edrvfl import EDRVFLClassifier, EDRVFLPortfolioClassifier, EDRVFLSearchCV, TabularEncoder, load

MARK = '<div class="edrvfl-fitted"'
VOID = {"br", "input", "meta", "link", "img", "hr"}


class Reader(HTMLParser):
    """Collects text and cells, and refuses tags that are not closed in order."""

    def __init__(self):
        super().__init__()
        self.open, self.rows, self.text = [], [], ""

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def read(model):
    """Return what is shown below scikit-learn's picture."""
    shown = model._repr_html_()
    assert shown.count(MARK) == 1
    reader = Reader()
    reader.feed(shown[shown.index(MARK) :])
    assert reader.open == []
    return reader


@pytest.mark.parametrize("name", NAMES)
def test_every_fitted_model_says_more_than_scikit_learn_and_no_other(name):
    model, _ = small_model(name)
    shown = model._repr_html_()
    before = shown[: shown.index(MARK)]
    assert "<summary>Parameters</summary>" in before
    assert "<summary>Fitted attributes</summary>" in before
    assert read(model).text
    assert model._repr_mimebundle_()["text/html"].count(MARK) == 1
    plain = clone(model)._repr_html_()
    assert MARK not in plain
    assert "<summary>Parameters</summary>" in plain
    assert type(model).__repr__ is BaseEstimator.__repr__  # the text is scikit-learn's


def test_a_network_shows_depth_widths_and_leave_one_out():
    model, _ = small_model("classifier")
    shown = read(model)
    accuracy, loss = model.loo_accuracies_[-1], model.loo_log_losses_[-1]
    assert "3 layers of 12 neurons. 3 columns, encoded as 3." in shown.text
    assert f"Leave-one-out: accuracy {accuracy:.4f}, log-loss {loss:.4f}." in shown.text
    assert shown.rows[0] == ["layer", "kept neurons", "penalty", "accuracy", "log-loss"]
    assert [row[3] for row in shown.rows[1:]] == [f"{figure:.4f}" for figure in model.loo_accuracies_]
    assert [row[1] for row in shown.rows[1:]] == [str(kept) for kept in model.neurons_kept_]
    assert "one read-out over all layers" in read(small_model("classifier_joint")[0]).text
    assert "No leave-one-out figures" in read(small_model("classifier_plain")[0]).text


def test_a_prefix_shows_the_figures_of_the_depth_that_answers():
    model, _ = small_model("regressor_several")
    shown = read(model)
    assert model.n_layers_ < len(model.loo_r2_scores_)
    assert f"{model.n_layers_} of 3 answer" in shown.text
    assert f"R^2 {model.loo_r2_scores_[model.n_layers_ - 1]:.4f}." in shown.text
    assert len(shown.rows) == 1 + 3


def test_a_portfolio_shows_its_members():
    model, _ = small_model("portfolio")
    shown = read(model)
    weights = sorted(model.members_["weight"], reverse=True)
    assert [row[1] for row in shown.rows[1:]] == [f"{weight:.4g}" for weight in weights]
    assert f"log-loss {model.loo_log_loss_:.4f}." in shown.text
    (kernel,) = (row for row in shown.rows if row[0] == "k")
    assert kernel[2:4] == ["", ""]  # it has no layers


def test_a_kernel_and_an_encoder_show_what_they_are():
    kernel, _ = small_model("kernel")
    different = len(kernel.model_.voter.landmarks)  # two of the 60 rows are copies
    assert different == 58
    assert f"over {different} training rows, bandwidth {kernel.bandwidth_:g}" in read(kernel).text
    encoder, X = small_model("encoder")
    rows = {row[0]: row[1:] for row in read(encoder).rows[1:]}
    assert rows["ü"][0] == rows["b"][0] == "categories"
    assert sum(int(row[1]) for row in rows.values()) == encoder.transform(X).shape[1]


def test_a_search_shows_what_it_chose_and_the_winner():
    X, codes, _ = numbers()
    search = EDRVFLSearchCV(EDRVFLClassifier(**SMALL), {"n_hidden": [4, 6]}, n_iter=None, cv=2)
    shown = read(search.fit(X, codes))
    assert ["n_hidden", str(search.best_params_["n_hidden"])] in shown.rows
    assert f"2 splits: {search.best_score_:.4g}, of 6 that were tried" in shown.text
    assert f"{search.best_estimator_.n_layers_} layer" in shown.text
    search.set_params(refit=False).fit(X, codes)
    assert "neurons" not in read(search).text  # nothing was refitted
    assert read(search.set_params(refit=True)).text == read(search.set_params(refit=False)).text


def test_of_many_columns_the_first_are_shown():
    encoder = TabularEncoder().fit(np.eye(3, 1234))
    shown = read(encoder)
    assert [row[0] for row in shown.rows[1:]] == [f"x{j}" for j in range(100)]
    assert "1,234 columns become" in shown.text
    assert shown.text.endswith("and 1,134 more")


def test_parameters_that_are_set_after_a_fit_change_nothing_below():
    X, codes, _ = numbers()
    model = EDRVFLClassifier(**SMALL).fit(X, codes)
    before = read(model).text
    assert read(model.set_params(n_hidden=99, n_layers=7, calibration=None)).text == before


def test_names_cannot_put_tags_into_the_page():
    X = pd.DataFrame({"<script>alert(1)</script>": ["a&b", "c"], "x": [1.0, 2.0]})
    shown = TabularEncoder(min_frequency=1).fit(X)._repr_html_()
    assert "<script>alert" not in shown
    assert "&lt;script&gt;alert(1)" in shown[shown.index(MARK) :]
    Xn, codes, _ = numbers()
    members = [("<b>&", EDRVFLClassifier(n_hidden=4, n_layers=1))]
    portfolio = EDRVFLPortfolioClassifier(members=members, random_state=0).fit(Xn, codes)
    assert read(portfolio).rows[1][0] == "<b>&"
    assert "<b>&" not in portfolio._repr_html_()


@pytest.mark.parametrize("name", ["classifier", "kernel_values", "portfolio"])
def test_a_model_from_a_file_shows_the_same(name, tmp_path):
    model, _ = small_model(name)
    model.save(tmp_path / "model.edrvfl")
    assert read(load(tmp_path / "model.edrvfl")).text == read(model).text
