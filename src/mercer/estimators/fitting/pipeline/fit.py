"""Input of one fit: samples checked, weighted and merged, the kernel bound to them, limits, and Gram matrices or rows.

Only this module reads a user's samples, labels, weights and limits for training, merges samples, and creates the
objects on which solvers work: the Gram matrix of a kernel machine, or the rows of a linear one.
"""

from __future__ import annotations

import math
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier
from sklearn.utils import check_random_state

from mercer.estimators.fitting.pipeline.reporting import warn_user
from mercer.kernels import Kernel
from mercer.kernels.names import as_kernel
from mercer.places import Gram, Rows, gram_for, rows_for
from mercer.places.host.source import kernel_diagonal
from mercer.runtime.errors import INDEFINITE, NonPSDKernelWarning
from mercer.runtime.parameters import iterations, positive
from mercer.runtime.threads import effective_n_threads
from mercer.samples import checks
from mercer.samples.arrays import (
    Data,
    Floats,
    Indices,
    Weights,
    copy_short_rows,
    is_sparse,
    matrix_columns,
    matrix_entries,
    moments,
    n_samples,
    physical_memory,
    take,
)
from mercer.samples.column_names import names_remark
from mercer.samples.engine import EngineSamples, configured_engine, engine_of, on_host
from mercer.samples.labels import read_labels
from mercer.samples.matrices import over_all_columns, without_empty_columns
from mercer.samples.merging import Merged, keep_unmerged, merge
from mercer.solvers.deadline import GRACE_SECONDS, enforce_deadline
from mercer.solvers.solution import Stop

if TYPE_CHECKING:
    from mercer.estimators.fitting.pipeline.machine import Machine

# Minimum number of seconds beyond max_time that a fit on an engine's samples has for its certificate.
_LEAST_GRACE = 5.0


@dataclass(frozen=True, eq=False)
class Limits:
    """Limits of a fit: stopping criteria, memory and threads, and its source of random numbers."""

    stop: Stop
    budget: int  # bytes in addition to the data
    n_threads: int
    random: Any  # a numpy RandomState

    @classmethod
    def of(cls, estimator: Any, max_steps: int) -> Limits:
        """Return the limits of an estimator; a missing parameter means no limit, `max_iter=-1` means `max_steps`."""
        parameters = vars(estimator)  # get_params would inspect the signature, which takes a tenth of a small fit
        tol, gap_tol = parameters.get("tol", math.inf), parameters.get("gap_tol")
        if tol is None and gap_tol is None:
            raise ValueError("tol and gap_tol are both None, so nothing would end the fit; give one of them")
        n_threads = effective_n_threads(parameters.get("n_jobs"))
        stop = Stop(
            tol=math.inf if tol is None or "tol" not in parameters else positive("tol", tol),
            gap_tol=math.inf if gap_tol is None else positive("gap_tol", gap_tol, "None asks for no gap"),
            max_iter=iterations("max_iter", parameters.get("max_iter", -1), max_steps),
            deadline=deadline_of(parameters.get("max_time")),
            n_threads=n_threads,
        )
        return cls(
            stop,
            cache_bytes(parameters.get("cache_size", 1000)),
            n_threads,
            random_state_of(parameters.get("random_state")),
        )

    def seed(self) -> int:
        """Draw a seed for a generator that is not numpy's; each call returns another one."""
        return int(self.random.randint(0, 2**63 - 1, dtype="int64"))


def deadline_of(max_time: Any) -> float:
    """Return the deadline of a fit that begins now, on the clock of time.monotonic."""
    seconds = math.inf if max_time is None else positive("max_time", max_time, "None means no limit")
    return time.monotonic() + seconds


