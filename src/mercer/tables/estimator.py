"""`tabular` and `Tabular`: an estimator behind an encoding of every column of a table as numbers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_regressor
from sklearn.utils import get_tags
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d

from mercer.estimators.fitting.pipeline.class_spec import DeclaresState
from mercer.estimators.fitting.pipeline.dataclass_spec import OneOf
from mercer.estimators.fitting.pipeline.state import (
    Array,
    Count,
    IndexArray,
    ListOf,
    NestedEstimator,
    Predicate,
    expect,
    fitted,
)
from mercer.estimators.fitting.reports.notebook import ShowsCertificate
from mercer.estimators.fitting.wrapper_mixin import ModelMethods
from mercer.runtime.available import available_if
from mercer.runtime.errors import GuessWarning, warn_user
from mercer.runtime.parameters import suggest_name
from mercer.runtime.refitting import adopt_fit, blank_copy
from mercer.runtime.shared_docs import shared_docs
from mercer.samples.arrays import Floats, Indices, is_sparse
from mercer.samples.column_names import renamed_column
from mercer.tables.cells import missing_values
from mercer.tables.choice import COLUMN_OPTIONS, ColumnOptions, encodings_for, guesses, target_guesses, unexpected_words
from mercer.tables.encodings import Dates, DroppedColumn, Encoding, Levels, Numbers, Words, encode_columns
from mercer.tables.frame import Frame, frame_of
from mercer.tables.number_column import NumberFormat
from mercer.tables.target_scale import target_moments
from mercer.tables.units import units_from_text

_READING = ("separator", "decimal", "encoding", "units", "na", "target", "digest")


def tabular(estimator: Any, **columns: Any) -> Tabular:
    """Let an estimator learn from a table with columns of any kind; `Tabular` describes the encodings.

    Parameters
    ----------
    estimator : estimator
        Estimator that learns from the encoded columns.
    **columns : keywords
        The other parameters of `Tabular`: drop, only, categorical, numeric, text, missing and standardise.

    Examples
    --------
    >>> import pandas as pd
    >>> import mercer
    >>> table = pd.DataFrame({
    ...     "age": [31, None, 45, 52, 28, 60],
    ...     "plan": ["basic", "pro", "pro", None, "basic", "pro"],
    ...     "left": ["yes", "no", "no", "no", "yes", "no"],
    ... })
    >>> model = mercer.tabular(mercer.SVC()).fit(table[["age", "plan"]], table["left"])
    >>> print(model.columns_told())
    age   number, standardised; 1 missing value filled with the median 45 and marked
    plan  category, one column for each of 2 levels (basic, pro); 1 missing value, a level of its own
    >>> model.predict(pd.DataFrame({"plan": ["basic", "team"], "age": [30, None]})).tolist()
    ['yes', 'no']
    """
    parameters = inspect.signature(Tabular).parameters
    for name in columns.keys() - parameters.keys():
        raise TypeError(f"tabular got an unexpected parameter {name}={columns[name]!r}{suggest_name(name, parameters)}")
    return Tabular(estimator, **columns)


def _inner_has(name: str) -> Callable[[Any], bool]:
    def check(model: Any) -> bool:
        getattr(getattr(model, "estimator_", model.estimator), name)  # the AttributeError of the estimator says why
        return True

    return check


@shared_docs
@dataclass(eq=False, repr=False)
class Tabular(ModelMethods, ShowsCertificate, MetaEstimatorMixin, DeclaresState, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """An estimator for tables: pandas, polars and pyarrow frames, and arrays with cells of any type.

    Numbers are standardised. Truth values and categories become one column for each level; a level that is new in
    prediction becomes zeros. Dates become standardised seconds, with the time of day and of the year where they vary.
    A missing number or date is replaced by the median and marked by an extra column; missing categories are a level.
    Texts that differ in most rows become word counts if their words recur; other texts and identifiers are dropped
    with a warning. In a regression y is standardised too, so that `C` and `epsilon` do not depend on the unit of y;
    predictions are in that unit, the certificate of `estimator_` is not. Targets far outside all others, such as
    numbers with a misplaced decimal point, are not counted in the mean and the standard deviation.

    Prediction finds columns by name, in any order. It ignores unknown columns and raises an error for absent ones.

    Parameters
    ----------
    estimator : estimator
        Estimator that learns from the encoded columns.
    %(columns)s

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator, with its certificate.
    columns_ : list
        Encoding of each column; `columns_told` describes them.
    target_mean_, target_scale_ : float or array
        Mean and standard deviation by which y was standardised, without outliers; 0 and 1 unless it is a regression.
    n_rows_dropped_ : int
        Number of rows that ``missing="drop"`` dropped.
    rows_ : array of int
        Training rows: all except the dropped ones and those of weight 0.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : array of str
        Names of the columns, if the table is a frame with names.
    reading_ : dict
        Settings with which the command line read the table, used again for the next one.

    Examples
    --------
    See `tabular`.
    """

    _FITTED = fitted(
        estimator_=NestedEstimator(required=True),
        columns_=ListOf(OneOf(Numbers, Levels, Dates, Words, DroppedColumn), required=True),
        target_mean_=Array(None, single=True, required=True),
        target_scale_=Array(None, single=True, required=True),
        n_rows_dropped_=Count(required=True),
        rows_=IndexArray(),
        reading_=Predicate(
            must=f"have no other names than {', '.join(_READING)}",
            holds=lambda value, _: (
                isinstance(value, dict)
                and all(isinstance(one, str) for one in value.values())
                and set(value) <= set(_READING)
            ),
        ),
    )

    estimator: Any
    _: KW_ONLY
    drop: Sequence[str] = ()
    only: Sequence[str] | None = None
    categorical: Sequence[str] = ()
    numeric: Sequence[str] = ()
    text: Sequence[str] = ()
    missing: str = "impute"
    standardise: bool = True

    # --- fitting -----------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Tabular:
        """Choose an encoding for each column, and fit the estimator to the encoded table.

        Parameters
        ----------
        X : frame or array
            The table.
        y : column, optional
            Target of each row.
        sample_weight : array, optional
            Weight of each row; a weight of 2 equals the row given twice.
        """
        if self.missing not in ("impute", "drop"):
            raise ValueError(f"missing={self.missing!r} must be 'impute' or 'drop'")
        options = self.column_options()
        frame = frame_of(X)
        if y is not None:
            y = y if hasattr(y, "__len__") else np.asarray(y)
            if len(y) != len(frame):
                raise ValueError(f"X has {len(frame)} rows, but y has {len(y)}: inconsistent numbers of samples")
        weight = _check_sample_weight(sample_weight, np.empty(len(frame)), dtype=np.float64)
        rows = np.arange(len(frame))
        if sample_weight is not None and (weight > 0).any():  # else the estimator raises its own error
            rows = np.flatnonzero(weight != 0)
            frame, y, weight = _take_rows(rows, frame, y, weight)
        encodings = encodings_for(frame, options, weight)
        n_dropped = 0
        if self.missing == "drop":
            complete_rows = _complete_rows(frame, encodings)
            n_dropped, rows = len(frame) - len(complete_rows), rows[complete_rows]
            frame, y, weight = _take_rows(complete_rows, frame, y, weight)
            encodings = encodings_for(frame, options, weight)
        mean, scale = 0.0, 1.0
        if is_regressor(self.estimator) and y is not None and self.standardise:
            y = _target(y)
            mean, scale = target_moments(y, weight)
            y = (y - mean) / scale
        fit_options = {} if sample_weight is None else {"sample_weight": weight}
        fitted_copy, columns = blank_copy(self), _parsed_columns(frame, encodings)
        fitted_copy.estimator_ = clone(self.estimator).fit(encode_columns(columns, encodings), y, **fit_options)
        fitted_copy.columns_, fitted_copy.rows_ = encodings, rows
        fitted_copy.target_mean_, fitted_copy.target_scale_ = mean, scale
        fitted_copy.n_rows_dropped_ = n_dropped
        fitted_copy.n_features_in_ = frame.shape[1]
        if frame.named:
            fitted_copy.feature_names_in_ = np.array(frame.names, dtype=object)
        for message in (*guesses(frame, encodings, options).values(), *target_guesses(y, "y").values()):
            warn_user(message, GuessWarning)  # if warnings are errors, the fit fails here
        return adopt_fit(self, fitted_copy)

    # --- files -------------------------------------------------------------------------------------------------------

    def _parameters_to_save(self) -> dict[str, Any]:
        params = super()._parameters_to_save()
        if "estimator_" in vars(self):
            params["estimator"] = None  # estimator_ has the same parameters
        for name in COLUMN_OPTIONS:
            value = params[name]
            params[name] = value if value is None or isinstance(value, tuple) else list(value)
        return params

    def _check_saved_parameters(self) -> None:
        for name in COLUMN_OPTIONS:
            value = getattr(self, name)
            are_names = isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value)
            expect(are_names or (name == "only" and value is None), f"{name} must be a list of names")
        expect(self.missing in ("impute", "drop"), f"missing cannot be {self.missing!r:.40}")
        expect(type(self.standardise) is bool, "standardise must be true or false")

    def _check_fitted(self) -> None:
        names = [encoding.name for encoding in self.columns_]
        expect(len(set(names)) == len(names) == self.n_features_in_ > 0, "every column needs a name of its own")
        n_numbers = sum(len(encoding.titles) for encoding in self.columns_)
        n_inputs = getattr(self.estimator_, "n_features_in_", None)
        expect(n_numbers == n_inputs, f"the columns become {n_numbers} numbers, and the estimator expects {n_inputs}")
        are_finite = np.isfinite(self.target_mean_).all() and np.isfinite(self.target_scale_).all()
        expect(bool(are_finite), "the mean and scale of y must be finite")
        if hasattr(self, "feature_names_in_"):
            expect(list(self.feature_names_in_) == names, "feature_names_in_ must be the names of the columns")

    def _complete_fitted(self) -> None:
        self.estimator = clone(self.estimator_)

    # --- parameters --------------------------------------------------------------------------------------------------

    def column_options(self) -> ColumnOptions:
        """Return the parameters that choose columns, checked to be lists."""
        lists: dict[str, Any] = {}
        for word in COLUMN_OPTIONS:
            value = getattr(self, word)
            if isinstance(value, str):
                raise TypeError(f"{word}={value!r} must be a list of names: {word}=[{value!r}]")
            lists[word] = None if value is None else tuple(value)
        return ColumnOptions(**lists, standardise=self.standardise)

    # --- prediction --------------------------------------------------------------------------------------------------

    def encode(self, X: Any) -> Any:
        """Encode a table as the matrix that `estimator_` is given.

        Parameters
        ----------
        X : frame or array
            The table.
        """
        check_is_fitted(self)
        frame = self._match_columns(frame_of(X))
        encodings = [self._as_trained(encoding) for encoding in self.columns_]
        for encoding in encodings:
            if isinstance(encoding, Numbers) and not encoding.n_holes and encoding.name not in self.numeric:
                message = unexpected_words(encoding, frame)
                if message is not None:
                    warn_user(message, GuessWarning)
        return encode_columns(_parsed_columns(frame, encodings), encodings)

    def _as_trained(self, encoding: Encoding) -> Encoding:
        """Return an encoding with the unit and decimal mark of `reading_`, where older files have them."""
        reading = getattr(self, "reading_", {})
        if reading and isinstance(encoding, Numbers) and not encoding.unit and not encoding.marks:
            unit = units_from_text(reading.get("units")).get(encoding.name, "")
            return replace(encoding, unit=unit, marks=reading.get("decimal", ""))
        return encoding

    def decode(self, rows: Any) -> Any:
        """Decode encoded rows into an array of objects with all columns of the table.

        None stands for dropped columns, missing categories and new levels. A text becomes its words in order of weight.

        Parameters
        ----------
        rows : array or CSR matrix
            Rows that `encode` returns.
        """
        check_is_fitted(self)
        numbers = rows.toarray() if is_sparse(rows) else np.asarray(rows, dtype=np.float64)
        ends = np.cumsum([len(encoding.titles) for encoding in self.columns_])
        out = np.empty((len(numbers), len(ends)), dtype=object)
        for j, (encoding, end) in enumerate(zip(self.columns_, ends, strict=True)):
            out[:, j] = encoding.decode(numbers[:, end - len(encoding.titles) : end])
        return out

    def columns_told(self) -> str:
        """Describe the encoding of each column, one on each line."""
        check_is_fitted(self)
        width = max(len(encoding.name) for encoding in self.columns_)
        return "\n".join(f"{encoding.name:<{width}}  {encoding.description}" for encoding in self.columns_)

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the names of the columns of `transform`, or of `encode` if `estimator_` has no `transform`."""
        check_is_fitted(self)
        if hasattr(self.estimator_, "transform"):
            return self.estimator_.get_feature_names_out()
        return np.array([title for encoding in self.columns_ for title in encoding.titles], dtype=object)

    def _match_columns(self, frame: Frame) -> Frame:
        """Return the columns in the order of training; columns that are not used may be absent."""
        trained_names = [encoding.name for encoding in self.columns_]
        if not frame.named or not hasattr(self, "feature_names_in_"):
            if frame.shape[1] != self.n_features_in_:
                raise ValueError(
                    f"X has {frame.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                    "features as input"
                )
            return frame if frame.names == trained_names else frame.with_columns(trained_names, frame.columns)
        absent = [name for name in used_columns(self) if name not in frame.names]
        if absent:
            raise ValueError(
                f"the table lacks the column{'s' * (len(absent) > 1)} {', '.join(map(repr, absent))} that the model "
                f"was trained on; it has {', '.join(map(repr, frame.names))}"
                f"{renamed_column(absent, [name for name in frame.names if name not in trained_names])}"
            )
        return frame.select(trained_names)

    @available_if(_inner_has("predict"))
    def predict(self, X: Any) -> Any:
        """Predict each row; a regression predicts in the unit of y.

        Parameters
        ----------
        X : frame or array
            The table.
        """
        answer = self._call_inner("predict", X)
        return answer * self.target_scale_ + self.target_mean_ if is_regressor(self.estimator_) else answer

    @available_if(_inner_has("decision_function"))
    def decision_function(self, X: Any) -> Any:
        """Return the decision values of `estimator_`.

        Parameters
        ----------
        X : frame or array
            The table.
        """
        return self._call_inner("decision_function", X)

    @available_if(_inner_has("predict_proba"))
    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of `estimator_`.

        Parameters
        ----------
        X : frame or array
            The table.
        """
        return self._call_inner("predict_proba", X)

    @available_if(_inner_has("predict_log_proba"))
    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of the probabilities of `estimator_`.

        Parameters
        ----------
        X : frame or array
            The table.
        """
        return self._call_inner("predict_log_proba", X)

    @available_if(_inner_has("score_samples"))
    def score_samples(self, X: Any) -> Any:
        """Return the scores of a novelty detector.

        Parameters
        ----------
        X : frame or array
            The table.
        """
        return self._call_inner("score_samples", X)

    @available_if(_inner_has("transform"))
    def transform(self, X: Any) -> Any:
        """Transform the rows by `estimator_`.

        Parameters
        ----------
        X : frame or array
            The table.
        """
        return self._call_inner("transform", X)

    @available_if(_inner_has("fit_transform"))
    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit to a table and transform it."""
        return self.fit(X, y, sample_weight).transform(X)

    @available_if(_inner_has("fit_predict"))
    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit, and return the cluster of each row, or whether it is an outlier."""
        self.fit(X, y, sample_weight)
        labels = getattr(self, "labels_", ())
        return labels if len(labels) == len(frame_of(X)) else self.predict(X)  # labels_ lack dropped rows

    @available_if(_inner_has("score"))
    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the score of `estimator_`, such as accuracy or R², which does not depend on the unit of y."""
        check_is_fitted(self)
        rows = self.encode(X)
        if y is not None and is_regressor(self.estimator_):
            y = (_target(y) - self.target_mean_) / self.target_scale_
        score_options = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(self.estimator_.score(rows, y, **score_options))

    def _call_inner(self, name: str, X: Any) -> Any:
        check_is_fitted(self)
        return getattr(self.estimator_, name)(self.encode(X))

    @property
    def classes_(self) -> Any:
        """Classes of a classifier."""
        return self.estimator_.classes_

    @property
    def labels_(self) -> Any:
        """Cluster of each training row."""
        return self.estimator_.labels_

    @property
    def offset_(self) -> Any:
        """Score above which a novelty detector predicts +1."""
        return self.estimator_.offset_

    def _inner_model(self) -> Any:
        return getattr(self, "estimator_", self.estimator)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type, tags.transformer_tags = inner.estimator_type, inner.transformer_tags
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.target_tags = inner.target_tags
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        tags.input_tags.sparse = False
        return tags


def _parsed_columns(frame: Frame, encodings: Sequence[Encoding]) -> list[Any]:
    """Return the columns of a table; columns encoded as `Numbers` are parsed."""
    return [
        encoding.values(cells, frame.number_column(encoding.name, NumberFormat(encoding.marks, encoding.unit)))
        if isinstance(encoding, Numbers) and cells.dtype == object
        else cells
        for encoding, cells in zip(encodings, frame.columns, strict=True)
    ]


def _complete_rows(frame: Frame, encodings: list[Encoding]) -> Indices:
    pairs = zip(encodings, frame.columns, strict=True)
    masks = [missing_values(column) for encoding, column in pairs if not isinstance(encoding, DroppedColumn)]
    rows = np.flatnonzero(~np.any(masks, axis=0))
    if not len(rows):
        raise ValueError("every row has a missing value, so missing='drop' leaves no row; use missing='impute'")
    return rows


def _take_rows(rows: Indices, frame: Frame, y: Any, weight: Floats) -> tuple[Frame, Any, Floats]:
    return frame.rows(rows), None if y is None else np.asarray(y)[rows], weight[rows]


def _target(y: Any) -> Any:
    """Return the targets of a regression as float64, one or several for each row."""
    has_one_target = np.ndim(y) < 2 or np.shape(y)[1] == 1
    values = column_or_1d(y, warn=np.ndim(y) > 1) if has_one_target else np.asarray(y)
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"a regression needs numbers in y: {error}") from None


def used_columns(model: Tabular) -> list[str]:
    """Return the names of the columns that the model uses."""
    return [encoding.name for encoding in model.columns_ if not isinstance(encoding, DroppedColumn)]


def table_in(model: Any) -> Tabular | None:
    """Return the `Tabular` of a model: the model itself, or the estimator inside a calibrated model; else None."""
    candidates = (model, getattr(model, "estimator_", None))
    return next((candidate for candidate in candidates if isinstance(candidate, Tabular)), None)
