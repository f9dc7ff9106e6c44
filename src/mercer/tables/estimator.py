"""An estimator that learns from tables as they come: every column becomes numbers, and so does the way back."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
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
from mercer.places.host.prepared import SPARSE_SHARE
from mercer.runtime.available import available_if
from mercer.runtime.errors import GuessWarning, warn_user
from mercer.runtime.parameters import meant
from mercer.runtime.refitting import adopt_fit, blank_copy
from mercer.runtime.shared_docs import shared_docs
from mercer.samples.arrays import Floats, Indices, is_sparse
from mercer.tables.cells import holes
from mercer.tables.choice import WISHES, Wishes, encodings_for, guesses, strange_words
from mercer.tables.encodings import Dates, Encoding, LeftOut, Levels, Numbers, Words, moments
from mercer.tables.frame import Frame, frame_of

_LISTS = ("drop", "only", "categorical", "numeric", "text")
_READING = ("separator", "decimal", "encoding", "units", "na", "target", "digest")


def tabular(estimator: Any, **columns: Any) -> Tabular:
    """Let an estimator learn from a table as it comes; see `Tabular` for what is done to each column.

    Parameters
    ----------
    estimator : estimator
        What learns from the numbers.
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
    known = inspect.signature(Tabular).parameters
    for name in columns.keys() - known.keys():
        raise TypeError(f"tabular got an unexpected parameter {name}={columns[name]!r}{meant(name, known)}")
    return Tabular(estimator, **columns)


def _inner_has(name: str) -> Callable[[Any], bool]:
    def check(model: Any) -> bool:
        getattr(getattr(model, "estimator_", model.estimator), name)  # its AttributeError says why
        return True

    return check


