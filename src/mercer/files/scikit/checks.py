"""Checks of the attributes of scikit-learn's transformers and wrappers, so that no file can make them misbehave.

scikit-learn trusts its own attributes: an index of a vocabulary that is out of range, for instance, is written into a
sparse matrix unchecked. Therefore every index, size and pattern is checked here, on saving and on loading.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from mercer.estimators.fitting.pipeline.class_spec import Plain
from mercer.estimators.fitting.pipeline.state import (
    Array,
    AttributeSpec,
    Labels,
    ListOf,
    NestedEstimator,
    Predicate,
    expect,
    is_count,
    is_number,
)
from mercer.runtime.errors import ModelFormatError

Fitted = Any  # an estimator of scikit-learn, which has no type annotations

# Largest number of columns of a dense row (8 MB); the default of HashingVectorizer.
MOST_OUTPUTS: Final = 2**20


@dataclass(frozen=True)
class Categories(AttributeSpec):
    """Categories of one column; numbers must ascend (NaN last), since they are searched by bisection."""

    def check(self, name: str, value: Any, model: Fitted) -> None:
        """Raise ModelFormatError unless the value fits this spec."""
        expect(isinstance(value, np.ndarray) and value.ndim == 1, f"{name} must be an array")
        if value.dtype.kind in "iufb":
            without_nan = value[~np.isnan(value)] if value.dtype.kind == "f" else value
            is_ascending = bool((without_nan[1:] > without_nan[:-1]).all()) and len(without_nan) >= len(value) - 1
            expect(
                is_ascending and bool((without_nan == value[: len(without_nan)]).all()),
                f"{name} must ascend, each value once",
            )
        else:
            items = [item for item in value.tolist() if item == item]  # without NaN, which differs from itself
            expect(len(set(items)) == len(items), f"{name} must contain each value once")


@dataclass(frozen=True)
class Vocabulary(AttributeSpec):
    """Dictionary of terms and their columns, saved as the list of terms in the order of columns."""

    def to_plain(self, name: str, value: Any) -> Plain:
        """Return what a file stores for the attribute, by the names of its entries."""
        self.check(name, value, None)
        return {name: [term for term, _ in sorted(value.items(), key=lambda pair: int(pair[1]))]}

    def from_plain(self, name: str, parts: Plain, model: Fitted) -> Any:
        """Build the attribute's value from what a file stores for it."""
        terms = parts[name]
        expect(
            isinstance(terms, list) and all(isinstance(term, str) for term in terms), f"{name} must be a list of terms"
        )
        return {term: column for column, term in enumerate(terms)}

    def check(self, name: str, value: Any, model: Fitted) -> None:
        """Raise ModelFormatError unless the value fits this spec."""
        is_valid = isinstance(value, dict) and all(isinstance(term, str) for term in value)
        columns = list(value.values()) if is_valid else []
        is_valid = is_valid and all(is_count(column) for column in columns) and len(columns) > 0
        expect(is_valid and sorted(columns) == list(range(len(columns))), f"{name} must have one column for each term")


DTYPE: Final = Predicate(must="be a dtype", holds=lambda value, _: isinstance(value, np.dtype))
DIMENSIONS: Final = Predicate(must="be one of (1, 2)", holds=lambda value, _: type(value) is int and value in (1, 2))


@dataclass(frozen=True)
class Edges(AttributeSpec):
    """Bin edges of each feature: an array of arrays, saved as a list."""

    def to_plain(self, name: str, value: Any) -> Plain:
        return {name: list(value)}

    def from_plain(self, name: str, parts: Plain, model: Fitted) -> Any:
        """Build the attribute's value from what a file stores for it."""
        expect(isinstance(parts[name], list), f"{name} must be a list")
        edges = np.empty(len(parts[name]), dtype=object)
        edges[:] = parts[name]
        return edges

    def check(self, name: str, value: Any, model: Fitted) -> None:
        ListOf(Array(None, kinds="f"), "n_features_in_").check(name, list(value), model)


@dataclass(frozen=True)
class RebuiltObjects(AttributeSpec):
    """List of objects other than estimators, each saved as a dictionary of attributes and rebuilt by a function."""

    rebuild: Callable[..., Any]
    names: frozenset[str]

    def to_plain(self, name: str, value: Any) -> Plain:
        """Return what a file stores for the attribute, by the names of its entries."""
        for item in value:
            expect(vars(item).keys() == self.names, f"{name} has other attributes than {sorted(self.names)}")
        return {name: [dict(vars(item)) for item in value]}

    def from_plain(self, name: str, parts: Plain, model: Fitted) -> Any:
        """Build the attribute's value from what a file stores for it."""
        items = parts[name]
        is_valid = isinstance(items, list) and all(
            isinstance(item, dict) and item.keys() == self.names for item in items
        )
        expect(is_valid, f"{name} must be a list of {sorted(self.names)}")
        return [self.rebuild(**item) for item in items]


