"""Files that someone changed are refused, or give a model that answers: never another error, never code."""

import dataclasses
import json
import struct
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from hostile import hostile, loaded, memory_below, outcome, rewritten, with_checksum, with_header
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import NAMES, all_answers, small_model

from edrvfl import load
from edrvfl._leaving.files.container import DIGITS
from edrvfl._leaving.files.models import RECORDS, packed_model

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def content():
    return packed_model(small_model("classifier")[0])


@settings(max_examples=100)
@given(seed=st.integers(0, 2**32), name=st.sampled_from(NAMES))
def test_changed_files_are_refused_or_answer(seed, name):
    model, X = small_model(name)
    kind, changed = hostile(packed_model(model), np.random.default_rng(seed))
    found = outcome(changed, lambda m: all_answers(m, X[:5]), all_answers(model, X[:5]))
    assert found in (("refused",) if kind == "flip" else ("refused", "equal", "different"))


@given(data=st.binary(max_size=300))
def test_any_bytes_are_refused(data):
    with pytest.raises(ValueError, match="It"):
        loaded(data)


@given(place=st.integers(0, 2**20), bit=st.integers(0, 7))
def test_any_flipped_bit_is_refused(content, place, bit):
    flipped = bytearray(content)
    flipped[place % len(content)] ^= 1 << bit
    with pytest.raises(ValueError, match=r"checksum|header|begin"):
        loaded(bytes(flipped))


@pytest.mark.parametrize("keep", [0, 7, 8, 50, 98, 99, 200, -1])
def test_a_cut_file_is_refused(content, keep, tmp_path):
    (tmp_path / "m").write_bytes(content[:keep])
    with pytest.raises(ValueError, match="cannot be loaded"):
        load(tmp_path / "m")


def test_a_header_that_is_too_long_is_refused_before_it_is_read(content):
    with pytest.raises(ValueError, match="header should have 18446744073709551615 bytes"):
        loaded(struct.pack("<Q", 2**64 - 1) + content[8:])


def entry(header):
    return header["network_.readouts.0"]


HEADERS = {
    "outside": (lambda h: entry(h).update(data_offsets=[0, 10**12]), "does not fit"),
    "negative": (lambda h: entry(h).update(data_offsets=[-8, 0]), "invalid offsets"),
    "backwards": (lambda h: entry(h).update(data_offsets=[800, 0]), "does not fit"),
    "bomb": (lambda h: entry(h).update(shape=[2**31, 2**31]), "does not fit"),
    "empty bomb": (
        lambda h: entry(h).update(shape=[0, 2**50], data_offsets=[0, 0]),
        "has a side that is longer",
    ),
    "overlap": (lambda h: entry(h).update(h["network_.readouts.1"]), "overlap"),
    "dtype": (lambda h: entry(h).update(dtype="OBJECT"), "unknown dtype"),
    "no shape": (lambda h: entry(h).pop("shape"), "should have a dtype"),
    "float length": (lambda h: entry(h).update(shape=[3.0, 16]), "invalid offsets"),
    "no description": (lambda h: h["__metadata__"].pop("edrvfl"), "no description"),
    "deep": (lambda h: h["__metadata__"].update(edrvfl="[" * 10**5 + "]" * 10**5), "not the JSON"),
    "nan": (lambda h: h["__metadata__"].update(edrvfl='{"version": NaN}'), "no number NaN"),
    "large": (lambda h: h["__metadata__"].update(edrvfl='{"version": 1e999}'), "too large"),
    "long": (lambda h: h["__metadata__"].update(edrvfl='{"version": ' + "9" * 5000 + "}"), "not the JSON"),
    "twice": (lambda h: h["__metadata__"].update(edrvfl='{"version": 1, "version": 1}'), "comes twice"),
}


@pytest.mark.parametrize(("change", "message"), HEADERS.values(), ids=HEADERS)
def test_headers_with_a_right_checksum_are_refused(content, change, message):
    with pytest.raises(ValueError, match=message):
        loaded(with_header(content, lambda header: change(header) and None))


def test_a_name_that_comes_twice_in_the_header_is_refused(content):
    (length,) = struct.unpack("<Q", content[:8])
    head = content[8 : 8 + length].rstrip()
    head = head[:-1] + b',"network_.classes":{"dtype":"I64","shape":[0],"data_offsets":[0,0]}}'
    with pytest.raises(ValueError, match="comes twice"):
        loaded(with_checksum(struct.pack("<Q", len(head)) + head + content[8 + length :]))


def network(tree):
    return tree["fitted"]["network_"]["fields"]


def deeper(tree, arrays):
    value = 1
    for _ in range(100):
        value = [value]
    tree["params"]["verbose"] = value


