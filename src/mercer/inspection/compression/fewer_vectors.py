"""`mercer.compress`: a machine on fewer vectors, with a proof of how far it is from the original."""

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
from mercer.estimators.unsupervised.learner import Learner
from mercer.inspection.compression.class_groups import groups_for, matched_in_groups
from mercer.inspection.compression.distance import apart_at, distances, lengths_of, longest
from mercer.inspection.compression.matching import Samples, matched, retrained
from mercer.inspection.compression.reduction import MOST_VECTORS, Reduced, to_count, to_error
from mercer.inspection.compression.target import Span, Target
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
from mercer.tables.unwrap import ask

# What stays true of a machine on fewer vectors, beside attributes that are declared as `kept`; the rest speaks of
# training samples, or of a solve.
_KEPT = frozenset(
    [
        *("n_features_in_", "feature_names_in_", "kernel_", "_expansion_", "intercept_", "classes_", "class_weight_"),
        *("_per_class_", "_trained_as_", "offset_", "radius_", "diagonal_", "quantiles_", "_flat_", "epsilon_", "nu_"),
        *("equivalent_C_", "_loss_", "lam_", "best_params_", "weights_", "scales_"),
    ]
)
# Roundings of k(x, x), per vector, below which δ(x) = ‖φ(x) − Pφ(x)‖² is zero as far as float64 can tell.
_DEPENDENT_ROUNDINGS = 4
# ‖w − w'‖ that is called rounding, as a share of ‖w‖.
_EXACT_SHARE = 1e-8
# The most vectors among which dependence is looked for; their kernel matrix takes 800 MB.
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
    """A machine of the same class on fewer vectors, with a proof of how far it is from the original.

    First every vector goes that is not needed at all: equal ones, those that others span, and all but the weight
    vectors of a linear kernel. Then vectors are chosen from the rest one by one, each the one that brings their span
    nearest to the machine's functions, and moved by gradient to where it is nearest, if the kernel has derivatives. All
    outputs, such as the pairs of several classes, share them; with samples X and many classes, each pair uses those
    that lie near its own two classes. In the end coefficients and b are fitted to samples X;
    without samples the coefficients are those of the projection, which is nearest to the original, and b stays.

    Parameters
    ----------
    model : estimator
        Fitted, with a kernel and vectors: SVC, NuSVC, SVR, NuSVR, QuantileSVR, OneClassSVM, SVDD, the machines of
        least squares and the kernel machines, and those that learn kernel weights; a Pipeline that ends in one, a
        `Tabular`, or a search, whose best one is taken.
    n_vectors : int, or float below 1, optional
        How many vectors to keep, or which share of them.
    max_error : float, optional
        Keep as few vectors as will do for ‖w − w'‖ of at most this, in every output. Retraining then goes only so far.
        (f of SVDD has w = 2a, twice the centre. Of a table's regression it is in the unit of standardised targets.)
        With neither, only vectors go that are not needed.
    X, y, sample_weight : the samples that the machine was trained on, or some like them, optional
        What coefficients and b are fitted to. y is needed by retrain="loss" alone, which alone takes weights.
    retrain : {"values", "loss"}, default="values"
        "values" gives the machine the original's values on X, as nearly as its vectors allow. "loss" minimises the
        machine's own loss on X and y again (Tang and Mazzoni 2006); SVDD and least squares on landmarks, and a hard
        margin that is lost, then stay projections.
    verbose : bool, default=False
        Whether to print what is being done.

    Returns
    -------
    estimator
        It predicts, saves, exports and draws as the original does. `compression_` is a `Compression`: the error, and
        which labels are provably those of the original. What speaks of training samples (`support_`, `dual_coef_`,
        `certificate_`) belongs to the original.

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
    asked = ask(model)
    model = asked.machine
    known = [type(layer).__name__ for layer in asked.layers if hasattr(layer, "predict_interval")]
    if known:
        raise TypeError(
            f"what {known[0]} learnt is about the machine that it holds, and not about one on fewer vectors; compress "
            "the model that it was made of, its estimator_, and calibrate that with samples that were held out"
        )
    X, y = None if X is None else asked.rows(X), asked.target(y)
    original = _checked(model, max_error)
    count = _count(n_vectors, max_error, n_samples(original.vectors))
    max_error = (
        None if max_error is None else float(max_error) / model._DECISION_FACTOR
    )  # from here on of the expansion
    if count is not None and MOST_VECTORS < count < n_samples(original.vectors):
        raise ValueError(
            f"n_vectors={n_vectors!r} asks for {count} vectors, whose kernel matrix does not fit into memory; ask for "
            f"at most {MOST_VECTORS}"
        )
    samples = _samples(model, original, X, y, sample_weight, retrain)
    progress = Reporter(verbose)
    progress.tell("looking for vectors that are not needed")
    simpler = without_needless(original, thorough=count is None and max_error is None)
    found = _reduced(model, simpler, count, max_error, samples, retrain, progress)
    report = partial(progress.part, "proving the error")
    error = distances(original, found.expansion, report)
    if max_error is not None and error.max() > max_error:  # what is asked for is below what rounding leaves
        found = Reduced(simpler)
        error = distances(original, simpler, report)
        if error.max() > max_error:
            found, simpler, error = Reduced(original), original, np.zeros(len(original.b))
    removed = n_samples(original.vectors) - n_samples(simpler.vectors)
    progress.close(f"{n_samples(original.vectors)} vectors to {n_samples(found.expansion.vectors)}")
    small = compressed(model, found.expansion, error, removed=removed, moved=found.moved, retrained=found.retrained)
    return asked.around(small)


def _reduced(
    model: Any,
    original: Expansion,
    count: int | None,
    max_error: float | None,
    samples: Samples | None,
    retrain: str,
    progress: Reporter,
) -> Reduced:
    """On `count` vectors, or as few as come within `max_error`; coefficients fitted to samples, if there are any."""
    target = Target(original)
    if max_error is not None:
        found = to_error(target, max_error, progress)
    elif count is not None and count < target.n:
        found = to_count(target, count, samples, progress)
        if samples is not None and retrain == "values" and found.span is not None:
            groups = groups_for(model, target, found.span)
            if groups is not None:
                report = partial(progress.part, f"fitting {len(target.expansion.b)} pairs to samples")
                made = matched_in_groups(target, found.span, groups, samples, report)
                return replace(found, expansion=made, span=None, retrained=True)
    else:
        return Reduced(original)
    fit = retrained if retrain == "loss" else matched
    return found.fitted(target, partial(fit, model), samples, max_error, progress)


def without_needless(expansion: Expansion, thorough: bool) -> Expansion:
    """An expansion of these functions, up to rounding, on fewer vectors where that is possible.

    Vectors under a strictly positive definite kernel are independent; whether they are to rounding is asked only if the
    search is `thorough`.
    """
    scale = linear_scale(expansion.kernel)
    outputs = len(expansion.b)
    if scale is not None and not is_sparse(expansion.vectors):
        W = weight_vectors(expansion.vectors, expansion.coefficients)  # features × outputs
        features = len(W)
        if min(features, outputs) < n_samples(expansion.vectors):
            if outputs <= features:
                return replace(expansion, vectors=np.ascontiguousarray(W.T), coefficients=np.eye(outputs) / scale)
            return replace(expansion, vectors=np.eye(features), coefficients=W / scale)
    merged = _merged(expansion)
    independent = expansion.kernel.strictly_positive_definite == "yes"
    if n_samples(merged.vectors) > _LARGEST_MATRIX or (independent and not thorough):
        return merged
    return _independent(merged)


def _merged(expansion: Expansion) -> Expansion:
    """Every vector once."""
    if not expansion.kernel.mergeable:
        return expansion
    table, places = dense(expansion.coefficients), dict[Any, int]()
    member = np.array([places.setdefault(key, len(places)) for key in row_keys(expansion.vectors)], dtype=np.intp)
    first = np.unique(member, return_index=True)[1]
    sums = np.zeros((len(first), table.shape[1]))
    np.add.at(sums, member, table)
    used = np.flatnonzero(sums.any(axis=1))
    if len(used) == len(table):
        return expansion
    return replace(expansion, vectors=take(expansion.vectors, first[used]), coefficients=sums[used])


def _independent(expansion: Expansion) -> Expansion:
    """Without vectors that others span, by a pivoted Cholesky factorisation."""
    n = n_samples(expansion.vectors)
    if n < 2:
        return expansion
    K = expansion.kernel(expansion.vectors)
    tolerance = _DEPENDENT_ROUNDINGS * n * 2.0**-53 * float(np.abs(K.diagonal()).max())
    _, pivots, rank, _ = linalg.lapack.dpstrf(K, tol=tolerance, lower=1)
    if rank >= n:
        return expansion
    order = pivots.astype(np.intp) - 1
    kept = np.sort(order[:rank])
    span = Span(expansion.kernel, take(expansion.vectors, kept))
    values = K[kept] @ dense(expansion.coefficients)
    found = replace(expansion, vectors=span.vectors, coefficients=span.coefficients(span.coordinates_of(values)))
    # Coefficients may be large, and w small beside them: then even a rounding of k(x, x) is needed.
    near = distances(expansion, found) <= _EXACT_SHARE * expansion.norms()
    return found if near.all() else expansion


def _samples(model: Any, expansion: Expansion, X: Any, y: Any, weight: Any, retrain: Any) -> Samples | None:
    one_of("retrain", retrain, ("values", "loss"))
    if X is None:
        if y is not None:
            raise ValueError("y without X: give the training samples too, or neither")
        return None
    if retrain == "values" and weight is not None:
        raise ValueError("sample_weight is for retrain='loss'; retrain='values' would drop it")
    if retrain == "loss" and y is None and not isinstance(model, OutlierMixin):
        raise ValueError("retrain='loss' trains again, and needs y as well as X")
    X = read_samples(model, X, expansion.kernel, reset=False)
    y, weight = on_host(y), on_host(weight)
    check_same_length(X, y)
    check_same_length(X, weight)
    bias, by_sign = getattr(model, "bias", True) is not False, hasattr(model, "classes_") or hasattr(model, "offset_")
    return Samples(X, y, weight, expansion.kernel, bias, by_sign)


def _checked(model: Any, max_error: Any) -> Expansion:
    """The machine's expansion; an error where there is nothing to compress."""
    check_is_fitted(model)
    expansion = getattr(model, "_expansion_", None)
    name = type(model).__name__
    goes_on = hasattr(model, "_theta_")  # learning, from what it keeps beside the expansion
    if not isinstance(expansion, Expansion) or goes_on or isinstance(model, Learner):
        raise TypeError(
            f"{name} cannot be compressed: only a machine of mercer's that predicts from vectors can, such as SVC, "
            "SVR, OneClassSVM or RLSRegressor, or a Pipeline or a search of one"
        )
    specs = declared(type(model))
    needed = {part for part, spec in specs.items() if spec.required and spec.unless != "_compression_"}
    lost = sorted(part for part in needed - _KEPT if not specs[part].kept)
    if lost and "log_marginal_likelihood_value_" in specs:
        raise TypeError(
            f"{name} cannot be compressed: besides f it tells variances, which rest on all of its vectors; compress a "
            "machine for f alone, RLSRegressor or KernelMachine fitted with kernel=model.kernel_"
        )
    if lost:
        raise TypeError(
            f"{name} cannot be compressed: its class does not say what becomes of {', '.join(lost)} on fewer vectors. "
            "Declare each with kept=True if it stays true, or with unless='_compression_' if it is about the training "
            "samples"
        )
    if expansion.vectors is None:
        raise TypeError(
            "a machine with a precomputed kernel knows no vectors and no kernel between them, so it cannot be "
            "compressed; give the kernel as an object or a function"
        )
    if expansion.kernel.positive_definite == "no":
        raise ValueError(
            f"{expansion.kernel!r} is not positive definite: there is no space in which to measure ‖w − w'‖; use a "
            "positive definite kernel"
        )
    if max_error is not None and not (isinstance(max_error, Real) and 0 <= float(max_error) < math.inf):
        raise ValueError(f"max_error={max_error!r} must be a finite number of at least 0")
    return expansion