# --- consistency of parameters and attributes, with a function for each class -----------------------------------------

_STEP = NestedEstimator(methods=("transform",), words=("passthrough", None))
_PART = NestedEstimator(methods=("transform",), words=("passthrough", "drop"))


def check_nothing(model: Fitted) -> None:
    """Check nothing: for a class whose attribute specs suffice."""


def check_bins(model: Fitted) -> None:
    """Check a KBinsDiscretizer."""
    for edges, n in zip(model.bin_edges_, model.n_bins_, strict=True):
        expect(len(edges) == n + 1, "bin_edges_ must have one entry more than there are bins")
    expect(model.encode == "ordinal" or hasattr(model, "_encoder"), f"encode={model.encode!r} needs _encoder")


def check_polynomial(model: Fitted) -> None:
    """Check the degrees and the number of columns of PolynomialFeatures."""
    n, low, high = model.n_features_in_, model._min_degree, model._max_degree
    expect(low <= high <= 1000 and n <= MOST_OUTPUTS, "the degrees must ascend and be at most 1000")

    def terms(least: int) -> int:
        """Return the number of monomials of degrees `least` to `high`, as scikit-learn counts them."""
        if model.interaction_only:
            count = sum(math.comb(n, k) for k in range(max(1, least), min(high, n) + 1))
        else:
            count = math.comb(n + high, high) - (math.comb(n + least - 1, least - 1) if least > 0 else 1)
        return count + bool(model.include_bias)

    expect(terms(0) <= MOST_OUTPUTS, f"{terms(0)} columns are more than {MOST_OUTPUTS}, the limit for a file")
    expect(model._n_out_full == terms(0), f"_n_out_full must be {terms(0)}")
    expect(model.n_output_features_ == terms(low), f"n_output_features_ must be {terms(low)}")


def check_function_transformer(model: Fitted) -> None:
    """Check the parameters of a FunctionTransformer."""
    expect(not model.kw_args and not model.inv_kw_args, "kw_args and inv_kw_args must be empty")
    expect(model.feature_names_out in (None, "one-to-one"), "feature_names_out must be 'one-to-one' or None")


def check_nystroem(model: Fitted) -> None:
    """Check a Nystroem map."""
    expect(len(model.components_) == model._n_features_out, "components_ must have _n_features_out rows")
    expect(model.kernel_params is None or isinstance(model.kernel_params, dict), "kernel_params must be a dict")


def check_indicator(model: Fitted) -> None:
    """Check a MissingIndicator."""
    expect(
        model._n_features == getattr(model, "n_features_in_", model._n_features),
        "_n_features must be the number of features",
    )


def check_number_type(model: Fitted) -> None:
    """Check that the parameter dtype is a type of numbers."""
    try:
        kind = np.dtype(model.dtype).kind
    except TypeError:
        kind = "?"
    expect(kind in "fiub" and model.dtype is not None, f"dtype must be a type of numbers, not {model.dtype!r:.60}")


def _check_groups(model: Fitted) -> list[int]:
    """Return the number of categories in each column after rare ones were merged; check the merging."""
    counts = [len(categories) for categories in model.categories_]
    expect(all(counts), "every column must have a category")
    if not model._infrequent_enabled:
        return counts
    expect(hasattr(model, "_infrequent_indices"), "rare categories need _infrequent_indices")
    expect(hasattr(model, "_default_to_infrequent_mappings"), "rare categories need their mappings")
    pairs = zip(model._infrequent_indices, model._default_to_infrequent_mappings, strict=True)
    for i, (rare_categories, mapping) in enumerate(pairs):
        expect((rare_categories is None) == (mapping is None), "rare categories and their mappings must go together")
        if mapping is not None:
            expect(
                0 < len(rare_categories) <= counts[i] and rare_categories.max() < counts[i],
                "rare categories must be categories",
            )
            groups = counts[i] - len(rare_categories) + 1
            expect(len(mapping) == counts[i] and mapping.max() < groups, "every category must have a group")
            counts[i] = groups
    return counts


