"""Rows that are read block by block: where they come from, and what goes wrong."""

import numpy as np
import pandas
import pyarrow as pa
import pytest
from helpers import Recorder
from pyarrow import csv, dataset, feather, parquet
from sklearn.base import clone
from sklearn.callback import ProgressBar

from edrvfl import EDRVFLClassifier, EDRVFLRegressor, EDRVFLSearchCV, RowBlocks, TabularEncoder
from edrvfl._parts.parts import Part
from edrvfl._parts.watched import checksum

SMALL = {"n_hidden": 15, "n_layers": 3, "random_state": 0}
N_ROWS, STEP = 300, 70


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(N_ROWS, 3))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int), rng.integers(1, 4, size=N_ROWS).astype(float)


@pytest.fixture
def frame(rows, rng):
    X, y, weight = rows
    names = np.array(["no", "yes"])
    return pandas.DataFrame(
        {
            "b": X[:, 0],
            "colour": pandas.Categorical(rng.choice(["red", "blue", "green"], size=N_ROWS)),
            "a": X[:, 1].astype(np.float32),
            "n": rng.integers(0, 5, size=N_ROWS),
            "label": names[y],
            "y": y,
            "weight": weight,
        }
    )


FEATURES = ["b", "colour", "a", "n"]


def cut(X, y, weight=None, step=STEP):
    """Return a list of blocks."""
    given = [X, y] if weight is None else [X, y, weight]
    return [tuple(part[at : at + step] for part in given) for at in range(0, len(y), step)]


def gathered(blocks):
    """Return all rows of a source, as NumPy arrays."""
    found = list(blocks)
    X = np.concatenate([np.asarray(X) for X, _, _ in found])
    y = np.concatenate([y for _, y, _ in found])
    return X, y, None if found[0][2] is None else np.concatenate([weight for _, _, weight in found])


def assert_same_model(one, other, X):
    for a, b in zip(one.staged_predict_proba(X), other.staged_predict_proba(X), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9)


# where blocks come from


@pytest.mark.parametrize("kind", ["callable", "list", "arrays", "frame", "polars", "arrow", "batches"])
def test_every_kind_of_source_gives_the_fit_in_memory(rows, kind):
    X, y, weight = rows
    named = pandas.DataFrame(X, columns=["a", "b", "c"])
    table = pa.Table.from_pandas(named)
    source = {
        "callable": lambda: RowBlocks(lambda: iter(cut(X, y, weight))),
        "list": lambda: RowBlocks(cut(X, y, weight)),
        "arrays": lambda: RowBlocks.from_arrays(X, y, weight, rows=STEP),
        "frame": lambda: RowBlocks.from_arrays(named, pandas.Series(y), list(weight), rows=STEP),
        "polars": lambda: RowBlocks.from_arrays(pytest.importorskip("polars").from_arrow(table), y, weight),
        "arrow": lambda: RowBlocks.from_arrays(table, y, weight, rows=STEP),
        "batches": lambda: RowBlocks(
            [
                (b, y[i * STEP :][:STEP], weight[i * STEP :][:STEP])
                for i, b in enumerate(table.to_batches(STEP))
            ]
        ),
    }[kind]()
    has_names = kind not in ("callable", "list", "arrays")
    model = EDRVFLClassifier(**SMALL).fit(source)
    X = named if has_names else X
    assert_same_model(model, EDRVFLClassifier(**SMALL).fit(X, y, weight), X)
    assert hasattr(model, "feature_names_in_") == has_names


def test_memory_maps_are_read_when_their_block_comes(rows, tmp_path):
    X, y, _ = rows
    for name, array in {"X": X, "y": y}.items():
        np.save(tmp_path / f"{name}.npy", array)
    mapped = [np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in "Xy"]
    blocks = RowBlocks.from_arrays(*mapped, rows=STEP)
    for block, (X_part, y_part) in zip(blocks, cut(X, y), strict=True):
        assert not any(isinstance(part, np.memmap) for part in block)
        np.testing.assert_array_equal(block[0], X_part)
        np.testing.assert_array_equal(block[1], y_part)
    model = EDRVFLClassifier(**SMALL).fit(blocks)
    assert_same_model(model, EDRVFLClassifier(**SMALL).fit(X, y), X)


