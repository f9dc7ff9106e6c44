"""Validation of samples, weights and targets as users give them; the user's data are never modified."""

from __future__ import annotations

import math
from numbers import Real
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import scipy.sparse as sp
from sklearn import config_context, get_config
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_array, check_consistent_length, validate_data

from mercer import _core
from mercer.runtime.threads import effective_n_threads
from mercer.samples.arrays import BLOCK_BYTES, Floats, is_sparse, n_samples, row_blocks
from mercer.samples.column_names import check_names
from mercer.samples.engine import EngineSamples, configured_engine, engine_of, to_engine

if TYPE_CHECKING:
    from mercer.kernels import Kernel

_TABLES = "or let mercer.tabular(estimator) read the table as it is"
_DATES = ("Date", "Duration", "Time", "period")  # prefixes of the dtypes for dates and times in polars and pandas


def vectors(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Return X as a C-ordered float32 or float64 array or a canonical CSR matrix; float32 stays float32.

    With `reset` the number and the names of the columns are stored in the estimator, otherwise they are compared.
    """
    engine = engine_of(X)
    if engine is not None:
        return _check_engine_samples(estimator, engine.samples(X), reset)
    if is_plain(X, 2) and X.dtype.char in "fd" and _has_expected_columns(estimator, X, reset):
        checked = X
    elif _is_plain_csr(X) and _has_expected_columns(estimator, X, reset):
        check_sparse(X)
        checked = X
    else:
        checked = _convert(estimator, X, reset)
    _check_finite(checked, getattr(estimator, "n_jobs", None))
    if is_sparse(checked):
        checked = canonical_csr(checked)
    elif not checked.flags.aligned:
        checked = checked.copy()
    engine = configured_engine()
    return checked if engine is None else engine.samples(checked)


def _check_engine_samples(estimator: Any, X: EngineSamples, reset: bool) -> EngineSamples:
    """Check an engine's samples without copying them to the host."""
    if len(X.shape) != 2 or 0 in X.shape:
        raise ValueError(
            f"X must be a matrix with a row per sample and a column per feature, but its shape is {X.shape}"
        )
    check_names(estimator, X.names, reset=reset)
    if reset:
        estimator.n_features_in_ = X.shape[1]
    elif getattr(estimator, "n_features_in_", X.shape[1]) != X.shape[1]:  # a LIBSVM file's kernel matrix has any width
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting {estimator.n_features_in_} "
            "features as input"
        )
    bad = X.first_not_finite()
    if bad is not None:
        _refuse_not_finite(*bad)
    return X


def copy_columns(fitted: Any, estimator: Any) -> None:
    """Copy the number and the names of the columns from a fitted estimator to another estimator."""
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(fitted, name):
            setattr(estimator, name, getattr(fitted, name))


def is_plain(values: Any, n_dimensions: int) -> bool:
    """Return whether scikit-learn's checks, which take a tenth of a small fit, would return the values unchanged."""
    return (
        type(values) is np.ndarray
        and values.ndim == n_dimensions
        and values.size > 0
        and values.dtype.kind in "fiub"
        and values.dtype.isnative
        and values.flags.c_contiguous
    )


def _is_plain_csr(X: Any) -> bool:
    """Return whether scikit-learn's checks would return a sparse matrix unchanged, if its arrays are consistent."""
    return (
        type(X) in (sp.csr_matrix, sp.csr_array)
        and X.ndim == 2
        and min(X.shape) > 0
        and X.dtype.char in "fd"
        and X.dtype.isnative
    )


def check_same_length(X: Any, y: Any) -> None:
    """Raise an error if there are targets, but not as many as samples."""
    if y is not None and not (is_plain(y, 1) and hasattr(X, "shape") and X.shape[0] == len(y)):
        X = to_engine(X)
        check_consistent_length(range(n_samples(X)) if isinstance(X, EngineSamples) else X, y)