def check_one_hot(model: Fitted) -> None:
    """Check a OneHotEncoder."""
    counts = _check_groups(model)
    dropped_categories = model._drop_idx_after_grouping
    for i, index in enumerate([None] * len(counts) if dropped_categories is None else dropped_categories):
        expect(index is None or is_count(index, counts[i]), "a dropped category must exist")
        counts[i] -= index is not None
    expect(list(model._n_features_outs) == counts, f"_n_features_outs must be {counts}")


def check_ordinal(model: Fitted) -> None:
    """Check an OrdinalEncoder."""
    _check_groups(model)
    missing = model._missing_indices
    n = model.n_features_in_
    is_valid = isinstance(missing, dict) and all(is_count(key, n) and is_count(value) for key, value in missing.items())
    expect(is_valid, "_missing_indices must be indices of columns")


def check_texts(model: Fitted) -> None:
    """Check the parameters of a text vectorizer."""
    check_number_type(model)
    expect(model.input == "content", "input must be 'content': a model file must not make other files be opened")
    expect(isinstance(model.analyzer, str), "analyzer must be a word")
    for name in ("preprocessor", "tokenizer"):
        expect(getattr(model, name) is None, f"{name} must be None")
    expect(model.strip_accents is None or isinstance(model.strip_accents, str), "strip_accents must be a word")
    words = model.stop_words
    is_list_of_words = isinstance(words, list) and all(isinstance(word, str) for word in words)
    expect(words is None or isinstance(words, str) or is_list_of_words, "stop_words must be a list of words")
    low, high = model.ngram_range if len(model.ngram_range) == 2 else (1, 0)
    # All n-grams of a text are in memory at once: those of up to 50 letters of a text of 100,000 take about 150 MB.
    expect(is_count(low) and is_count(high) and 1 <= low <= high <= 50, "ngram_range must be two counts up to 50")
    if model.token_pattern is not None:
        check_pattern("token_pattern", model.token_pattern)


def check_tfidf(model: Fitted) -> None:
    """Check a TfidfVectorizer."""
    expect(type(model._tfidf).__name__ == "TfidfTransformer", "_tfidf must be a TfidfTransformer")
    n_weights = getattr(model._tfidf, "n_features_in_", None)
    expect(n_weights == len(model.vocabulary_), f"there are {len(model.vocabulary_)} terms, but {n_weights} weights")


# --- models made of others -------------------------------------------------------------------------------------------


def _check_parts(name: str, value: Any, spec: NestedEstimator, length: int = 2) -> list[Any]:
    """Check a list of (name, estimator) or (name, estimator, columns) with unique names, and return it."""
    is_valid = isinstance(value, list) and all(
        isinstance(part, (tuple, list)) and len(part) == length for part in value
    )
    expect(
        is_valid and all(isinstance(part[0], str) for part in value), f"{name} must be a list of names and estimators"
    )
    expect(len({part[0] for part in value}) == len(value), f"{name} must have each name once")
    for part in value:
        spec.check(f"{name} {part[0]!r:.60}", part[1], None)
    return list(value)


def check_pipeline(model: Fitted) -> None:
    """Check the steps of a Pipeline."""
    expect(isinstance(model.steps, list) and len(model.steps) > 0, "steps must be a list")
    expect(getattr(model, "transform_input", None) is None, "transform_input must be None")
    _check_parts("steps", model.steps[:-1], _STEP)
    _check_parts("steps", model.steps[-1:], NestedEstimator(words=("passthrough", None)))
    expect(len({step[0] for step in model.steps}) == len(model.steps), "steps must have each name once")


def _check_weights(model: Fitted, name: str, names: set[str]) -> None:
    """Check that weights are None or numbers by name."""
    weights = getattr(model, name)
    is_valid = isinstance(weights, dict) and all(key in names and is_number(value) for key, value in weights.items())
    expect(weights is None or is_valid, f"{name} must be numbers by name")


def check_union(model: Fitted) -> None:
    """Check the parameters of a FeatureUnion."""
    parts = _check_parts("transformer_list", model.transformer_list, _PART)
    _check_weights(model, "transformer_weights", {part[0] for part in parts})


def check_column_parts(model: Fitted) -> None:
    """Check the parameters of a ColumnTransformer."""
    parts = _check_parts("transformers", model.transformers, _PART, length=3)
    _PART.check("remainder", model.remainder, None)
    _check_weights(model, "transformer_weights", {*(part[0] for part in parts), "remainder"})