def engine_time_limit(X: Any, max_time: Any) -> AbstractContextManager[None]:
    """Return a context that ends a fit on an engine's samples after twice `max_time`.

    Solvers observe max_time themselves and reserve time for the pass of the certificate. But a worker that does not
    answer would make that pass, or the reading of the samples, wait for ever.
    """
    if engine_of(X) is None and configured_engine() is None:
        return nullcontext()
    deadline = deadline_of(max_time)
    stop, grace = Stop(tol=math.inf, max_iter=0, deadline=deadline), max(_LEAST_GRACE, float(max_time))
    return enforce_deadline(stop, f"workers have not answered within another {grace:.0f} s; see their logs", grace)


def cache_bytes(cache_size: Any) -> int:
    """Return `cache_size` in bytes, at most half of the host's memory."""
    megabytes = positive("cache_size", cache_size, "it is the memory for a fit in MB")
    return int(min(megabytes * 1e6, physical_memory() / 2))


def random_state_of(random_state: Any) -> Any:
    """Return the RandomState for the parameter `random_state`."""
    try:
        return check_random_state(random_state)
    except ValueError as error:
        raise ValueError(f"random_state={random_state!r} must be None, an integer or a RandomState") from error


# For a linear machine with an unpenalised bias, a column is centred if its mean is more than this many standard
# deviations from zero: w stays the same, b is corrected afterwards, and squares do not cancel.
_FAR_DEVIATIONS = 3.0


