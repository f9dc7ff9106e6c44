"""What one fit holds: the samples checked, weighed and merged, the kernel bound to them, its limits, and where the data
live.

Nothing else reads a user's samples, labels, weights and limits for training, merges samples, or makes the place that
solvers work in: the Gram matrix of a kernel machine, or the rows of a linear one.
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
from mercer.samples import checks as samples
from mercer.samples.arrays import (
    Data,
    Floats,
    Indices,
    Weights,
    in_order,
    is_sparse,
    matrix_columns,
    matrix_entries,
    moments,
    n_samples,
    physical_memory,
    take,
)
from mercer.samples.column_names import names_remark
from mercer.samples.engine import PlacedSamples, configured, engine_of, on_host
from mercer.samples.labels import read_labels
from mercer.samples.matrices import over_all_columns, without_empty_columns
from mercer.samples.merging import Merged, merge, unmerged
from mercer.solvers.deadline import GRACE_SECONDS, in_time
from mercer.solvers.solution import Stop

if TYPE_CHECKING:
    from mercer.estimators.fitting.pipeline.machine import Machine

# Seconds that a fit on an engine's samples has at least beyond max_time for its certificate.
_LEAST_GRACE = 5.0


@dataclass(frozen=True, eq=False)
class Limits:
    """When to stop, how many bytes to use beside the data, on how many threads, and where chance comes from."""

    stop: Stop
    budget: int
    n_threads: int
    random: Any  # a numpy RandomState

    @classmethod
    def of(cls, estimator: Any, max_steps: int) -> Limits:
        """Those of an estimator; what it has no parameter for is not limited. `max_iter=-1` stands for `max_steps`."""
        given = vars(estimator)  # get_params would inspect the signature, a tenth of a small fit
        tol, gap_tol = given.get("tol", math.inf), given.get("gap_tol")
        if tol is None and gap_tol is None:
            raise ValueError("tol and gap_tol are both None, so that nothing would end the fit; give one of them")
        n_threads = effective_n_threads(given.get("n_jobs"))
        stop = Stop(
            tol=math.inf if tol is None or "tol" not in given else positive("tol", tol),
            gap_tol=math.inf if gap_tol is None else positive("gap_tol", gap_tol, "None asks for no gap"),
            max_iter=iterations("max_iter", given.get("max_iter", -1), max_steps),
            deadline=deadline_of(given.get("max_time")),
            n_threads=n_threads,
        )
        return cls(stop, bytes_of(given.get("cache_size", 1000)), n_threads, random_of(given.get("random_state")))

    def seed(self) -> int:
        """A number for a generator that is not numpy's; another one every time."""
        return int(self.random.randint(0, 2**63 - 1, dtype="int64"))


def deadline_of(max_time: Any) -> float:
    """The end of a fit that begins now, on time.monotonic's clock."""
    seconds = math.inf if max_time is None else positive("max_time", max_time, "None means no limit")
    return time.monotonic() + seconds


def ended_late(X: Any, max_time: Any) -> AbstractContextManager[None]:
    """End a fit on an engine's samples that has taken `max_time` twice.

    Solvers keep max_time by themselves, and keep back what the certificate's pass should take. A worker that does not
    answer makes that pass, or the reading of the samples, wait for ever.
    """
    if engine_of(X) is None and configured() is None:
        return nullcontext()
    deadline = deadline_of(max_time)
    stop, grace = Stop(tol=math.inf, max_iter=0, deadline=deadline), max(_LEAST_GRACE, float(max_time))
    return in_time(stop, f"workers have not answered, and were waited for {grace:.0f} s more; see their logs", grace)


def bytes_of(cache_size: Any) -> int:
    """`cache_size` in bytes, but at most half of this computer's memory."""
    megabytes = positive("cache_size", cache_size, "it is the memory for a fit in MB")
    return int(min(megabytes * 1e6, physical_memory() / 2))


def random_of(random_state: Any) -> Any:
    """The RandomState that the parameter stands for."""
    try:
        return check_random_state(random_state)
    except ValueError as error:
        raise ValueError(f"random_state={random_state!r} must be None, an integer or a RandomState") from error


# A column whose mean is more than this many standard deviations away from zero is centred for a linear machine with a
# free bias: w is the same, b is moved back, and squares do not cancel.
_FAR_DEVIATIONS = 3.0