def put_nan(tree, arrays):
    arrays["network_.readouts.0"] = np.full_like(arrays["network_.readouts.0"], np.nan)


def other_shape(tree, arrays):
    arrays["network_.layers.1.scale"] = arrays["network_.layers.1.scale"][:-1]


def other_indices(tree, arrays):
    arrays["network_.layers.1.kept"] = arrays["network_.layers.1.kept"] + 10**6


TREES = {
    "nested": (deeper, "32 deep"),
    "NaN": (put_nan, "readouts.0` must be finite"),
    "shape": (other_shape, r"scale` must be an array of float64 of shape \(12\)"),
    "indices": (other_indices, "places from 0 to 11"),
    "wide": (lambda t, a: network(t).update(n_hidden=2**30), "an array of float64 of shape"),
    "negative": (lambda t, a: network(t).update(n_hidden=-1), "n_hidden` must be from 1"),
    "seed": (lambda t, a: network(t).update(seed=network(t)["seed"] + 1), "layer 1 are not those"),
    "activation": (lambda t, a: network(t).update(activation="eval"), "activation` must be one of"),
    "estimator": (lambda t, a: t.update(estimator="subprocess.Popen"), "this edrvfl knows EDRVFLClassifier"),
    "parameter": (lambda t, a: t["params"].update(shell=True), "no parameter 'shell' .* a later edrvfl"),
    "bad parameter": (lambda t, a: t["params"].update(n_hidden="many"), "n_hidden"),
    "record": (lambda t, a: t["fitted"]["network_"].update(record="Popen"), "does not know"),
    "field": (lambda t, a: network(t).pop("seed"), "missing or unknown fields: seed"),
    "attribute": (lambda t, a: t["fitted"].update(predict=1), "`fitted` must be the attributes"),
    "no names": (lambda t, a: t["fitted"].update(feature_names_in_=None), "feature_names_in_` must be"),
    "vote": (lambda t, a: network(t).update(votes={"tuple": [0.0, 1.0, 1.0]}), "votes.0` must be from"),
    "scheme": (lambda t, a: network(t).update(draw_scheme=2), "later edrvfl"),
}


@pytest.mark.parametrize(("change", "message"), TREES.values(), ids=TREES)
def test_descriptions_with_a_right_checksum_are_refused(content, change, message):
    with pytest.raises(ValueError, match=message):
        loaded(rewritten(content, change))


def says_nothing(hint):
    """Tell whether an annotation lets any value pass."""
    if get_origin(hint) is Annotated:
        return False
    return hint is Any or any(says_nothing(part) for part in get_args(hint))


@pytest.mark.parametrize("kind", RECORDS.values())
def test_every_field_of_a_record_says_what_it_holds(kind):
    hints = get_type_hints(kind, include_extras=True)
    assert not [part.name for part in dataclasses.fields(kind) if says_nothing(hints[part.name])]


def test_a_small_file_cannot_ask_for_much_memory():
    """A wide network has small read-outs of one column, and weights of its width squared."""
    model, _ = small_model("regressor")
    n = 200_000

    def widen(tree, arrays):
        fields = network(tree)
        fields["n_hidden"], tree["fitted"]["n_hidden_"] = n, n
        for name, array in list(arrays.items()):
            if name.startswith("network_") and 12 in array.shape:
                arrays[name] = np.zeros(n)
            elif name.startswith("network_") and 16 in array.shape:
                arrays[name] = np.zeros((n + 4, 1))

    with pytest.raises(ValueError, match=r"hidden weights would take \d{12} bytes"):
        loaded(rewritten(packed_model(model), widen))


def many_shared(tree, arrays):
    tree["shared"] = [["ha"]]
    for level in range(22):
        tree["shared"].append([{"shared": level}] * 2)
    tree["params"]["n_hidden"] = {"shared": 22}


def many_tuples(tree, arrays):
    arrays["big"] = np.zeros(10**6, dtype=np.uint8)
    tree["params"]["verbose"] = [{"tuple": {"array": "big"}}] * 20


def many_texts(tree, arrays):
    arrays["raw"], arrays["ends"] = np.zeros(0, dtype=np.uint8), np.zeros(1000, dtype=np.int64)
    tree["params"]["verbose"] = [{"texts": ["raw", "ends", 4000 + i]} for i in range(20)]


def shared_voter(tree, arrays):
    fields = tree["fitted"]["portfolio_"]["fields"]
    tree["shared"].append(fields["voters"]["tuple"][0])
    fields["voters"] = {"tuple": [{"shared": len(tree["shared"]) - 1}] * 2000}
    fields["weights"] = {"tuple": [1 / 2000] * 2000}


