"""`mercer.compress`: reduce a machine to fewer vectors, with a proven bound on the change of f."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import linalg
from sklearn.base import OutlierMixin, clone
from sklearn.utils.validation import check_is_fitted

from mercer.estimators.fitting.pipeline.class_spec import check_state, declared
from mercer.estimators.fitting.pipeline.fit import read_samples
from mercer.estimators.fitting.pipeline.machine import CompressionRecord
from mercer.estimators.unsupervised.learner import UnsupervisedMachine
from mercer.inspection.compression.class_groups import group_classes, match_in_groups
from mercer.inspection.compression.distance import differences_at, distances, largest_length, norm_bounds
from mercer.inspection.compression.matching import FitSamples, match_values, retrain_in_span
from mercer.inspection.compression.reduction import MOST_VECTORS, ReducedExpansion, reduce_to_count, reduce_to_error
from mercer.inspection.compression.target import Span, TargetFunctions
from mercer.inspection.rkhs import row_keys
from mercer.places.expansion import Expansion
from mercer.places.host.linear_gram import linear_scale
from mercer.places.host.rows import weight_vectors
from mercer.runtime.parameters import one_of
from mercer.runtime.progress import Reporter
from mercer.samples.arrays import Floats, freeze, is_sparse, n_samples, take
from mercer.samples.checks import check_same_length
from mercer.samples.engine import on_host
from mercer.samples.matrices import dense
from mercer.tables.unwrap import unwrap

# Attributes that a compressed machine keeps, besides those that are declared as `kept`; the others describe training
# samples or a solve.
_KEPT = frozenset(
    [
        *("n_features_in_", "feature_names_in_", "kernel_", "_expansion_", "intercept_", "classes_", "class_weight_"),
        *("_per_class_", "_trained_as_", "offset_", "radius_", "diagonal_", "quantiles_", "_flat_", "epsilon_", "nu_"),
        *("equivalent_C_", "_loss_", "lam_", "best_params_", "weights_", "scales_"),
    ]
)
# δ(x) = ‖φ(x) − Pφ(x)‖² below this many roundings of k(x, x), per vector, cannot be distinguished from 0 in float64.
_DEPENDENT_ROUNDINGS = 4
# Largest ‖w − w'‖/‖w‖ that counts as rounding.
_EXACT_SHARE = 1e-8
# Largest number of vectors that are tested for linear dependence; their kernel matrix takes 800 MB.
_LARGEST_MATRIX = 10_000


def compress(
    model: Any,
    n_vectors: float | None = None,
    *,
    max_error: float | None = None,
    X: Any = None,
    y: Any = None,
    sample_weight: Any = None,
    retrain: str = "values",
    verbose: bool = False,
) -> Any:
    """Compress a fitted model to fewer support vectors, and prove how far it is from the original.

    1. Redundant vectors are removed: equal ones, those that others span, and, for a linear kernel, all except for the
       weight vectors.
    2. Vectors are chosen from the rest one by one, each the one whose span comes nearest to the model's functions
       (orthogonal matching pursuit).
    3. If the kernel has derivatives, the chosen vectors are moved by gradient descent to bring the span still nearer.
    4. Coefficients and b are fitted to the samples X. Without samples, the coefficients are those of the projection,
       which is nearest to the original, and b does not change.

    All outputs, such as the pairs of several classes, share the vectors. With samples X and many classes, each pair
    uses only the vectors near its two classes.

    Parameters
    ----------
    model : estimator
        Fitted model with a kernel and vectors: SVC, NuSVC, SVR, NuSVR, QuantileSVR, OneClassSVM, SVDD, least-squares
        and kernel machines, and those that learn kernel weights; or a Pipeline that ends in one, a `Tabular`, or a
        search, whose best estimator is compressed.
    n_vectors : int, or float below 1, optional
        Number of vectors to keep, or their share.
    max_error : float, optional
        Largest ‖w − w'‖ in every output; as few vectors as possible are kept, and retraining respects the limit.
        For SVDD, w = 2a is twice the centre; for the regression of a table, the unit is that of standardised targets.
        With neither `n_vectors` nor `max_error`, only redundant vectors are removed.
    X, y, sample_weight : arrays, optional
        Samples to which coefficients and b are fitted: those that the model was trained on, or similar ones. Only
        retrain="loss" uses y and weights.
    retrain : {"values", "loss"}, default="values"
        How coefficients are fitted. "values" fits the original's values on X. "loss" minimises the model's loss on X
        and y (Tang and Mazzoni 2006); SVDD, least squares on landmarks and a hard margin that no coefficients
        can keep then retain the coefficients of the projection.
    verbose : bool, default=False
        Whether to print progress.

    Returns
    -------
    estimator
        Compressed model, which predicts, saves, exports and plots as the original does. Its `compression_` is a
        `Compression`, with the error and the labels that are provably those of the original. Attributes that describe
        training samples (`support_`, `dual_coef_`, `certificate_`) belong to the original only.

    See Also
    --------
    Compression : Report and guarantees of a compression.
    mercer.displays.PathDisplay.from_compression : Plot the error against the number of vectors.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> import mercer
    >>> X, y = make_moons(400, noise=0.2, random_state=0)
    >>> model = mercer.SVC(C=10).fit(X, y)
    >>> small = mercer.compress(model, 0.1, X=X)
    >>> small.compression_.n_vectors_before, small.compression_.n_vectors
    (55, 6)
    >>> bool((small.predict(X) == model.predict(X)).mean() > 0.97)
    True
    """
    unwrapped = unwrap(model)
    model = unwrapped.machine
    calibrations = [type(layer).__name__ for layer in unwrapped.layers if hasattr(layer, "predict_interval")]
    if calibrations:
        raise TypeError(
            f"{calibrations[0]} is calibrated for the model that it holds, and not for one on fewer vectors; compress "
            "that model, its estimator_, and calibrate the result with held-out samples"
        )
    X, y = None if X is None else unwrapped.rows(X), unwrapped.target(y)
    original = _checked_expansion(model, max_error)
    count = _n_to_keep(n_vectors, max_error, n_samples(original.vectors))
    # f is _DECISION_FACTOR times the expansion, to which the limit refers from here on.
    max_error = None if max_error is None else float(max_error) / model._DECISION_FACTOR
    if count is not None and MOST_VECTORS < count < n_samples(original.vectors):
        raise ValueError(
            f"n_vectors={n_vectors!r} means {count} vectors, whose kernel matrix does not fit into memory; keep at "
            f"most {MOST_VECTORS}"
        )
    samples = _read_fit_samples(model, original, X, y, sample_weight, retrain)
    progress = Reporter(verbose)
    progress.report("removing redundant vectors")
    without_redundant = drop_redundant(original, thorough=count is None and max_error is None)
    reduction = _reduce(model, without_redundant, count, max_error, samples, retrain, progress)
    report = partial(progress.report_share, "proving the error")
    error = distances(original, reduction.expansion, report)
    if max_error is not None and error.max() > max_error:  # the limit is below the rounding error
        reduction = ReducedExpansion(without_redundant)
        error = distances(original, without_redundant, report)
        if error.max() > max_error:
            reduction, without_redundant, error = ReducedExpansion(original), original, np.zeros(len(original.b))
    removed = n_samples(original.vectors) - n_samples(without_redundant.vectors)
    progress.close(f"{n_samples(original.vectors)} vectors to {n_samples(reduction.expansion.vectors)}")
    compressed_model = compressed_copy(
        model, reduction.expansion, error, removed=removed, moved=reduction.moved, retrained=reduction.retrained
    )
    return unwrapped.rewrap(compressed_model)


def _reduce(
    model: Any,
    original: Expansion,
    count: int | None,
    max_error: float | None,
    samples: FitSamples | None,
    retrain: str,
    progress: Reporter,
) -> ReducedExpansion:
    """Reduce to `count` vectors, or to as few as reach `max_error`; fit coefficients to samples if there are any."""
    target = TargetFunctions(original)
    if max_error is not None:
        reduction = reduce_to_error(target, max_error, progress)
    elif count is not None and count < target.n:
        reduction = reduce_to_count(target, count, samples, progress)
        if samples is not None and retrain == "values" and reduction.span is not None:
            groups = group_classes(model, target, reduction.span)
            if groups is not None:
                report = partial(progress.report_share, f"fitting {len(target.expansion.b)} pairs to samples")
                expansion = match_in_groups(target, reduction.span, groups, samples, report)
                return replace(reduction, expansion=expansion, span=None, retrained=True)
    else:
        return ReducedExpansion(original)
    fit = retrain_in_span if retrain == "loss" else match_values
    return reduction.fit_to_samples(target, partial(fit, model), samples, max_error, progress)


def drop_redundant(expansion: Expansion, thorough: bool) -> Expansion:
    """Remove vectors that the functions do not need; the functions stay the same up to rounding.

    Under a strictly positive definite kernel, different vectors are linearly independent; whether they are so
    numerically is tested only if `thorough`.
    """
    scale = linear_scale(expansion.kernel)
    n_outputs = len(expansion.b)
    if scale is not None and not is_sparse(expansion.vectors):
        W = weight_vectors(expansion.vectors, expansion.coefficients)  # features × outputs
        n_features = len(W)
        if min(n_features, n_outputs) < n_samples(expansion.vectors):
            if n_outputs <= n_features:
                return replace(expansion, vectors=np.ascontiguousarray(W.T), coefficients=np.eye(n_outputs) / scale)
            return replace(expansion, vectors=np.eye(n_features), coefficients=W / scale)
    merged = _merge_equal(expansion)
    are_independent = expansion.kernel.strictly_positive_definite == "yes"
    if n_samples(merged.vectors) > _LARGEST_MATRIX or (are_independent and not thorough):
        return merged
    return _drop_dependent(merged)


def _merge_equal(expansion: Expansion) -> Expansion:
    """Merge equal vectors by adding their coefficients; drop those whose coefficients are 0."""
    if not expansion.kernel.mergeable:
        return expansion
    table, numbers = dense(expansion.coefficients), dict[Any, int]()
    member = np.array([numbers.setdefault(key, len(numbers)) for key in row_keys(expansion.vectors)], dtype=np.intp)
    first = np.unique(member, return_index=True)[1]
    sums = np.zeros((len(first), table.shape[1]))
    np.add.at(sums, member, table)
    support = np.flatnonzero(sums.any(axis=1))
    if len(support) == len(table):
        return expansion
    return replace(expansion, vectors=take(expansion.vectors, first[support]), coefficients=sums[support])


def _drop_dependent(expansion: Expansion) -> Expansion:
    """Drop vectors that others span, by a pivoted Cholesky factorisation."""
    n = n_samples(expansion.vectors)
    if n < 2:
        return expansion
    K = expansion.kernel(expansion.vectors)
    tolerance = _DEPENDENT_ROUNDINGS * n * 2.0**-53 * float(np.abs(K.diagonal()).max())
    _, pivots, rank, _ = linalg.lapack.dpstrf(K, tol=tolerance, lower=1)
    if rank >= n:
        return expansion
    order = pivots.astype(np.intp) - 1
    independent_vectors = np.sort(order[:rank])
    span = Span(expansion.kernel, take(expansion.vectors, independent_vectors))
    values = K[independent_vectors] @ dense(expansion.coefficients)
    smaller = replace(
        expansion, vectors=span.vectors, coefficients=span.coefficients(span.coordinates_from_values(values))
    )
    # If coefficients are large and cancel in w, dropping a vector that is dependent to rounding may still change w.
    is_near = distances(expansion, smaller) <= _EXACT_SHARE * expansion.norms()
    return smaller if is_near.all() else expansion


def _read_fit_samples(model: Any, expansion: Expansion, X: Any, y: Any, weight: Any, retrain: Any) -> FitSamples | None:
    """Check and read the samples to which coefficients are fitted; return None if there are none."""
    one_of("retrain", retrain, ("values", "loss"))
    if X is None:
        if y is not None:
            raise ValueError("y was passed without X; pass both, or neither")
        return None
    if retrain == "values" and weight is not None:
        raise ValueError("sample_weight is for retrain='loss'; retrain='values' ignores it")
    if retrain == "loss" and y is None and not isinstance(model, OutlierMixin):
        raise ValueError("retrain='loss' trains again and needs y as well as X")
    X = read_samples(model, X, expansion.kernel, reset=False)
    y, weight = on_host(y), on_host(weight)
    check_same_length(X, y)
    check_same_length(X, weight)
    bias, by_sign = getattr(model, "bias", True) is not False, hasattr(model, "classes_") or hasattr(model, "offset_")
    return FitSamples(X, y, weight, expansion.kernel, bias, by_sign)


def _checked_expansion(model: Any, max_error: Any) -> Expansion:
    """Return the expansion of a fitted machine; raise if it cannot be compressed or max_error is invalid."""
    check_is_fitted(model)
    expansion = getattr(model, "_expansion_", None)
    name = type(model).__name__
    learns_online = hasattr(model, "_theta_")  # the state of such a model is more than its expansion
    if not isinstance(expansion, Expansion) or learns_online or isinstance(model, UnsupervisedMachine):
        raise TypeError(
            f"{name} cannot be compressed: only an estimator of mercer that predicts from vectors can, such as SVC, "
            "SVR, OneClassSVM or RLSRegressor, or a Pipeline or a search of one"
        )
    specs = declared(type(model))
    needed_parts = {part for part, spec in specs.items() if spec.required and spec.unless != "_compression_"}
    lost_parts = sorted(part for part in needed_parts - _KEPT if not specs[part].kept)
    if lost_parts and "log_marginal_likelihood_value_" in specs:
        raise TypeError(
            f"{name} cannot be compressed: it also predicts variances, which depend on all of its vectors; compress an "
            "estimator of f alone, RLSRegressor or KernelMachine fitted with kernel=model.kernel_"
        )
    if lost_parts:
        raise TypeError(
            f"{name} cannot be compressed: its class does not declare whether {', '.join(lost_parts)} stays valid. "
            "Declare each with kept=True if it does, or with unless='_compression_' if it describes the training "
            "samples"
        )
    if expansion.vectors is None:
        raise TypeError(
            "a model with a precomputed kernel has no vectors and no kernel between them, so it cannot be compressed; "
            "pass the kernel as an object or a function"
        )
    if expansion.kernel.positive_definite == "no":
        raise ValueError(
            f"{expansion.kernel!r} is not positive definite, so ‖w − w'‖ is not defined; use a positive definite kernel"
        )
    if max_error is not None and not (isinstance(max_error, Real) and 0 <= float(max_error) < math.inf):
        raise ValueError(f"max_error={max_error!r} must be a finite number of at least 0")
    return expansion


def _n_to_keep(n_vectors: Any, max_error: Any, n: int) -> int | None:
    """Return the number of vectors to keep; None if n_vectors is not given."""
    if n_vectors is None:
        return None
    if max_error is not None:
        raise ValueError("n_vectors and max_error both say when to stop; pass one of them")
    is_count = isinstance(n_vectors, Integral) and not isinstance(n_vectors, bool | np.bool_)
    if is_count and int(n_vectors) >= 1:
        return int(n_vectors)
    if isinstance(n_vectors, Real) and not isinstance(n_vectors, Integral) and 0 < float(n_vectors) < 1:
        return max(1, round(float(n_vectors) * n))
    raise ValueError(f"n_vectors={n_vectors!r} must be a number of vectors, at least 1, or a share between 0 and 1")


def compressed_copy(
    model: Any, expansion: Expansion, error: Floats, *, removed: int, moved: bool, retrained: bool
) -> Any:
    """Copy a fitted machine with another expansion; `error` bounds ‖w − w'‖ of each output from above."""
    original: Expansion = model._expansion_
    b_change = np.abs(original.b - expansion.b) * (1 + 2.0**-52)
    lengths = norm_bounds(original.kernel, original.vectors, dense(original.coefficients))
    at_vectors = differences_at(expansion.vectors, original, expansion)
    n_before = n_samples(original.vectors)
    record = CompressionRecord(n_before, removed, moved, retrained, error, b_change, lengths, at_vectors)
    certificate = vars(model).get("certificate_")
    earlier_record: CompressionRecord | None = vars(model).get("_compression_")
    if earlier_record is not None:  # the errors of both compressions add up
        record = replace(
            record,
            n_before=earlier_record.n_before,
            removed=earlier_record.removed + removed,
            moved=earlier_record.moved or moved,
            retrained=earlier_record.retrained or retrained,
            error=(earlier_record.error + error) * (1 + 2.0**-52),
            b_change=(earlier_record.b_change + b_change) * (1 + 2.0**-52),
            lengths=earlier_record.lengths,
            at_vectors=(at_vectors + earlier_record.error * largest_length(original.kernel, expansion.vectors))
            * (1 + 2.0**-51),
        )
        certificate = vars(model).get("_original_certificate_")
    for part in (record.error, record.b_change, record.lengths, record.at_vectors):
        freeze(part)
    machine = clone(model)
    specs = declared(type(model))
    for name, value in vars(model).items():
        if name in _KEPT or (name in specs and specs[name].kept):
            setattr(machine, name, value)
    machine._expansion_ = expansion
    machine.intercept_ = freeze(np.array(expansion.b))
    machine._compression_ = record
    if certificate is not None:
        machine._original_certificate_ = certificate
    _update_offset(machine)
    check_state(machine)
    return machine


def _update_offset(machine: Any) -> None:
    """Update the radius and the offset, which follow from b and w."""
    if hasattr(machine, "radius_"):
        square = max(0.0, 2.0 * float(machine.intercept_[0]) + float(machine._expansion_.norms()[0]) ** 2)
        machine.radius_, machine.offset_ = float(np.sqrt(square)), -square
    elif hasattr(machine, "offset_"):
        machine.offset_ = -float(machine.intercept_[0])