@dataclass(frozen=True, eq=False)
class Fit:
    """The input of a training, in the form that problems and solvers take."""

    X: Any  # as checked, in the caller's order
    y: Any  # as given
    target: Any  # what the machine learnt from y
    weight: Floats  # of the caller's rows, as `_weigh` returns it
    merged: Merged
    kernel: Kernel | None  # bound to the merged samples; a linear machine has none
    constant: bool  # whether problems are solved with k + 1, so that the bias is the weight of a constant feature
    limits: Limits
    sample_weight: Floats  # of the caller's rows, before `_weigh`
    _places: dict[Any, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, machine: Machine, X: Data, y: ArrayLike | None, sample_weight: Weights, *, chunk: bool = False) -> Fit:
        """Read everything that a machine is trained on.

        A chunk of a stream may hold no weight, and has the features of the samples that came before it.
        """
        machine._check_parameters()
        kernel = machine._kernel()
        y, sample_weight = on_host(y), on_host(sample_weight)
        X = read_samples(machine, X, kernel, reset=not (chunk and hasattr(machine, "n_features_in_")))
        n = n_samples(X)
        limits = Limits.of(machine, machine._max_steps(n))
        samples.check_same_length(X, y)
        given = weight = samples.weights(sample_weight, n)
        if not chunk:
            y = _balanced(machine, y, weight)
        codes, target = machine._read(y)
        codes = np.zeros(n, dtype=np.intp) if codes is None else codes
        weight, target = machine._weigh(target, codes, weight)
        if not chunk:
            samples.refuse_no_weight(weight)
        if kernel is not None and kernel.accepts == "gram":
            samples.check_gram_matrix(X)
        merges = machine._merges(X, limits.budget)
        with in_time(limits.stop, "reading the samples took longer. Raise max_time", GRACE_SECONDS):
            if merges:
                identical = kernel is None or kernel.mergeable
                copied = kernel is not None or not is_sparse(X)  # the rows of a linear machine's CSR matrix stay
                merged = merge(X, codes, weight, identical=identical, n_threads=limits.n_threads, copy_rows=copied)
            else:
                merged = unmerged(X, codes, weight)
        constant = kernel is not None and machine._constant_feature
        if kernel is not None and kernel.accepts != "gram":
            kernel = kernel.bind(merged.samples, merged.weight)
        return cls(X, y, target, weight, merged, kernel, constant, limits, given)

    @property
    def n(self) -> int:
        """How many rows the caller gave."""
        return n_samples(self.X)

    @property
    def precomputed(self) -> bool:
        """Whether X is the kernel matrix itself."""
        return self.kernel is not None and self.kernel.accepts == "gram"

    @property
    def diagonal(self) -> Floats:
        """k(x, x) of every merged sample, computed once."""
        key = ("diagonal", id(self.kernel))
        if key not in self._places:
            self._places[key] = self._compute_diagonal()
            self._places["kernel", id(self.kernel)] = self.kernel  # an id is free again once its object is gone
        diagonal: Floats = self._places[key]
        return diagonal

    def _compute_diagonal(self) -> Floats:
        if self.precomputed:
            return matrix_entries(self.merged.X, np.arange(len(self.merged.rows)), self.merged.rows)
        assert self.kernel is not None
        diagonal = kernel_diagonal(self.kernel, self.merged.samples)
        if not np.isfinite(diagonal).all():
            raise FloatingPointError(f"k(x, x) overflows with {self.kernel!r}; scale the features")
        return np.asarray(diagonal)

    @property
    def kernel_values(self) -> int:
        """How many kernel values its Gram has computed, views and other places apart."""
        made = self._places.get(id(self.kernel))
        return 0 if made is None else int(made.evaluations)

    def gram(self, n_threads: int | None = None) -> Gram:
        """The Gram matrix of the merged samples, made once; whoever gave an indefinite kernel is told."""
        assert self.kernel is not None
        return self.gram_under(self.kernel, n_threads)

    def gram_under(self, kernel: Kernel, n_threads: int | None = None) -> Gram:
        """The Gram matrix of the merged samples under another kernel, bound like the fit's own."""
        if id(kernel) not in self._places:
            n_threads = self.limits.n_threads if n_threads is None else n_threads
            X, merged = self.merged.samples, self.merged
            if self.precomputed and len(merged.rows) < self.n:
                X = matrix_columns(merged.X, merged.rows)
            made = gram_for(kernel, X, self.limits.budget, n_threads, constant=1.0 if self.constant else 0.0)
            if not made.looks_positive_definite():
                warn_user(INDEFINITE.format(kernel=kernel), NonPSDKernelWarning)
            self._places[id(kernel)] = made
            self._places["kernel", id(kernel)] = kernel  # an id is free again once its object is gone
        gram: Gram = self._places[id(kernel)]
        return gram

    def gram_of(self, kernel: Kernel, X: Any) -> Gram:
        """The Gram matrix of other samples, or a matrix, within the limits of this fit."""
        return gram_for(kernel, X, self.limits.budget, self.limits.n_threads)

    def with_gram(self, gram: Gram, diagonal: Floats | None = None) -> Fit:
        """This fit with a Gram matrix of its kernel that is at hand, and with k(x, x) where no samples are."""
        places: dict[Any, Any] = {id(self.kernel): gram, ("kernel", id(self.kernel)): self.kernel}
        if diagonal is not None:
            places["diagonal", id(self.kernel)] = diagonal
        return replace(self, _places=places)

    def rows(self, n_threads: int | None = None, *, centred: bool = False) -> Rows:
        """The merged samples as rows, made once, without empty columns; centred are those that `centre` says."""
        if ("rows", centred) not in self._places:
            n_threads = self.limits.n_threads if n_threads is None else n_threads
            X, _ = self._narrow
            which = self.merged.first if is_sparse(X) else None
            self._places["rows", centred] = rows_for(X, n_threads, which, self.centre if centred else None)
        rows: Rows = self._places["rows", centred]
        return rows

    def gram_of_rows(self, n_threads: int | None = None) -> Gram:
        """The Gram matrix of a linear machine's rows."""
        X, n_threads = self.merged.samples, self.limits.n_threads if n_threads is None else n_threads
        return gram_for(
            as_kernel("linear"), take(X, self.merged.first) if is_sparse(X) else X, self.limits.budget, n_threads
        )

    @cached_property
    def _narrow(self) -> tuple[Any, Indices | None]:
        return without_empty_columns(in_order(self.merged.samples))

    def rows_of_all_columns(self) -> Rows:
        """The merged samples as rows, empty columns included."""
        X = in_order(self.merged.samples)
        return rows_for(X, self.limits.n_threads, self.merged.first if is_sparse(X) else None)

    def widened(self, w: Floats) -> Floats:
        """Weights of the columns that `rows` has as weights of all columns; an empty column has the weight zero."""
        return np.asarray(over_all_columns(w, self._narrow[1], self.merged.samples.shape[1]))

    @cached_property
    def centre(self) -> Floats | None:
        """What a linear machine with a free bias takes off the columns: the means of those far from zero, if any."""
        X = self.merged.samples
        if is_sparse(X) or n_samples(X) < 2:
            return None
        mean, spread = moments(X)
        far = np.abs(mean) > _FAR_DEVIATIONS * spread
        return np.where(far, mean, 0.0) if far.any() else None