@shared_docs
@dataclass(eq=False, repr=False)
class Tabular(ModelMethods, ShowsCertificate, MetaEstimatorMixin, DeclaresState, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """An estimator for tables: pandas, polars and pyarrow frames, and arrays of anything.

    Numbers are standardised. Truth values and categories get a column for each level; a level that is new in prediction
    gets none. Dates become seconds, standardised, with the time of day and of the year if they have them. A hole is
    filled with the median, or is a level of its own, and a column marks it. Of texts that differ in most rows the words
    are counted if they recur; others, and identifiers, are left out, with a warning. For a regression y is standardised
    too, so that `C` and `epsilon` mean the same whatever y is measured in; predictions are in y's own unit, the
    certificate of `estimator_` is not.

    Prediction finds its columns by name, in any order. It ignores others, and raises an error that names those missing.

    Parameters
    ----------
    estimator : estimator
        What learns from the numbers.
    %(columns)s

    Attributes
    ----------
    estimator_ : estimator
        Fitted, with its certificate.
    columns_ : list
        What is done to each column; `columns_told` says it in words.
    target_mean_, target_scale_ : float or array
        What y was standardised with: 0 and 1, but for a regression.
    n_rows_dropped_ : int
        Rows that ``missing="drop"`` left out.
    rows_ : array of int
        The rows that were trained on: all but those, and but those of weight 0.
    n_features_in_ : int
    feature_names_in_ : array of str
        Of a frame whose columns have names.
    reading_ : dict
        How the command line read the table, for the next one.

    Examples
    --------
    See `tabular`.
    """

    _FITTED = fitted(
        estimator_=NestedEstimator(required=True),
        columns_=ListOf(OneOf(Numbers, Levels, Dates, Words, LeftOut), required=True),
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
        """Learn what each column holds, and then from it.

        Parameters
        ----------
        X : frame or array
            The table.
        y : column, optional
            What to learn of each sample.
        sample_weight : array, optional
            A weight of 2 equals the sample given twice.
        """
        if self.missing not in ("impute", "drop"):
            raise ValueError(f"missing={self.missing!r} must be 'impute' or 'drop'")
        wishes = self.wishes()
        frame = frame_of(X)
        if y is not None:
            y = y if hasattr(y, "__len__") else np.asarray(y)
            if len(y) != len(frame):
                raise ValueError(f"X has {len(frame)} rows, but y has {len(y)}: inconsistent numbers of samples")
        weight = _check_sample_weight(sample_weight, np.empty(len(frame)), dtype=np.float64)
        rows = np.arange(len(frame))
        if sample_weight is not None and (weight > 0).any():  # else the estimator has an error of its own
            rows = np.flatnonzero(weight != 0)
            frame, y, weight = _some_rows(rows, frame, y, weight)
        encodings = encodings_for(frame, wishes, weight)
        n_dropped = 0
        if self.missing == "drop":
            whole = _rows_without_holes(frame, encodings)
            n_dropped, rows = len(frame) - len(whole), rows[whole]
            frame, y, weight = _some_rows(whole, frame, y, weight)
            encodings = encodings_for(frame, wishes, weight)
        mean, scale = 0.0, 1.0
        if is_regressor(self.estimator) and y is not None and self.standardise:
            y = _target(y)
            mean, scale = _standard(y, weight)
            y = (y - mean) / scale
        given = {} if sample_weight is None else {"sample_weight": weight}
        fitted = blank_copy(self)
        fitted.estimator_ = clone(self.estimator).fit(_encoded(frame, encodings), y, **given)
        fitted.columns_, fitted.rows_ = encodings, rows
        fitted.target_mean_, fitted.target_scale_ = mean, scale
        fitted.n_rows_dropped_ = n_dropped
        fitted.n_features_in_ = frame.shape[1]
        if frame.named:
            fitted.feature_names_in_ = np.array(frame.names, dtype=object)
        for told in guesses(frame, encodings, wishes).values():
            warn_user(told, GuessWarning)  # an error where warnings are errors: the fit has failed
        return adopt_fit(self, fitted)

    # --- files -------------------------------------------------------------------------------------------------------

    def _parameters_to_save(self) -> dict[str, Any]:
        params = super()._parameters_to_save()
        if "estimator_" in vars(self):
            params["estimator"] = None  # the fitted one says the same
        for name in _LISTS:
            given = params[name]
            params[name] = given if given is None or isinstance(given, tuple) else list(given)
        return params

    def _check_saved_parameters(self) -> None:
        for name in _LISTS:
            given = getattr(self, name)
            names = isinstance(given, (list, tuple)) and all(isinstance(one, str) for one in given)
            expect(names or (name == "only" and given is None), f"{name} must be names")
        expect(self.missing in ("impute", "drop"), f"missing cannot be {self.missing!r:.40}")
        expect(type(self.standardise) is bool, "standardise must be true or false")

    def _check_fitted(self) -> None:
        names = [one.name for one in self.columns_]
        expect(len(set(names)) == len(names) == self.n_features_in_ > 0, "every column needs a name of its own")
        made = sum(len(one.titles) for one in self.columns_)
        known = getattr(self.estimator_, "n_features_in_", None)
        expect(made == known, f"the columns become {made} numbers, and the estimator expects {known}")
        finite = np.isfinite(self.target_mean_).all() and np.isfinite(self.target_scale_).all()
        expect(bool(finite), "y was standardised with finite numbers")
        if hasattr(self, "feature_names_in_"):
            expect(list(self.feature_names_in_) == names, "feature_names_in_ must be the names of the columns")

    def _complete_fitted(self) -> None:
        self.estimator = clone(self.estimator_)

    # --- parameters --------------------------------------------------------------------------------------------------

    def wishes(self) -> Wishes:
        """What the parameters ask of the columns."""
        lists: dict[str, Any] = {}
        for word in WISHES:
            value = getattr(self, word)
            if isinstance(value, str):
                raise TypeError(f"{word}={value!r} must be a list of names: {word}=[{value!r}]")
            lists[word] = None if value is None else tuple(value)
        return Wishes(**lists, standardise=self.standardise)

    # --- prediction --------------------------------------------------------------------------------------------------

    def encode(self, X: Any) -> Any:
        """The rows as `estimator_` sees them.

        Parameters
        ----------
        X : frame or array
            The table.
        """
        check_is_fitted(self)
        frame = self._matched(frame_of(X))
        for one, cells in zip(self.columns_, frame.columns, strict=True):
            told = None if one.name in self.numeric else strange_words(one, cells)
            if told is not None:
                warn_user(told, GuessWarning)
        return _encoded(frame, self.columns_)

    def decode(self, rows: Any) -> Any:
        """The cells of rows as `estimator_` sees them: an array of objects with all columns of the table.

        None stands where a column was left out, in a category's hole, and for a level that was new. Of a text there are
        its words.

        Parameters
        ----------
        rows : array or CSR matrix
            What `encode` gives.
        """
        check_is_fitted(self)
        numbers = rows.toarray() if is_sparse(rows) else np.asarray(rows, dtype=np.float64)
        ends = np.cumsum([len(one.titles) for one in self.columns_])
        out = np.empty((len(numbers), len(ends)), dtype=object)
        for j, (one, end) in enumerate(zip(self.columns_, ends, strict=True)):
            out[:, j] = one.decode(numbers[:, end - len(one.titles) : end])
        return out

    def columns_told(self) -> str:
        """What is done to each column, a line for each."""
        check_is_fitted(self)
        width = max(len(one.name) for one in self.columns_)
        return "\n".join(f"{one.name:<{width}}  {one.description}" for one in self.columns_)

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """The names of what `transform` gives; without it, of the numbers that the columns become."""
        check_is_fitted(self)
        if hasattr(self.estimator_, "transform"):
            return self.estimator_.get_feature_names_out()
        return np.array([title for one in self.columns_ for title in one.titles], dtype=object)

    def _matched(self, frame: Frame) -> Frame:
        """The columns of training, in their order; those that are left out may be absent."""
        known = [one.name for one in self.columns_]
        if not frame.named or not hasattr(self, "feature_names_in_"):
            if frame.shape[1] != self.n_features_in_:
                raise ValueError(
                    f"X has {frame.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                    "features as input"
                )
            return Frame(known, frame.columns, frame.named)
        given = dict(zip(frame.names, frame.columns, strict=True))
        absent = [name for name in used_columns(self) if name not in given]
        if absent:
            raise ValueError(
                f"the table lacks the column{'s' * (len(absent) > 1)} {', '.join(map(repr, absent))} that the model "
                f"was trained on; it has {', '.join(map(repr, frame.names))}"
            )
        nothing = np.full(len(frame), None, dtype=object)
        return Frame(known, [given.get(name, nothing) for name in known])

    @available_if(_inner_has("predict"))
    def predict(self, X: Any) -> Any:
        """Predict every row; numbers are in the unit of y.

        Parameters
        ----------
        X : frame or array
            The table.
        """
        answer = self._asked("predict", X)
        if is_regressor(self.estimator_):
            return answer * self.target_scale_ + self.target_mean_
        return answer

    @available_if(_inner_has("decision_function"))
    def decision_function(self, X: Any) -> Any:
        """The decision values of `estimator_`.

        Parameters
        ----------
        X : frame or array
            The table.
        """
        return self._asked("decision_function", X)

    @available_if(_inner_has("predict_proba"))
    def predict_proba(self, X: Any) -> Any:
        """The probabilities of `estimator_`.

        Parameters
        ----------
        X : frame or array
            The table.
        """
        return self._asked("predict_proba", X)

    @available_if(_inner_has("predict_log_proba"))
    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of the probabilities of `estimator_`.

        Parameters
        ----------
        X : frame or array
            The table.
        """
        return self._asked("predict_log_proba", X)

    @available_if(_inner_has("score_samples"))
    def score_samples(self, X: Any) -> Any:
        """The scores of a novelty detector.

        Parameters
        ----------
        X : frame or array
            The table.
        """
        return self._asked("score_samples", X)

    @available_if(_inner_has("transform"))
    def transform(self, X: Any) -> Any:
        """Transform the rows by `estimator_`.

        Parameters
        ----------
        X : frame or array
            The table.
        """
        return self._asked("transform", X)

    @available_if(_inner_has("fit_transform"))
    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """`fit`, and then `transform` of the same table."""
        return self.fit(X, y, sample_weight).transform(X)

    @available_if(_inner_has("fit_predict"))
    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """`fit`, and then the cluster of each row, or whether it is an outlier."""
        self.fit(X, y, sample_weight)
        labels = getattr(self, "labels_", ())
        return labels if len(labels) == len(frame_of(X)) else self.predict(X)  # labels_ lack rows that were left out

    @available_if(_inner_has("score"))
    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The score of `estimator_`: accuracy, R², which no unit changes, or its own."""
        check_is_fitted(self)
        rows = self.encode(X)
        if y is not None and is_regressor(self.estimator_):
            y = (_target(y) - self.target_mean_) / self.target_scale_
        given = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(self.estimator_.score(rows, y, **given))

    def _asked(self, name: str, X: Any) -> Any:
        check_is_fitted(self)
        return getattr(self.estimator_, name)(self.encode(X))

    @property
    def classes_(self) -> Any:
        """The classes, of a classifier."""
        return self.estimator_.classes_

    @property
    def labels_(self) -> Any:
        """The cluster of each row that was trained on."""
        return self.estimator_.labels_

    @property
    def offset_(self) -> Any:
        """Return the score above which a novelty detector decides for +1."""
        return self.estimator_.offset_

    def _inside(self) -> Any:
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


def _encoded(frame: Frame, encodings: list[Encoding]) -> Any:
    """All columns side by side: dense, or CSR where most of it is zero.

    The encodings alone decide which, so that a row has the same numbers to the last bit whatever rows come with it.
    """
    parts = [one.encode(column) for one, column in zip(encodings, frame.columns, strict=True)]
    width = sum(len(one.titles) for one in encodings)
    full = sum(len(one.titles) for one in encodings if isinstance(one, (Numbers, Dates)))
    # The core would treat dense rows as sparse below this share of entries that are not zero.
    if full + sum(isinstance(one, Levels) for one in encodings) < SPARSE_SHARE * width:
        return sp.csr_array(sp.hstack([sp.csr_array(part) for part in parts]))
    return np.hstack([part.toarray() if is_sparse(part) else part for part in parts])


def _rows_without_holes(frame: Frame, encodings: list[Encoding]) -> Indices:
    pairs = zip(encodings, frame.columns, strict=True)
    used = [holes(column) for one, column in pairs if not isinstance(one, LeftOut)]
    rows = np.flatnonzero(~np.any(used, axis=0))
    if not len(rows):
        raise ValueError("every row has a missing value, so that missing='drop' leaves no row; use missing='impute'")
    return rows


def _some_rows(rows: Indices, frame: Frame, y: Any, weight: Floats) -> tuple[Frame, Any, Floats]:
    return frame.rows(rows), None if y is None else np.asarray(y)[rows], weight[rows]


def _target(y: Any) -> Any:
    """Numbers to predict, one or several a row."""
    values = np.asarray(y)
    if values.ndim < 2 or values.shape[1] == 1:
        values = column_or_1d(values, warn=values.ndim > 1)
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"a regression needs numbers in y: {error}") from None


def _standard(y: Any, weight: Floats) -> tuple[Any, Any]:
    """Mean and standard deviation of each target, 1 for one that never changes."""
    if not np.isfinite(y).all() or not weight.sum() > 0:
        return 0.0, 1.0  # the estimator has an error of its own for these
    if y.ndim == 1:
        return moments(y, weight)
    means, scales = zip(*(moments(column, weight) for column in y.T), strict=True)
    return np.array(means), np.array(scales)


def used_columns(model: Tabular) -> list[str]:
    """The columns that the model learnt from."""
    return [one.name for one in model.columns_ if not isinstance(one, LeftOut)]


def table_in(model: Any) -> Tabular | None:
    """What reads the tables of a model: itself, or what a calibration is around."""
    return next((one for one in (model, getattr(model, "estimator_", None)) if isinstance(one, Tabular)), None)