def check_column_transformer(model: Fitted) -> None:
    """Check the fitted attributes of a ColumnTransformer."""
    parts = _check_parts("transformers_", model.transformers_, _PART, length=3)
    remainder = model._remainder
    expect(isinstance(remainder, tuple) and len(remainder) == 3, "_remainder must be a name, an estimator and columns")
    _PART.check("_remainder", remainder[1], model)
    transformer_columns = vars(model)["_columns"]
    is_complete_list = isinstance(transformer_columns, list) and len(transformer_columns) == len(model.transformers)
    expect(is_complete_list, "_columns must be those of the transformers")
    trained_names = set(getattr(model, "feature_names_in_", ()))
    for number, chosen in enumerate([*(part[2] for part in parts), *transformer_columns, remainder[2] or []]):
        check_columns(f"columns {number}", chosen, int(model.n_features_in_), trained_names)
    indices = model._transformer_to_input_indices
    is_valid = isinstance(indices, dict) and {part[0] for part in parts} <= indices.keys()
    expect(is_valid, "_transformer_to_input_indices must have every transformer")
    for name, columns in indices.items():
        expect(isinstance(name, str) and isinstance(columns, list), f"the columns of {name!r:.60} must be a list")
        expect(
            all(is_count(index, model.n_features_in_) for index in columns),
            f"{name!r:.60} has columns beyond the last",
        )
    if not model.sparse_output_:
        widest = max((vectorizer.n_features for vectorizer in _hashing_vectorizers(model.transformers_)), default=0)
        expect(widest <= MOST_OUTPUTS, f"{widest} columns are more than a dense row may have, {MOST_OUTPUTS}")
    slices = model.output_indices_
    is_valid = isinstance(slices, dict) and all(isinstance(entry, slice) for entry in slices.values())
    expect(is_valid, "output_indices_ must be slices by name")


def _hashing_vectorizers(value: Any) -> list[Any]:
    """Return every HashingVectorizer in a list of transformers; its width is not backed by an array in the file."""
    if isinstance(value, (list, tuple)):
        return [vectorizer for item in value for vectorizer in _hashing_vectorizers(item)]
    if type(value).__name__ == "HashingVectorizer":
        return [value]
    return [
        vectorizer
        for name in ("steps", "transformer_list")
        for vectorizer in _hashing_vectorizers(getattr(value, name, None) or [])
    ]


def check_selector(model: Fitted) -> None:
    """Check the pattern of a make_column_selector."""
    if model.pattern is not None:
        check_pattern("pattern", model.pattern)


def check_calibrated(model: Fitted) -> None:
    """Check a CalibratedClassifierCV."""
    for fold in model.calibrated_classifiers_:
        NestedEstimator(methods=("classes_",)).check("the estimator of a calibrated classifier", fold.estimator, model)
        Labels(without_outputs=True).check("classes", fold.classes, model)
        Labels(without_outputs=True).check("classes_ of the estimator", fold.estimator.classes_, model)
        has_same_classes = bool(np.array_equal(fold.classes, model.classes_))
        expect(has_same_classes, "all calibrated classifiers must have the same classes")
        n = len(fold.estimator.classes_)
        n_calibrators = 1 if n == 2 or fold.method == "temperature" else n
        encodes = fold.method == "temperature" and fold.classes.dtype.kind in "OU"  # scikit-learn fits to indices then
        known = np.arange(len(fold.classes)) if encodes else fold.classes
        expect(bool(np.isin(fold.estimator.classes_, known).all()), "classes_ of the estimator must be known")
        ListOf(NestedEstimator(methods=("predict",)), n_calibrators).check("calibrators", fold.calibrators, model)
    expect(len(model.calibrated_classifiers_) > 0, "there must be a calibrated classifier")


def check_isotonic(model: Fitted) -> None:
    """Check the thresholds of an IsotonicRegression."""
    x = model.X_thresholds_
    expect(len(x) > 0 and bool((x[1:] >= x[:-1]).all()), "X_thresholds_ must ascend")


def set_isotonic_function(model: Fitted) -> None:
    """Set f_ of an IsotonicRegression."""
    import sklearn

    model.__setstate__({"_sklearn_version": sklearn.__version__})  # as scikit-learn itself restores f_


def check_frozen(model: Fitted) -> None:
    """Check a FrozenEstimator."""
    NestedEstimator().check("estimator", model.estimator, None)


def check_voters(model: Fitted) -> None:
    """Check the parameters of a voting ensemble."""
    parts = _check_parts("estimators", model.estimators, NestedEstimator(words=("drop",)))
    weights = model.weights
    is_weight_list = isinstance(weights, (list, tuple, np.ndarray)) and len(weights) == len(parts)
    expect(
        weights is None or (is_weight_list and all(is_number(w) for w in weights)),
        "weights must be one for each estimator",
    )