@dataclass(frozen=True, eq=False)
class Fit:
    """Input of a fit in the form that problems and solvers take."""

    X: Any  # checked, in the caller's order
    y: Any  # as given
    target: Any  # as returned by `_read` and `_weigh`
    weight: Floats  # weights of the caller's rows, as returned by `_weigh`
    merged: Merged
    kernel: Kernel | None  # bound to the merged samples; None for a linear machine
    constant: bool  # True if problems are solved with k + 1, so that the bias is the weight of a constant feature
    limits: Limits
    sample_weight: Floats  # weights of the caller's rows, before `_weigh`
    _places: dict[Any, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, machine: Machine, X: Data, y: ArrayLike | None, sample_weight: Weights, *, chunk: bool = False) -> Fit:
        """Read the samples, targets, weights and limits of a fit.

        With `chunk`, the samples are part of a stream: they may have no weight at all, and must have the features of
        earlier chunks.
        """
        machine._check_parameters()
        kernel = machine._kernel()
        y, sample_weight = on_host(y), on_host(sample_weight)
        X = read_samples(machine, X, kernel, reset=not (chunk and hasattr(machine, "n_features_in_")))
        n = n_samples(X)
        limits = Limits.of(machine, machine._max_steps(n))
        checks.check_same_length(X, y)
        input_weight = weight = checks.weights(sample_weight, n)
        if not chunk:
            y = _checked_classes(machine, y, None if sample_weight is None else weight)
        codes, target = machine._read(y)
        codes = np.zeros(n, dtype=np.intp) if codes is None else codes
        weight, target = machine._weigh(target, codes, weight)
        if not chunk:
            checks.refuse_no_weight(weight)
        if kernel is not None and kernel.accepts == "gram":
            checks.check_gram_matrix(X)
        merges = machine._merges(X, limits.budget)
        with enforce_deadline(limits.stop, "reading the samples took longer. Raise max_time", GRACE_SECONDS):
            if merges:
                can_merge = kernel is None or kernel.mergeable
                copy_rows = kernel is not None or not is_sparse(X)  # a linear machine's CSR matrix is not copied
                merged = merge(X, codes, weight, identical=can_merge, n_threads=limits.n_threads, copy_rows=copy_rows)
            else:
                merged = keep_unmerged(X, codes, weight)
        constant = kernel is not None and machine._constant_feature
        if kernel is not None and kernel.accepts != "gram":
            kernel = kernel.bind(merged.samples, merged.weight)
        return cls(X, y, target, weight, merged, kernel, constant, limits, input_weight)

    @property
    def n(self) -> int:
        """Number of rows that the caller gave."""
        return n_samples(self.X)

    @property
    def precomputed(self) -> bool:
        """True if X is the kernel matrix itself."""
        return self.kernel is not None and self.kernel.accepts == "gram"

    @property
    def diagonal(self) -> Floats:
        """Diagonal k(x, x) of the kernel matrix of the merged samples, computed once."""
        key = ("diagonal", id(self.kernel))
        if key not in self._places:
            self._places[key] = self._compute_diagonal()
            self._places["kernel", id(self.kernel)] = self.kernel  # keeps the kernel alive, so that its id stays unique
        diagonal: Floats = self._places[key]
        return diagonal

    def _compute_diagonal(self) -> Floats:
        """Return k(x, x) of the merged samples; raise FloatingPointError if it overflows."""
        if self.precomputed:
            return matrix_entries(self.merged.X, np.arange(len(self.merged.rows)), self.merged.rows)
        assert self.kernel is not None
        diagonal = kernel_diagonal(self.kernel, self.merged.samples)
        if not np.isfinite(diagonal).all():
            raise FloatingPointError(f"k(x, x) overflows with {self.kernel!r}; scale the features")
        return np.asarray(diagonal)

    @property
    def n_kernel_values(self) -> int:
        """Number of kernel values that the fit's Gram matrix computed, except in its submatrices (`Gram.view`)."""
        gram = self._places.get(id(self.kernel))
        return 0 if gram is None else int(gram.evaluations)

    def gram(self, n_threads: int | None = None) -> Gram:
        """Return the Gram matrix of the merged samples, created once; warn if the kernel is indefinite."""
        assert self.kernel is not None
        return self.gram_of_kernel(self.kernel, n_threads)

    def gram_of_kernel(self, kernel: Kernel, n_threads: int | None = None) -> Gram:
        """Return the Gram matrix of the merged samples for another kernel, which must be bound."""
        if id(kernel) not in self._places:
            n_threads = self.limits.n_threads if n_threads is None else n_threads
            X, merged = self.merged.samples, self.merged
            if self.precomputed and len(merged.rows) < self.n:
                X = matrix_columns(merged.X, merged.rows)
            new_gram = gram_for(kernel, X, self.limits.budget, n_threads, constant=1.0 if self.constant else 0.0)
            if not new_gram.looks_positive_definite():
                warn_user(INDEFINITE.format(kernel=kernel), NonPSDKernelWarning)
            self._places[id(kernel)] = new_gram
            self._places["kernel", id(kernel)] = kernel  # keeps the kernel alive, so that its id stays unique
        gram: Gram = self._places[id(kernel)]
        return gram

    def gram_of(self, kernel: Kernel, X: Any) -> Gram:
        """Return the Gram matrix of other samples, or of a given matrix, within the limits of this fit."""
        return gram_for(kernel, X, self.limits.budget, self.limits.n_threads)

    def with_gram(self, gram: Gram, diagonal: Floats | None = None) -> Fit:
        """Return this fit with a given Gram matrix and, if there are no samples, a given diagonal k(x, x)."""
        stored_grams: dict[Any, Any] = {id(self.kernel): gram, ("kernel", id(self.kernel)): self.kernel}
        if diagonal is not None:
            stored_grams["diagonal", id(self.kernel)] = diagonal
        return replace(self, _places=stored_grams)

    def rows(self, n_threads: int | None = None, *, centred: bool = False) -> Rows:
        """Return the merged samples as rows, created once, without empty columns; with `centred`, minus `centre`."""
        if ("rows", centred) not in self._places:
            n_threads = self.limits.n_threads if n_threads is None else n_threads
            X, _ = self._nonempty_columns
            first_rows = self.merged.first if is_sparse(X) else None
            self._places["rows", centred] = rows_for(X, n_threads, first_rows, self.centre if centred else None)
        rows: Rows = self._places["rows", centred]
        return rows

    def gram_of_rows(self, n_threads: int | None = None) -> Gram:
        """Return the Gram matrix of a linear machine's rows."""
        X, n_threads = self.merged.samples, self.limits.n_threads if n_threads is None else n_threads
        return gram_for(
            as_kernel("linear"), take(X, self.merged.first) if is_sparse(X) else X, self.limits.budget, n_threads
        )

    @cached_property
    def _nonempty_columns(self) -> tuple[Any, Indices | None]:
        """Merged samples without empty columns, and the indices of the columns that remain; None if all do."""
        return without_empty_columns(copy_short_rows(self.merged.samples))

    def rows_of_all_columns(self) -> Rows:
        """Return the merged samples as rows, empty columns included."""
        X = copy_short_rows(self.merged.samples)
        return rows_for(X, self.limits.n_threads, self.merged.first if is_sparse(X) else None)

    def to_all_columns(self, w: Floats) -> Floats:
        """Return weights w of the columns of `rows` as weights of all columns, with zeros for empty columns."""
        return np.asarray(over_all_columns(w, self._nonempty_columns[1], self.merged.samples.shape[1]))

    @cached_property
    def centre(self) -> Floats | None:
        """Vector subtracted from the samples by a linear machine with an unpenalised bias, or None.

        The vector has the means of the columns that are far from zero, and zeros elsewhere.
        """
        X = self.merged.samples
        if is_sparse(X) or n_samples(X) < 2:
            return None
        mean, spread = moments(X)
        is_far_from_zero = np.abs(mean) > _FAR_DEVIATIONS * spread
        return np.where(is_far_from_zero, mean, 0.0) if is_far_from_zero.any() else None