def _has_expected_columns(estimator: Any, X: np.ndarray, reset: bool) -> bool:
    """Return whether an array matches the columns of the fit, which have no names; `reset` stores their number."""
    if "feature_names_in_" in vars(estimator):
        return False
    if reset:
        estimator.n_features_in_ = X.shape[1]
    return bool(getattr(estimator, "n_features_in_", -1) == X.shape[1])


def _convert(estimator: Any, X: Any, reset: bool) -> Any:
    """Convert X by scikit-learn's validation, or raise an error that says what is wrong with it."""
    refuse_masked(X, "X")
    if is_sparse(X):
        check_sparse(X)
    _check_columns(X)
    kind = getattr(getattr(X, "dtype", None), "kind", "O")
    if _is_list_of_strings(X):
        raise ValueError(
            "X is a list of strings, but this kernel compares vectors of numbers. For strings use kernel='spectrum', "
            "or wrap your own function: kernel=mercer.kernels.FromFunction(function, accepts='sequences')"
        )
    if kind in "SUTmM":
        raise ValueError(
            f"X must hold numbers, but its dtype is {X.dtype}; convert it yourself, so that nothing is guessed: "
            "X.astype(float) where it is text that spells numbers"
        )
    if get_config()["array_api_dispatch"]:  # converts a tensor in host memory to an array
        with config_context(array_api_dispatch=False):
            return _convert(estimator, X, reset)
    try:
        return validate_data(
            estimator,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            order="C",
            accept_large_sparse=True,
            ensure_all_finite=False,
        )
    except (ValueError, TypeError) as error:
        column = _non_numeric_column(X)
        if column is None:
            if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind == "f":
                _check_finite(X)  # an error about NaN comes before one about too few samples
            if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype == object and isinstance(error, ValueError):
                raise ValueError(f"X does not hold numbers ({error}); encode it, {_TABLES}") from error
            raise
        raise ValueError(
            f"column {column!r} of X does not hold numbers ({error}); encode it or drop it, {_TABLES}"
        ) from error


def _check_columns(X: Any) -> None:
    """Raise an error if a frame has two columns of one name, or dates, which NumPy would convert to nanoseconds."""
    if not hasattr(X, "columns") or not hasattr(X, "dtypes"):
        return
    names = set()
    for name, dtype in zip(X.columns, X.dtypes, strict=False):
        if name in names:
            raise ValueError(f"X has two columns called {name!r}; rename one of them")
        names.add(name)
        if getattr(dtype, "kind", "") in ("m", "M") or str(dtype).startswith(_DATES):
            raise ValueError(
                f"column {name!r} of X does not hold numbers, but dates or times ({dtype}); drop it, {_TABLES}"
            )


def _is_list_of_strings(X: Any) -> bool:
    """Return whether X is a list or one-dimensional array of strings."""
    has_one_dimension = isinstance(X, (list, tuple)) or getattr(X, "ndim", 0) == 1
    return has_one_dimension and len(X) > 0 and all(isinstance(sample, str) for sample in X)


def refuse_masked(values: Any, name: str) -> None:
    """Raise an error if a masked array has masked entries, which NumPy would treat as data."""
    if type(values) is not np.ndarray and isinstance(values, np.ndarray) and np.ma.is_masked(values):
        raise ValueError(
            f"{name} is a masked array with masked entries, which mercer cannot use; fill or drop them first"
        )


def sequences(X: Any, kernel: Kernel) -> list[str] | EngineSamples:
    """Return the samples of a string kernel as a checked list of strings, or as an engine's samples."""
    engine = engine_of(X)
    if engine is not None:
        return engine.samples(X)
    if isinstance(X, str):
        raise ValueError("X is one string; give a list of strings, one per sample")
    try:
        samples = [kernel.sequence(sample, f"sample {i}") for i, sample in enumerate(X)]
    except TypeError as error:
        raise ValueError(str(error)) from None
    if not samples:
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
    engine = configured_engine()
    return samples if engine is None else engine.samples(samples)