def test_blocks_of_arrays_are_views_of_32_mib():
    X = np.broadcast_to(np.zeros(1, dtype=np.float32), (2**20, 16))
    blocks = list(RowBlocks.from_arrays(X, np.zeros(2**20)))
    assert [block[0].nbytes for block in blocks] == [2**25, 2**25]
    assert all(np.shares_memory(block[0], X) for block in blocks)


@pytest.mark.parametrize(
    "write",
    [
        lambda table, path: parquet.write_table(table, path / "a.parquet", row_group_size=40),
        lambda table, path: feather.write_feather(table, path / "a.feather"),
        lambda table, path: [
            parquet.write_table(table.slice(at, 100), path / f"{at}.parquet") for at in (0, 100, 200)
        ],
    ],
    ids=["row groups", "feather", "files"],
)
def test_files_give_the_rows_in_their_order(frame, tmp_path, write):
    table = pa.Table.from_pandas(frame, preserve_index=True)
    write(table, tmp_path)
    blocks = RowBlocks.from_parquet(tmp_path, "label", "weight", columns=FEATURES, rows=STEP)
    sizes = [len(y) for _, y, _ in blocks]
    assert sizes == [len(y) for _, y in cut(frame, frame["y"])]
    X, y, weight = gathered((X.drop(["colour"]).to_pandas(), y, w) for X, y, w in blocks)
    np.testing.assert_array_equal(X, frame[["b", "a", "n"]])
    np.testing.assert_array_equal(y, frame["label"])
    np.testing.assert_array_equal(weight, frame["weight"])
    model = EDRVFLClassifier(**SMALL).fit(blocks)
    given = (frame[FEATURES], frame["label"], frame["weight"])
    assert_same_model(model, EDRVFLClassifier(**SMALL).fit(*given), frame[FEATURES])
    assert model.network_.columns.categories[1].tolist() == ["blue", "green", "red"]
    numbers = ["b", "a", "n"]  # numbers that are taken as they are
    plain = EDRVFLClassifier(**SMALL, encoder=None)
    blocks = RowBlocks.from_parquet(tmp_path, "label", columns=numbers, rows=STEP)
    found = clone(plain).fit(blocks)
    assert_same_model(found, plain.fit(frame[numbers], frame["label"]), frame[numbers])


def test_paths_folders_lists_and_datasets_are_the_same_source(frame, tmp_path):
    table = pa.Table.from_pandas(frame.drop(columns="label"))
    paths = [tmp_path / f"{name}.parquet" for name in "ab"]
    for path, at in zip(paths, (0, 150), strict=True):
        parquet.write_table(table.slice(at, 150), path)
    sources = [tmp_path, str(tmp_path), paths, dataset.dataset(tmp_path)]
    found = [gathered(RowBlocks.from_parquet(where, "y", rows=64)) for where in sources]
    for X, y, _ in found[1:]:
        np.testing.assert_array_equal(X, found[0][0])
        np.testing.assert_array_equal(y, frame["y"])
    reverse = gathered(RowBlocks.from_parquet(paths[::-1], "y", columns=["b"], rows=64))
    np.testing.assert_array_equal(reverse[0][:, 0], np.roll(frame["b"], 150))  # a list has its own order


def test_csv_is_read_and_several_targets_are_one_matrix(frame, tmp_path):
    csv.write_csv(pa.Table.from_pandas(frame), tmp_path / "a.csv")
    blocks = RowBlocks.from_parquet(tmp_path / "a.csv", ["b", "n"], columns=["colour", "a"], rows=STEP)
    assert next(iter(blocks))[1].shape == (STEP, 2)
    model = EDRVFLRegressor(**SMALL).fit(blocks)
    expected = EDRVFLRegressor(**SMALL).fit(frame[["colour", "a"]].astype({"a": float}), frame[["b", "n"]])
    answers = [one.predict(frame[["colour", "a"]]) for one in (model, expected)]
    np.testing.assert_allclose(*answers, atol=1e-5)  # pyarrow writes float32 with fewer digits