def _count(n_vectors: Any, max_error: Any, n: int) -> int | None:
    """How many vectors are wanted."""
    if n_vectors is None:
        return None
    if max_error is not None:
        raise ValueError("n_vectors and max_error both say when to stop; give one")
    whole = isinstance(n_vectors, Integral) and not isinstance(n_vectors, bool | np.bool_)
    if whole and int(n_vectors) >= 1:
        return int(n_vectors)
    if isinstance(n_vectors, Real) and not isinstance(n_vectors, Integral) and 0 < float(n_vectors) < 1:
        return max(1, round(float(n_vectors) * n))
    raise ValueError(f"n_vectors={n_vectors!r} must be a number of vectors of at least 1, or a share between 0 and 1")


def compressed(model: Any, found: Expansion, error: Floats, *, removed: int, moved: bool, retrained: bool) -> Any:
    """A copy of a fitted machine that decides by another expansion; `error` is at least ‖w − w'‖ of each output."""
    original: Expansion = model._expansion_
    change = np.abs(original.b - found.b) * (1 + 2.0**-52)
    lengths = lengths_of(original.kernel, original.vectors, dense(original.coefficients))
    ends = apart_at(found.vectors, original, found)
    record = CompressionRecord(n_samples(original.vectors), removed, moved, retrained, error, change, lengths, ends)
    proof = vars(model).get("certificate_")
    earlier: CompressionRecord | None = vars(model).get("_compression_")
    if earlier is not None:  # errors add up to what the first machine is away at most
        record = replace(
            record,
            n_before=earlier.n_before,
            removed=earlier.removed + removed,
            moved=earlier.moved or moved,
            retrained=earlier.retrained or retrained,
            error=(earlier.error + error) * (1 + 2.0**-52),
            b_change=(earlier.b_change + change) * (1 + 2.0**-52),
            lengths=earlier.lengths,
            at_vectors=(ends + earlier.error * longest(original.kernel, found.vectors)) * (1 + 2.0**-51),
        )
        proof = vars(model).get("_original_certificate_")
    for part in (record.error, record.b_change, record.lengths, record.at_vectors):
        freeze(part)
    made = clone(model)
    specs = declared(type(model))
    for name, value in vars(model).items():
        if name in _KEPT or (name in specs and specs[name].kept):
            setattr(made, name, value)
    made._expansion_ = found
    made.intercept_ = freeze(np.array(found.b))
    made._compression_ = record
    if proof is not None:
        made._original_certificate_ = proof
    _follow(made)
    check_state(made)
    return made


def _follow(made: Any) -> None:
    """Attributes that follow from b and w."""
    if hasattr(made, "radius_"):
        square = max(0.0, 2.0 * float(made.intercept_[0]) + float(made._expansion_.norms()[0]) ** 2)
        made.radius_, made.offset_ = float(np.sqrt(square)), -square
    elif hasattr(made, "offset_"):
        made.offset_ = -float(made.intercept_[0])