def refuse_non_numbers(values: np.ndarray, name: str) -> None:
    """Raise an error for text and dates, even text that spells numbers, which NumPy would convert silently."""
    has_other_objects = values.dtype == object and any(
        not isinstance(value, Real | None) for value in values.ravel().tolist()
    )
    if values.dtype.kind in "cmMSUTV" or has_other_objects:
        raise ValueError(
            f"{name} must hold real numbers, but its dtype is {values.dtype}; a first value is "
            f"{values.ravel()[:1].tolist()}. Convert it to numbers first"
            + ("; for classes use a classifier, such as SVC" if name == "y" else "")
        )


def weights(sample_weight: Any, n: int) -> Floats:
    """Return one finite, non-negative weight per sample; None means weights of 1."""
    if sample_weight is None:
        return np.ones(n)
    if np.isscalar(sample_weight):
        sample_weight = np.full(n, sample_weight)
    refuse_masked(sample_weight, "sample_weight")
    weight = sample_weight.to_numpy() if hasattr(sample_weight, "to_numpy") else np.asarray(sample_weight)
    refuse_non_numbers(weight, "sample_weight")
    try:
        weight = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"sample_weight does not hold numbers ({error})") from error
    if weight.ndim != 1 or len(weight) != n:
        raise ValueError(
            f"sample_weight has shape {weight.shape}, but X has {n} samples: it must be 1-D with shape ({n},)"
        )
    bad = np.flatnonzero(~np.isfinite(weight) | (weight < 0))
    if len(bad):
        raise ValueError(
            f"sample_weight[{bad[0]}]={weight[bad[0]]} must be finite and not negative; a weight of 0 drops a sample"
        )
    with np.errstate(over="ignore"):
        if not np.isfinite(weight.sum()):
            raise ValueError(
                f"sample_weight adds up to more than a float64 holds; its largest is {weight.max():g}: divide all by it"
            )
    return weight


def refuse_no_weight(weight: Floats) -> None:
    """Raise an error if all weights are 0."""
    if not np.count_nonzero(weight):
        raise ValueError("all sample weights are zero: there is nothing to learn from; give some sample weight")


def check_gram_matrix(K: Any) -> None:
    """Raise an error unless K can be a precomputed training matrix: square, and symmetric up to rounding."""
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"a precomputed kernel needs the square matrix between all training samples, but X has shape {K.shape}"
        )
    if isinstance(K, EngineSamples):
        asymmetry, size = K.asymmetry(), max(map(abs, K.extremes()))
    else:
        asymmetry = max(float(np.abs(K[i : i + 256] - K[:, i : i + 256].T).max()) for i in range(0, len(K), 256))
        size = float(np.abs(K).max())
    if 2 * size * K.shape[0] > np.finfo(np.float64).max:
        raise FloatingPointError(
            f"the precomputed kernel matrix holds values up to {size:.3g}, whose sums overflow float64; scale it"
        )
    if asymmetry > 1e-8 * size:
        raise ValueError(
            f"the precomputed kernel matrix is not symmetric: entries differ from their mirror by up to "
            f"{asymmetry:.3g}. "
            "If the difference is noise, give (K + K.T) / 2"
        )