def _checked_classes(machine: Machine, y: ArrayLike | None, weight: Floats | None) -> Any:
    """Return y without classes that have no weight, if the machine is a classifier; warn of unknown class weights.

    Without a `weight`, every sample has the weight 1.
    """
    if isinstance(vars(machine).get("class_weight"), dict):
        _warn_of_unknown_classes(machine.class_weight, y)
    if weight is None or weight.all() or not is_classifier(machine):
        return y
    return _without_weightless_classes(y, weight)


def _without_weightless_classes(y: ArrayLike | None, weight: Floats) -> Any:
    """Return y with classes whose samples all have weight 0 replaced by another label, if two classes remain.

    Bootstrap samples of `BaggingClassifier` have such classes, since it draws samples by weights. Samples of weight 0
    have no influence, whatever their label.
    """
    labels, codes = read_labels(y)
    has_no_weight = np.bincount(codes, weights=weight, minlength=len(labels)) == 0
    remaining = np.flatnonzero(~has_no_weight)
    if not has_no_weight.any() or len(remaining) < 2:
        return y
    names = ", ".join(map(repr, labels[has_no_weight].tolist()))
    warn_user(f"all samples of the classes {names} have weight 0: these classes are ignored", UserWarning)
    return labels[np.where(has_no_weight[codes], remaining[0], codes)]


def _warn_of_unknown_classes(class_weight: dict[Any, Any], y: ArrayLike | None) -> None:
    """Warn of labels in `class_weight` that y does not have, if `class_weight` also lacks a label of y.

    Unknown labels alone are no mistake: a part of the data, such as a fold, need not contain every class.
    """
    labels = read_labels(y)[0].tolist()
    unknown = [label for label in class_weight if label not in labels]
    if unknown and any(label not in class_weight for label in labels):
        warn_user(
            f"class_weight names {unknown}, but the classes are {labels}: these weights are not used", UserWarning
        )


def read_samples(machine: Machine, X: Data, kernel: Kernel | None, *, reset: bool) -> Any:
    """Return X checked and in the form that the kernel takes, for training (`reset`) or prediction."""
    if kernel is not None and kernel.accepts == "sequences":
        return checks.sequences(X, kernel)
    checked = checks.vectors(machine, X, reset=reset)
    remarks = [checks.rounding_remark(X, checked)]
    if isinstance(checked, EngineSamples) and engine_of(X) is not None:  # scikit-learn checks names on the host only
        remarks.append(names_remark(machine, checked.names))
    for remark in filter(None, remarks):
        warn_user(remark, UserWarning)
    if kernel is not None and kernel.accepts == "gram" and is_sparse(checked):
        raise TypeError("a sparse precomputed kernel matrix is not supported; give a dense array")
    return checked