def many_voters(tree, arrays):
    fields = tree["fitted"]["portfolio_"]["fields"]
    fields["voters"] = {"tuple": fields["voters"]["tuple"][:1] * 2000}
    fields["weights"] = {"tuple": [1 / 2000] * 2000}


def many_numbers(tree, arrays):
    arrays["network_.readouts.0"] = np.zeros((10**6, 3), dtype=np.float32)
    fields = network(tree)
    for name in ("layers", "readouts", "votes", "calibrations"):
        fields[name] = {"tuple": fields[name]["tuple"][:1] * 100}


BOMBS = {
    many_shared: ("classifier", "shared"),
    many_tuples: ("classifier", "more values"),
    many_texts: ("classifier", "more values"),
    shared_voter: ("portfolio", "shared record"),
    many_voters: ("portfolio", "more values"),
    many_numbers: ("classifier", "more values"),
}


@pytest.mark.parametrize(("change", "name", "message"), [(c, *rest) for c, rest in BOMBS.items()])
def test_a_small_file_takes_little_time_and_memory(change, name, message):
    changed = rewritten(packed_model(small_model(name)[0]), change)
    with memory_below(6e7 + 10 * len(changed)), pytest.raises(ValueError, match=message) as caught:
        loaded(changed)
    assert len(str(caught.value)) < 1000


def test_arrays_that_overlap_are_not_copied(content):
    large = rewritten(content, lambda tree, arrays: arrays.update(big=np.zeros(10**6, dtype=np.uint8)))
    changed = with_header(large, lambda header: header.update({f"{i}": header["big"] for i in range(100)}))
    with memory_below(10 * len(changed)), pytest.raises(ValueError, match="overlap"):
        loaded(changed)


def test_a_long_value_is_not_in_the_message(content):
    changed = rewritten(content, lambda tree, arrays: tree["params"].update(n_hidden="x" * 10**5))
    with pytest.raises(ValueError, match="n_hidden") as caught:
        loaded(changed)
    assert len(str(caught.value)) < 1000


def column(name, value):
    """Replace a column of the table of members, or leave it out."""

    def change(tree, arrays):
        pairs = dict(tree["fitted"]["members_"]["dict"])
        pairs |= {name: value}
        tree["fitted"]["members_"]["dict"] = [[k, v] for k, v in pairs.items() if v is not None]

    return change


def same_names(tree, arrays):
    for name in [name for name in arrays if name.endswith("names_in_.text")]:
        arrays[name] = np.frombuffer(b"aaaade", dtype=np.uint8)


def same_columns(tree, arrays):
    tree["shared"][0]["fields"]["names"]["tuple"][1] = "a"


FIGURES = {
    "no weight": ("portfolio", column("weight", None), "the columns member, weight"),
    "text as weight": ("portfolio", column("weight", ["a", "b", "c"]), "whose column weight"),
    "too few weights": ("portfolio", column("weight", [1.0]), "of one length"),
    "no figure": ("portfolio_values", column("loo_r2_score", None), "loo_r2_score"),
    "text": ("kernel", lambda t, a: t["fitted"].update(loo_accuracy_="x"), "loo_accuracy_` must be a number"),
    "texts": (
        "classifier",
        lambda t, a: t["fitted"].update(loo_accuracies_={"tuple": ["a", "b", "c"]}),
        "loo_accuracies_.0` must be a number",
    ),
    "too few": (
        "classifier",
        lambda t, a: t["fitted"].update(loo_accuracies_={"tuple": [0.5]}),
        "a tuple of 1",
    ),
    "names": ("classifier_frame", same_names, "5 different names"),
    "columns": ("classifier_frame", same_columns, "names` must be different"),
}


@pytest.mark.parametrize(("name", "change", "message"), FIGURES.values(), ids=FIGURES)
def test_what_only_tells_about_the_fit_is_checked_too(name, change, message):
    with pytest.raises(ValueError, match=message):
        loaded(rewritten(packed_model(small_model(name)[0]), change))


def test_a_large_file_that_is_no_model_is_not_read(tmp_path):
    with (tmp_path / "m").open("wb") as file:
        file.truncate(2 * 10**8)  # holes take no room on the disk
    with memory_below(10**6), pytest.raises(ValueError, match="another kind of file"):
        load(tmp_path / "m")


def test_the_checksum_stands_where_the_page_says(content):
    assert (DIGITS.start, DIGITS.stop) == (35, 99)
    (length,) = struct.unpack("<Q", content[:8])
    assert json.loads(content[8 : 8 + length])["__metadata__"]["sha256"] == content[35:99].decode()
