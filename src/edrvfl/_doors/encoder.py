"""TabularEncoder: frames with categories and gaps become columns of numbers."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, ClassVar

import numpy
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .._fitting.settings import encoder_settings
from .._inputs.encoding import DEFAULTS, learn_inputs
from .._inputs.reading import read_training_table
from .._inputs.rows import keep_weighted
from .._models.encoding import Encoding
from .._seam.arrays import Array, array_namespace, device
from .._seam.sklearn import Count, StrOptions, _check_feature_names_in, _fit_context
from .base import Estimator, fields_are_parameters, unchanged_on_failure

ENCODERS = (
    "standard",
    "robust",
    "bins",
    "ranks",
)  # the encoders that have a name, after what they do with numbers


@fields_are_parameters
class TabularEncoder(TransformerMixin, Estimator):
    """Turn a table of numbers, categories, dates, text and missing values into columns of numbers.

    Everything is learnt from the training rows of `fit`. What comes from numbers has mean 0 and variance 1
    over these rows; columns for categories and for missing values are 0 and 1.

    Missing numbers are imputed, and if they occurred in training, another column tells where. Categories
    are one-hot: a missing category is a category, rare ones share a column, and ones never seen are all
    zero. Dates become days and where they are in the year, the week and the day, and short text becomes
    columns of hashed pieces of its words.

    Parameters
    ----------
    numbers : {"standard", "robust", "bins", "ranks"}, default="standard"
        How columns of numbers are encoded. "standard" brings them to mean 0 and variance 1. "robust" uses
        median and quartiles and clips smoothly, so that outliers do not rule. "bins" puts piecewise-linear
        bins between quantiles beside that, or one-hot columns where there are few values. "ranks" gives a
        number its place among the training rows, straight between 65 quantiles. A missing number becomes the
        mean ("standard") or the median.

    categorical_features : "from_dtype", None, or array-like of str, int or bool, default="from_dtype"
        Which columns hold categories. "from_dtype" takes columns of categories (Categorical, Enum,
        dictionary), of text, and of objects that are not all numbers. Names, positions or a mask add
        columns of numbers, and of short text, to these. None takes no column; then text is an error unless
        `text_features` names it.

    text_features : "from_dtype", None, or array-like of str, int or bool, default="from_dtype"
        Which columns hold short text, and not categories. "from_dtype" takes columns of text with at least
        100 different values, which are more than half as many as the cells and have two words or more on
        average. Names, positions or a mask add columns to these. None takes no column.

    n_bins : int, default=16
        With ``numbers="bins"``: how many bins a column of numbers has at most.

    max_values : int, default=12
        With ``numbers="bins"``: columns with at most so many different numbers are one-hot by the nearest
        of these, instead of bins.

    max_categories : int, default=64
        How many one-hot columns one column of categories gets at most. Where there are more categories, the
        heaviest have half of the columns, and the others share the rest by a hash of their texts. A column
        for missing values may come on top. Kernels tell all categories of such a column apart.

    min_frequency : int, default=2
        Categories with less weight than this in the training rows, without weights in fewer rows, share a
        column.

    max_columns : int, default=800
        How many columns of bins and categories there are, beside one for each column of `X` and one for its
        gaps. Where there would be more, the columns that ask for most get fewer; columns of categories keep
        two.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns seen in `fit`.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, when `X` has string names.

    encoding_ : Encoding
        What was learnt: the columns, their kinds and categories (``columns``), and how they are encoded, in
        the namespace and on the device of the training `X` (``inputs``).

    See Also
    --------
    EDRVFLClassifier : A classifier for the encoded columns.

    Notes
    -----
    Frames may be pandas, polars or pyarrow, one in `fit` and another in `transform`. Numbers in a column of
    categories are compared as numbers, everything else as text, so columns of text match columns of
    categories, and 2 matches 2.0. Nested columns, sparse matrices and infinite numbers are errors;
    they name the column.

    ``sample_weight`` counts rows: weight 2 is the row twice, weight 0 is the row left out.

    Examples
    --------
    >>> from edrvfl import TabularEncoder
    >>> X = [[20.0, "red"], [30.0, "blue"], [None, "red"]]
    >>> encoder = TabularEncoder(min_frequency=1).fit(X)
    >>> encoder.get_feature_names_out().tolist()
    ['x0', 'x0_missing', 'x1_blue', 'x1_red']
    >>> encoder.transform([[25.0, "green"]]).round(12)  # the mean, and a category never seen
    array([[0., 0., 0., 0.]])
    """

    _record = "encoding_"
    _encodes = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "numbers": [StrOptions(set(ENCODERS))],
        "categorical_features": [StrOptions({"from_dtype"}), "array-like", None],
        "text_features": [StrOptions({"from_dtype"}), "array-like", None],
        "n_bins": [Count(2)],
        "max_values": [Count(0)],
        "max_categories": [Count(2)],
        "min_frequency": [Count(1)],
        "max_columns": [Count(0)],
    }

    numbers: str = DEFAULTS.numbers
    _: KW_ONLY
    categorical_features: Any = "from_dtype"
    text_features: Any = "from_dtype"
    n_bins: int = DEFAULTS.n_bins
    max_values: int = DEFAULTS.max_values
    max_categories: int = DEFAULTS.max_categories
    min_frequency: int = DEFAULTS.min_frequency
    max_columns: int = DEFAULTS.max_columns

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> TabularEncoder:  # noqa: ARG002
        """Learn the encoding from training rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows: a pandas, polars or pyarrow table, an array, nested lists, or, with scikit-learn's
            array API dispatch on, a torch or CuPy array.

        y : Ignored
            Present for scikit-learn's pipelines.

        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, not negative and not all zero. None gives every row the weight 1.

        Returns
        -------
        self : TabularEncoder
            The fitted encoder. A fit that fails leaves it as it was.
        """
        with unchanged_on_failure(self):
            X, columns = read_training_table(self, X, self.categorical_features, self.text_features)
            counts = None
            if sample_weight is not None:
                counts, X = keep_weighted(sample_weight, X)
            inputs = learn_inputs(X, counts, encoder_settings(self), columns.coded, columns.parts)
            self.encoding_ = Encoding(columns, inputs, array_namespace(X).asarray(X[:0, :], copy=True))
        return self

    def transform(self, X: Any) -> Array:
        """Encode rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        Returns
        -------
        Z : array of shape (n_samples, n_encoded_columns)
            Without gaps, in the array library and on the device of `X`, NumPy for frames; another
            container where ``set_output`` asks for it.
        """
        X = self._check_new_rows(X, "transform")
        encoding = self.encoding_
        shape = (X.shape[0], encoding.inputs.width)
        encoded = array_namespace(X).empty(shape, dtype=X.dtype, device=device(X))
        encoding.inputs.write(X, encoded)
        return encoded

    def get_feature_names_out(self, input_features: Any = None) -> numpy.ndarray:
        """Return the names of the encoded columns.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the columns of `X`; None takes those of `fit`, else "x0", "x1", ...

        Returns
        -------
        names : ndarray of str objects
            The name of the column, and after "_" the part of a date or a text, the category, the value, the
            number of the bin, or "missing".
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        columns, inputs = self.encoding_.columns, self.encoding_.inputs
        given = [part.column for part in columns.parts]
        found = inputs.names([names[j] for j in given], [columns.categories[j] for j in given])
        return numpy.array(found, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