def write_files(folder, *frames):
    for i, frame in enumerate(frames):
        parquet.write_table(pa.table(frame), folder / f"{i}.parquet")
    return folder


def test_columns_and_types_are_those_of_all_files(tmp_path):
    dictionary = pa.array(["u", "v", "u"]).dictionary_encode()
    frames = [
        {"n": [1, 2, 3], "empty": pa.nulls(3), "kind": dictionary, "y": [0, 1, 0]},
        {
            "y": [1, 0, 1],
            "n": [0.25, 1, 2],
            "key": ["a", "b", "a"],
            "empty": ["s", "t", "s"],
            "kind": list("vuv"),
        },
    ]
    X, y, _ = next(iter(RowBlocks.from_parquet(write_files(tmp_path, *frames), "y")))
    assert X.to_pydict() == {
        "n": [1, 2, 3, 0.25, 1, 2],
        "empty": [None, None, None, "s", "t", "s"],
        "kind": ["u", "v", "u", "v", "u", "v"],
        "key": [None, None, None, "a", "b", "a"],
    }
    np.testing.assert_array_equal(y, [0, 1, 0, 1, 0, 1])


def test_types_that_do_not_go_together_are_named_with_their_files(tmp_path):
    files = write_files(tmp_path, {"n": [1, 2], "y": [0, 1]}, {"n": ["1", "2"], "y": [0, 1]})
    with pytest.raises(TypeError, match=r"Column 'n' holds int64 in .*0.parquet, but string in .*1.parquet"):
        RowBlocks.from_parquet(files, "y")


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.2024.CSV"])
def test_empty_cells_of_csv_are_missing_as_in_pandas(name, tmp_path):
    path = tmp_path / name
    table = pandas.DataFrame(
        {"t": ["u", None, "v", "NA"] * 3, "n": [1.0, None, 3, 4] * 3, "y": [0, 1, 1, 1] * 3}
    )
    table.to_csv(path, index=False)
    X, _, _ = next(iter(RowBlocks.from_parquet(path, "y")))
    pandas.testing.assert_frame_equal(X.to_pandas(), pandas.read_csv(path)[["t", "n"]])


def test_endings_that_name_no_format_are_refused(tmp_path):
    (tmp_path / "a.txt").write_text("n,y\n1,2\n")
    with pytest.raises(ValueError, match=r"a.txt names no format that is known: .parquet, .pq, .csv"):
        RowBlocks.from_parquet(tmp_path / "a.txt", "y")


def test_a_cell_that_does_not_fit_is_named_with_its_file(tmp_path):
    (tmp_path / "a.csv").write_text("n,y\n" + "1,0\n" * 400_000 + "one,0\n")  # text after the first MiB
    with pytest.raises(OSError, match=r"^Block \d+ of the source: .*a.csv: In CSV column #0: .*'one'"):
        list(RowBlocks.from_parquet(tmp_path / "a.csv", "y"))


def test_a_folder_by_keys_has_them_as_columns(frame, tmp_path):
    parquet.write_to_dataset(pa.Table.from_pandas(frame), tmp_path, partition_cols=["n"])
    blocks = RowBlocks.from_parquet(tmp_path, "y", columns=["b", "n"], rows=STEP)
    X, _, _ = gathered(blocks)
    expected = frame.sort_values("n", kind="stable")[["b", "n"]]
    np.testing.assert_array_equal(X, expected)