def _check_finite(X: Any, n_jobs: int | None = None) -> None:
    """Raise an error that names the first entry that is not finite, if there is one."""
    values = X.data if is_sparse(X) else np.asarray(X)  # np.matrix has a sum of two dimensions
    has_plain_layout = values.dtype.char in "fd" and values.flags.c_contiguous and values.flags.aligned
    if has_plain_layout:
        n_threads = effective_n_threads(n_jobs) if values.nbytes >= BLOCK_BYTES else 1
        if _core.all_finite(values.reshape(1, -1), n_threads):
            return
    # If the sum is finite, all entries are. Only otherwise is each entry checked, since the sum may have overflowed.
    with np.errstate(over="ignore", invalid="ignore"):
        is_small = values.nbytes <= BLOCK_BYTES
        blocks = [slice(None)] if is_small else row_blocks(len(values), values.nbytes // len(values))
        if all(math.isfinite(np.add.reduce(values[block], axis=None, dtype=np.float64)) for block in blocks):
            return
    bad = np.argwhere(~np.isfinite(values))
    if len(bad) == 0:
        return
    if is_sparse(X):
        row = int(np.searchsorted(X.indptr, bad[0, 0], side="right")) - 1
        position, value = (row, int(X.indices[bad[0, 0]])), values[bad[0, 0]]
    else:
        position, value = (int(bad[0, 0]), int(bad[0, 1])), values[tuple(bad[0])]
    _refuse_not_finite(*position, value, len(bad))


def _refuse_not_finite(row: int, column: int, value: float, count: int) -> NoReturn:
    """Raise an error that names the first entry that is not finite, and the number of such entries."""
    name = "NaN" if np.isnan(value) else "infinity"
    raise ValueError(
        f"Input X contains {name}: X[{row}, {column}]={value}, and {count} such entries in all. "
        + ("Impute or drop them, or let mercer.tabular(estimator) fill and mark them" if name == "NaN" else "Clip them")
    )


def _non_numeric_column(X: Any) -> Any:
    """Return the name of a frame's first column that cannot be converted to float; None if there is none."""
    for name in getattr(X, "columns", ()):
        try:
            np.asarray(np.asarray(X[name]), dtype=np.float64)
        except (ValueError, TypeError):
            return name
    return None


def rounding_remark(X: Any, checked: Any) -> str | None:
    """Return a remark if X holds integers that float64 cannot represent, else None; floats are not checked."""
    if getattr(getattr(X, "dtype", None), "kind", "O") in "fb" or isinstance(checked, EngineSamples):
        return None
    values = checked.data if is_sparse(checked) else checked
    largest = max(float(values.max(initial=0)), -float(values.min(initial=0)))
    if largest >= 2**53 and np.result_type(X if is_sparse(X) else np.asarray(X)).kind in "iuO":
        return f"X holds integers up to {largest:.17g}, beyond 2**53: they are rounded to float64"
    return None


# --- sparse matrices --------------------------------------------------------------------------------------------------
# A user who changes the arrays of a matrix can make indices point outside its shape. scipy does not check that, and
# converting such a matrix reads and writes memory outside of the arrays.


def check_sparse(X: Any) -> None:
    """Raise an error if the arrays of a sparse matrix are inconsistent."""
    if X.ndim != 2:
        return  # scikit-learn raises the error for other dimensions
    if X.format in ("csr", "csc", "bsr"):
        _check_compressed(X)
    elif X.format == "coo":
        _expect(X, X.row.shape == X.col.shape == X.data.shape, "row, col and data differ in length")
        for name, index, size in (("row", X.row, X.shape[0]), ("col", X.col, X.shape[1])):
            _check_range(X, name, index, size)
    elif X.format == "dia":
        _expect(X, X.data.ndim == 2 and len(X.data) == len(X.offsets), "data must have one row for each of offsets")
        _expect(X, X.offsets.dtype.kind in "iu", f"offsets must be integers, not {X.offsets.dtype}")


def canonical_csr(X: Any) -> Any:
    """Return a CSR matrix with sorted indices, without duplicates and stored zeros; the argument is not changed."""
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    if (X.data == 0).any():
        X = X.copy()
        X.eliminate_zeros()
    return X


def _check_compressed(X: Any) -> None:
    """Raise an error if the arrays of a CSR, CSC or BSR matrix are inconsistent."""
    rows, columns = X.shape[::-1] if X.format == "csc" else X.shape
    if X.format == "bsr":
        rows, columns = rows // X.blocksize[0], columns // X.blocksize[1]
    ends, n_stored = X.indptr, len(X.indices)
    has_integers = ends.dtype.kind in "iu" and X.indices.dtype.kind in "iu"
    _expect(X, has_integers, f"indices and indptr must be integers, not {X.indices.dtype} and {ends.dtype}")
    _expect(X, len(X.data) == n_stored, f"indices holds {n_stored} entries, but data holds {len(X.data)}")
    ends_rise = len(ends) == rows + 1 and ends[0] == 0 and ends[-1] <= n_stored and not (np.diff(ends) < 0).any()
    _expect(X, ends_rise, f"indptr must rise from 0 to at most {n_stored} in {rows + 1} entries")
    _check_range(X, "indices", X.indices[: ends[-1]], columns)


def _check_range(X: Any, name: str, index: Any, size: int) -> None:
    """Raise an error if an index is not an integer from 0 to size − 1."""
    _expect(X, index.dtype.kind in "iu", f"{name} must hold integers, not {index.dtype}")
    for extreme in (index.min(initial=0), index.max(initial=0)):
        is_valid = 0 <= extreme < max(size, 1)
        _expect(X, is_valid, f"{name} holds {extreme}, but its shape is {X.shape} and only 0 to {size - 1} exist")


def _expect(X: Any, condition: bool, fault: str) -> None:
    """Raise an error that names the fault of a sparse matrix unless the condition holds."""
    if not condition:
        raise ValueError(f"X is a damaged {X.format.upper()} matrix: its {fault}")


# --- targets of regression --------------------------------------------------------------------------------------------


def numbers(y: Any) -> Floats:
    """Return the targets of a regression with one output as finite float64 numbers."""
    if y is None:
        raise ValueError("This regressor requires y to be passed, but the target y is None.")
    advice = (
        "SVR and RLSRegressor learn several outputs at once, sklearn.multioutput.MultiOutputRegressor one after another"
    )
    refuse_masked(y, "y")
    y = single_column(y, advice)
    refuse_non_numbers(y, "y")
    target: Floats = y.astype(np.float64)
    check_finite_targets(target)
    return np.asarray(target + 0.0)  # turns −0.0 into 0.0


def target_codes(y: Floats) -> Any:
    """Return an int64 code per target, equal for equal targets: the bits of the float64 number."""
    return y.view(np.int64)


def outputs(y: Any) -> tuple[Floats, bool]:
    """Return y as a float64 matrix with one column per output, and whether y had one dimension."""
    if y is None:
        raise ValueError("This regressor requires y to be passed, but the target y is None.")
    refuse_masked(y, "y")
    if not is_plain(y, 1):
        y = check_array(y, dtype=None, ensure_2d=False, allow_nd=True, input_name="y", ensure_all_finite=False)
    refuse_non_numbers(y, "y")
    y = np.asarray(y, dtype=np.float64)
    if y.ndim not in (1, 2) or y.shape[-1] == 0:
        raise ValueError(f"y has shape {y.shape}; it must have one number per sample, or one row of numbers per sample")
    is_finite = np.isfinite(y)
    if not is_finite.all():
        position = tuple(int(i) for i in np.argwhere(~is_finite)[0])
        raise ValueError(f"y contains {y[position]} at {position}; impute or drop such samples first")
    return y.reshape(len(y), -1), y.ndim == 1


def single_column(y: Any, advice: str) -> np.ndarray:
    """Return y with one value per sample; if it has several, `advice` ends the error message."""
    if is_plain(y, 1):
        return np.asarray(y)
    try:
        return np.asarray(column_or_1d(y, warn=True))
    except ValueError as error:
        if "1d array" not in str(error):
            raise
        raise ValueError(f"{error} {advice}") from None


def check_finite_targets(y: np.ndarray) -> None:
    """Raise an error that names the first target that is not finite, if there is one."""
    is_finite = np.isfinite(y)
    if not is_finite.all():
        bad = np.flatnonzero(~is_finite)
        name = "NaN" if np.isnan(y[bad[0]]) else "infinity"
        raise ValueError(
            f"Input y contains {name}: y[{bad[0]}]={y[bad[0]]}, and {len(bad)} such entries in all. "
            "Impute or drop these samples first"
        )