def check_voting(model: Fitted) -> None:
    """Check the number of fitted estimators of a voting ensemble."""
    n_estimators = sum(not isinstance(part[1], str) for part in model.estimators)
    expect(len(model.estimators_) == n_estimators > 0, f"estimators_ must be {n_estimators}, as there are estimators")


def check_voting_classes(model: Fitted) -> None:
    """Check the classes of a VotingClassifier; a class out of range would make its array of votes huge."""
    check_voting(model)
    for estimator in model.estimators_:
        classes = estimator.classes_
        is_valid = (
            isinstance(classes, np.ndarray) and classes.ndim == 1 and classes.dtype.kind == "i" and len(classes) > 0
        )
        in_range = is_valid and classes.min() >= 0 and classes.max() < len(model.classes_)
        expect(bool(in_range), "the classes of estimators_ must be numbers of classes_")


def set_voting_names(model: Fitted) -> None:
    """Set the label encoder and the named estimators of a voting ensemble."""
    from sklearn.preprocessing import LabelEncoder
    from sklearn.utils import Bunch

    if hasattr(model, "classes_"):
        model.le_ = LabelEncoder().fit(model.classes_)
    names = [name for name, part in model.estimators if not isinstance(part, str)]
    by_name = dict(zip(names, model.estimators_, strict=True))
    model.named_estimators_ = Bunch(**{name: by_name.get(name, "drop") for name, _ in model.estimators})


# One character: a set, a class such as \w, an escaped character, any character, or a literal letter.
_ONE: Final = r"(?:\[\^?+(?:\\.|[^\\])(?:\\.|[^\\\]])*+\]|\\[wWdDsS]|\\[^\w\s]|[^\\\[\](){}*+?|^$])"
_PATTERN: Final = re.compile(
    rf"(?:\(\?[aisu]+\))?(?P<first>\^|\\b)?(?P<many>{_ONE})*+"
    r"(?P<times>[*+?]|\{\d{1,2}(?:(?P<open>,)(?P<most>\d{1,2})?)?\})?(?P<last>\$|\\b)?",
    re.DOTALL,
)


def check_pattern(name: str, pattern: Any) -> None:
    """Raise ModelFormatError unless a regular expression runs in linear time on every text.

    A pattern consists of single characters and classes, the last of which may be repeated, between optional ``\\b``,
    ``^`` and ``$``. Without an anchor at the end, a repetition is greedy and never backtracks. With one, it backtracks
    to a boundary or the end of the text; then the pattern must also start at such a position, so that a stretch without
    boundaries is read a bounded number of times. A run of ``\\w`` ends at a boundary itself.
    """
    expect(isinstance(pattern, str) and len(pattern) <= 200, f"{name} must be a pattern of at most 200 characters")
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ModelFormatError(f"{name}: {error}") from None
    match = _PATTERN.fullmatch(pattern)
    is_linear = match is not None
    if match is not None and match["last"] is not None:
        is_unbounded = match["times"] in ("*", "+") or (match["open"] is not None and match["most"] is None)
        has_boundaries = match["last"] == r"\b" and (match["first"] == r"\b" or match["many"] == r"\w")
        is_linear = not is_unbounded or match["first"] == "^" or has_boundaries
    expect(
        is_linear,
        f"{name}={pattern!r:.80} may take more than linear time. A .mercer file can hold patterns of "
        r"single characters and classes (\w, \d, [a-z], .), the last of which may be repeated (+, *, ?, {2,5}), with "
        r"\b or ^ before and \b or $ after them, such as scikit-learn's own '(?u)\b\w\w+\b': choose such a pattern",
    )


def check_columns(name: str, columns: Any, n: int, known_names: Collection[str]) -> None:
    """Check that columns given by name, number, mask or slice exist in a table of n columns."""
    if isinstance(columns, slice):
        ends: Iterable[Any] = (columns.start, columns.stop)
        has_known_names = all(end is None or isinstance(end, int) or end in known_names for end in ends)
        expect(
            has_known_names and (columns.step is None or type(columns.step) is int), f"{name} is not a slice of columns"
        )
        return
    items = columns.tolist() if isinstance(columns, np.ndarray) else columns
    items = items if isinstance(items, list) else [items]
    if items and all(isinstance(item, bool) for item in items):
        expect(len(items) == n, f"{name} must be a mask of {n} columns")
        return
    for item in items:
        is_column_number = isinstance(item, (int, np.integer)) and -n <= int(item) < n
        exists = is_column_number or (isinstance(item, str) and item in known_names)
        expect(exists, f"{name} names a column that does not exist: {item!r:.60}")