def test_an_index_of_pandas_is_no_feature(frame, tmp_path):
    frame.iloc[::-1].sort_values("n").to_parquet(tmp_path / "a.parquet")
    assert "__index_level_0__" in parquet.read_schema(tmp_path / "a.parquet").names
    X, _, _ = next(iter(RowBlocks.from_parquet(tmp_path / "a.parquet", "y", "weight")))
    assert X.column_names == [*FEATURES, "label"]


def test_names_of_columns_are_checked(frame, tmp_path):
    frame.to_parquet(tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"no columns 'z'. There are 'b', 'colour'"):
        RowBlocks.from_parquet(tmp_path / "a.parquet", "z")
    with pytest.raises(ValueError, match="cannot be target or weight as well: 'y'"):
        RowBlocks.from_parquet(tmp_path / "a.parquet", "y", columns=["y", "b"])
    (tmp_path / "none").mkdir()
    with pytest.raises(FileNotFoundError, match="no files"):
        RowBlocks.from_parquet(tmp_path / "none", "y")


def test_without_pyarrow_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r'pip install "edrvfl\[arrow\]"'):
        RowBlocks.from_parquet("a.parquet", "y")


def test_sources_that_cannot_begin_again_are_refused(rows):
    X, y, _ = rows
    with pytest.raises(TypeError, match=r"generator can be read only once. Give a function"):
        RowBlocks(block for block in cut(X, y))
    with pytest.raises(TypeError, match="from_arrays"):
        RowBlocks(X)
    with pytest.raises(TypeError, match="got 5"):
        RowBlocks(5)
    once = iter(cut(X, y))
    with pytest.raises(ValueError, match=r"Block 0 of the source: it changed .* now has 0"):
        EDRVFLClassifier(**SMALL).fit(RowBlocks(lambda: once))


def test_arguments_are_checked(rows):
    X, y, weight = rows
    with pytest.raises(ValueError, match="same number of rows, got 300, 299"):
        RowBlocks.from_arrays(X, y[1:])
    with pytest.raises(ValueError, match="rows and columns"):
        RowBlocks.from_arrays(y, y)
    for name in ("rows", "threads"):
        with pytest.raises(ValueError, match=f"{name} must be a whole number from 1 on, got 0"):
            RowBlocks.from_arrays(X, y, weight, **{name: 0})


def test_fits_are_the_same_bit_for_bit_with_any_number_of_threads(rows):
    X, y, weight = rows
    model, answers = EDRVFLClassifier(**SMALL, prune_rate=0.2), []
    for threads in (2, 2, 4):
        blocks = RowBlocks.from_arrays(X, y, weight, rows=40, threads=threads)
        answers.append(clone(model).fit(blocks).predict_proba(X))
    np.testing.assert_array_equal(answers[0], answers[1])
    np.testing.assert_array_equal(answers[0], answers[2])
    assert_same_model(clone(model).fit(blocks), clone(model).fit(X, y, weight), X)


# what goes wrong