def _balanced(machine: Machine, y: ArrayLike | None, weight: Floats) -> Any:
    """y of a classifier without classes that have no weight; of other machines as it is."""
    if isinstance(vars(machine).get("class_weight"), dict):
        _tell_unknown_classes(machine.class_weight, y)
    return _without_weightless_classes(y, weight) if not weight.all() and is_classifier(machine) else y


def _without_weightless_classes(y: ArrayLike | None, weight: Floats) -> Any:
    """y as it is, or without the classes whose samples all have weight 0, if two others remain.

    So the bags of `BaggingClassifier` come, which draws samples by their weights. The samples of such a class have no
    influence, and are given the label of another one.
    """
    labels, codes = read_labels(y)
    gone = np.bincount(codes, weights=weight, minlength=len(labels)) == 0
    kept = np.flatnonzero(~gone)
    if not gone.any() or len(kept) < 2:
        return y
    names = ", ".join(map(repr, labels[gone].tolist()))
    warn_user(f"all samples of the classes {names} have weight 0: these classes are left out", UserWarning)
    return labels[np.where(gone[codes], kept[0], codes)]


def _tell_unknown_classes(class_weight: dict[Any, Any], y: ArrayLike | None) -> None:
    """Warn of names in `class_weight` that no sample has, if a class that has samples is missing there.

    A part of the data, such as a fold, need not hold every class. With a class missing it may be a slip of the pen.
    """
    labels = read_labels(y)[0].tolist()
    unknown = [label for label in class_weight if label not in labels]
    if unknown and any(label not in class_weight for label in labels):
        warn_user(
            f"class_weight names {unknown}, but the classes are {labels}: these weights are not used", UserWarning
        )


def read_samples(machine: Machine, X: Data, kernel: Kernel | None, *, reset: bool) -> Any:
    """X checked and in the form that the kernel takes, for training (`reset`) or prediction."""
    if kernel is not None and kernel.accepts == "sequences":
        return samples.sequences(X, kernel)
    checked = samples.vectors(machine, X, reset=reset)
    remarks = [samples.rounding_remark(X, checked)]
    if isinstance(checked, PlacedSamples) and engine_of(X) is not None:  # scikit-learn has compared names of the host's
        remarks.append(names_remark(machine, checked.names))
    for remark in filter(None, remarks):
        warn_user(remark, UserWarning)
    if kernel is not None and kernel.accepts == "gram" and is_sparse(checked):
        raise TypeError("a sparse precomputed kernel matrix is not supported; give a dense array")
    return checked