def swapped(blocks, at, replacement):
    return [replacement if i == at else block for i, block in enumerate(blocks)]


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        (lambda X, y, w: 5, TypeError, r"must be \(X, y\) or \(X, y, weight\), but it is a int"),
        (lambda X, y, w: (X,), TypeError, "but it is 1 values"),
        (lambda X, y, w: (X, None, w), TypeError, "y must be an array"),
        (lambda X, y, w: (X[1:], y, w), ValueError, "X has 69 rows, but y has 70"),
        (
            lambda X, y, w: (X, y),
            ValueError,
            "Block 3 of the source: It has weights, but block 2 has no weights",
        ),
        (lambda X, y, w: (X, y, w[1:]), ValueError, r"weights have the shape \(69,\), expected \(70,\)"),
        (lambda X, y, w: (X, y, -w), ValueError, "weights must be finite and not negative"),
        (
            lambda X, y, w: (X[:, 1:], y, w),
            ValueError,
            "Block 3 of the source: It has 3 columns without names, but block 2 has 2",
        ),
        (lambda X, y, w: (X * np.inf, y, w), ValueError, "Column 0.*infinity"),
        (lambda X, y, w: (X + 1j, y, w), ValueError, "Complex data not supported"),
        (
            lambda X, y, w: (X.astype("M8[D]"), y, w),
            TypeError,
            r"Block \d of the source: Column 'x0' holds dates in one block and other values in another",
        ),
        (lambda X, y, w: (X, y + 0.5, w), ValueError, "Unknown label type"),
        (
            lambda X, y, w: (X, y.astype(str), w),
            ValueError,
            "Block 3 of the source: It has labels that are numbers, but block 2 has labels that are text",
        ),
    ],
)
@pytest.mark.parametrize("threads", [1, 2])
def test_errors_name_the_block_and_leave_the_estimator_as_it_was(rows, change, kind, message, threads):
    X, y, weight = rows
    blocks = cut(X, y, weight)
    bad = RowBlocks(swapped(blocks, 2, change(*blocks[2])), threads=threads)
    for model in (EDRVFLClassifier(**SMALL), EDRVFLClassifier(**SMALL).fit(X[:, :1], y)):
        before = dict(vars(model))
        # blocks that do not go together are found when neighbours are added up
        about = message if message.startswith("Block") else rf"Block 2 of the source: .*{message}"
        with pytest.raises(kind, match=f"^{about}"):
            model.fit(bad)
        assert vars(model) == before


def test_errors_about_numbers_that_are_taken_as_they_are(rows):
    X, y, _ = rows
    X = X.copy()
    X[150, 1] = np.nan
    model = EDRVFLClassifier(**SMALL, encoder=None)
    with pytest.raises(ValueError, match=r"^Block 2 of the source: Input X contains NaN"):
        model.fit(RowBlocks(cut(X, y)))


def test_outputs_must_agree(rows):
    X = rows[0]
    blocks = swapped(cut(X, X[:, :2]), 3, (X[:7], X[:7]))
    with pytest.raises(ValueError, match=r"^Block 3 of the source: It has 3 outputs in y, but block 2 has 2"):
        EDRVFLRegressor(**SMALL).fit(RowBlocks(blocks))


def test_columns_of_frames_must_agree(rows):
    X, y, _ = rows
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    blocks = cut(frame, y)
    blocks[1] = (blocks[1][0][["a", "c", "b"]], blocks[1][1])
    with pytest.raises(
        ValueError, match=r"^Block 1 .*3 columns \(a, c, b\), but block 0 has 3 columns \(a, b"
    ):
        EDRVFLClassifier(**SMALL).fit(RowBlocks(blocks))


def test_a_damaged_file_is_named_by_its_block(frame, tmp_path):
    table = pa.Table.from_pandas(frame)
    for name in "abc":
        parquet.write_table(table.slice(0, 100), tmp_path / f"{name}.parquet", compression="zstd")
    blocks = RowBlocks.from_parquet(tmp_path, "y", rows=100)
    assert len(list(blocks)) == 3
    damaged = tmp_path / "c.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-100])
    with pytest.raises(OSError, match=r"^Block 2 of the source: it cannot be read. ArrowInvalid: ") as caught:
        EDRVFLClassifier(**SMALL).fit(blocks)
    assert isinstance(caught.value.__cause__, pa.ArrowInvalid)
    damaged.unlink()
    with pytest.raises(OSError, match=r"^Block 2 of the source: it cannot be read. FileNotFoundError"):
        EDRVFLClassifier(**SMALL).fit(blocks)


def test_missing_labels_in_a_file(frame, tmp_path):
    frame.loc[99, "label"] = None
    frame.to_parquet(tmp_path / "a.parquet")
    with pytest.raises(OSError, match=r"^Block 1 of the source: .*Column 'label' has 1 missing value"):
        EDRVFLClassifier(**SMALL).fit(RowBlocks.from_parquet(tmp_path / "a.parquet", "label", rows=STEP))


def changed_values(blocks):
    X, *rest = blocks[3]
    return swapped(blocks, 3, (X + np.eye(len(X), X.shape[1]) * 1e-9, *rest))


def changed_label(blocks):
    X, y, w = blocks[3]
    return swapped(blocks, 3, (X, np.where(np.arange(len(y)) == 5, 7, y), w))


def changed_weight(blocks):
    X, y, w = blocks[3]
    return swapped(blocks, 3, (X, y, w * np.where(np.arange(len(y)) == 5, 2, 1)))


def swapped_rows(blocks):
    order = [1, 0, *range(2, len(blocks[3][1]))]
    return swapped(blocks, 3, tuple(part[order] for part in blocks[3]))


CHANGES = {
    "values": changed_values,
    "a new label": changed_label,
    "weights": changed_weight,
    "rows in another order": swapped_rows,
    "fewer rows": lambda blocks: swapped(blocks, 3, tuple(part[:-1] for part in blocks[3])),
    "fewer blocks": lambda blocks: blocks[:3],
    "more blocks": lambda blocks: [
        *blocks[:3],
        *[tuple(p[:9] for p in blocks[3]), tuple(p[9:] for p in blocks[3])],
    ],
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("pass_number", [1, 2, 4])
def test_a_source_that_changes_is_an_error(rows, change, pass_number):
    X, y, weight = rows
    blocks, passes = cut(X, y, weight)[:4], []

    def read():
        passes.append(1)
        return iter(CHANGES[change](blocks) if len(passes) > pass_number else blocks)

    model = EDRVFLClassifier(**SMALL)
    with pytest.raises(ValueError, match=r"^Block 3 of the source: it changed between two passes"):
        model.fit(RowBlocks(read))
    assert not hasattr(model, "network_")


@pytest.mark.parametrize("pass_number", [1, 2])
def test_a_new_category_is_a_change(frame, pass_number):
    blocks, passes = cut(frame[FEATURES].astype({"colour": object}), frame["y"]), []
    other = blocks[2][0].copy()
    other.iloc[4, 1] = "mauve"

    def read():
        passes.append(1)
        return iter(swapped(blocks, 2, (other, blocks[2][1])) if len(passes) > pass_number else blocks)

    with pytest.raises(ValueError, match=r"^Block 2 of the source: it changed between two passes"):
        EDRVFLClassifier(**SMALL).fit(RowBlocks(read))


def swapped_pairs(rng):
    """Yield rows, and the same rows with two of them swapped, of every kind."""
    X = rng.integers(0, 2, size=(200, 3)).astype(float)  # only the highest bits differ
    j = int(np.argmax((X[0] != X).any(axis=1)))
    order = np.arange(200)
    order[[0, j]] = [j, 0]
    for kind in (np.asarray, np.asfortranarray, lambda X: np.repeat(X, 2, axis=1)[:, ::2], np.ndarray.tolist):
        yield kind(X), kind(X[order])
    polars, texts = pytest.importorskip("polars"), np.array(["a", "None"])[X.astype(int)]
    for values in (X, texts, np.where(X == 0, texts, None)):
        frames = [pandas.DataFrame(rows, columns=list("abc")) for rows in (values, values[order])]
        yield frames
        yield [frame.astype("category") for frame in frames]
        yield [pa.Table.from_pandas(frame) for frame in frames]
        yield [polars.from_pandas(frame) for frame in frames]


def test_checksums_see_swaps(rng):
    y = np.arange(200)
    for rows, others in swapped_pairs(rng):
        first, again, other = (checksum(Part(0, X, y, None)) for X in (rows, rows, others))
        assert first == again != other
    labels = [["a", None], ["a", "None"], np.array(["a", "None"]), pandas.Series(["a", "b"]), [1, 2]]
    assert len({checksum(Part(0, X[:2], y, None)) for y in labels for X in (np.eye(3),)}) == len(labels)


# who takes blocks, and who is told about them


@pytest.mark.parametrize(
    "estimator",
    [TabularEncoder(), EDRVFLSearchCV(EDRVFLClassifier(), {"n_hidden": [5, 10]})],
    ids=lambda one: type(one).__name__,
)
def test_other_estimators_say_who_takes_blocks(rows, estimator):
    with pytest.raises(
        TypeError, match=r"fit takes rows in memory, but X is a RowBlocks. Classifiers and regressors"
    ):
        estimator.fit(RowBlocks(cut(*rows)))


def test_answers_are_asked_for_by_blocks(rows):
    X, y, _ = rows
    blocks = RowBlocks(cut(X, y))
    for model, method in [(EDRVFLClassifier(**SMALL), "predict_proba"), (TabularEncoder(), "transform")]:
        model.fit(X, y)
        with pytest.raises(TypeError, match=rf"\[model.{method}\(X\) for X, y, weight in blocks\]"):
            getattr(model, method)(blocks)
        found = np.concatenate([getattr(model, method)(X) for X, y, weight in blocks])
        np.testing.assert_allclose(found, getattr(model, method)(X), atol=1e-12)


def test_targets_and_weights_belong_to_the_blocks(rows):
    X, y, weight = rows
    for given in ({"y": y}, {"sample_weight": weight}):
        with pytest.raises(ValueError, match="y and sample_weight belong to the blocks"):
            EDRVFLClassifier(**SMALL).fit(RowBlocks(cut(X, y)), **given)
    for model in (
        EDRVFLClassifier(),
        EDRVFLRegressor(),
        EDRVFLSearchCV(EDRVFLClassifier(), {"n_hidden": [5]}),
    ):
        with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
            model.fit(X)


@pytest.mark.parametrize(
    ("model", "passes"),
    [
        (EDRVFLClassifier(**SMALL), [2, 1, 1]),  # the first layer's moments are one more pass
        (EDRVFLClassifier(**SMALL, renormalize=False), [1, 1, 1]),
        (EDRVFLClassifier(**SMALL, encoder=None), [3, 1, 1]),
        (EDRVFLRegressor(**SMALL, correct_weight=0.5), [2, 2, 2]),
    ],
)
@pytest.mark.parametrize("threads", [1, 2])
def test_callbacks_are_told_about_blocks(rows, model, passes, threads):
    X, y, _ = rows
    recorder, before = Recorder(), []
    first, *others = cut(X, y)
    blocks = [first, (X[:0], y[:0]), *others]  # one without rows is a block as well

    def read():
        before.append("end reading" not in recorder.told)
        return blocks

    clone(model).set_callbacks(recorder).fit(RowBlocks(read, threads=threads))
    told = recorder.told
    layers = [i for i, what in enumerate(told) if what == "begin layer"]
    ends = [i for i, what in enumerate(told) if what == "end layer"]
    n_blocks = len(blocks)
    found = [told[a:b].count("end block") for a, b in zip(layers, ends, strict=True)]
    assert found == [n * n_blocks for n in passes]
    reading = told[told.index("begin reading") : told.index("end reading")]
    assert reading.count("end block") == before.count(True) * n_blocks
    assert told.count("end block") == reading.count("end block") + sum(found)


def test_a_callback_can_end_the_fit_after_a_layer(rows):
    X, y, _ = rows

    class Stop(Recorder):
        def on_fit_task_end(self, estimator, context, *, X=None, fitted_estimator=None):
            return context.task_name == "layer" and context.task_id == 2

    model = EDRVFLClassifier(**SMALL).set_callbacks(Stop()).fit(RowBlocks(cut(X, y)))
    assert model.n_layers_ == 2
    whole = EDRVFLClassifier(**SMALL | {"n_layers": 2}).fit(X, y)
    assert_same_model(model, whole, X)


def test_a_progress_bar_shows_blocks(rows, capsys):
    X, y, _ = rows
    EDRVFLClassifier(**SMALL).set_callbacks(ProgressBar()).fit(RowBlocks(cut(X, y)))
    shown = capsys.readouterr().out
    assert "EDRVFLClassifier - reading #0" in shown
    assert "EDRVFLClassifier - layer #3" in shown
