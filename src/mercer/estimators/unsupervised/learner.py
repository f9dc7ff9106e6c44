"""Base class of unsupervised estimators, whose samples are read and merged as for every machine."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

from mercer.estimators.fitting.pipeline.fit import Fit
from mercer.estimators.fitting.pipeline.machine import FitOptions, Machine
from mercer.estimators.fitting.pipeline.reporting import Progress
from mercer.estimators.fitting.pipeline.state import BoundKernel, KernelExpansion, fitted
from mercer.kernels.names import KernelLike
from mercer.runtime.parameters import integer
from mercer.runtime.refitting import blank_copy
from mercer.runtime.shared_docs import shared_docs
from mercer.solvers.solution import ProgressReporter


@dataclass(eq=False, repr=False)
class UnsupervisedMachine(Machine):
    """Base class of machines without targets; subclasses add parameters and `_learn`."""

    _: KW_ONLY
    kernel: KernelLike = "rbf"
    degree: int = 3
    gamma: float | str = "scale"
    coef0: float = 0.0
    n_landmarks: int | None = None
    cache_size: float = 1000
    random_state: Any = None

    _FITTED = fitted(kernel_=BoundKernel(required=True), _expansion_=KernelExpansion(required=True))

    def _learn(self, fit: Fit, report: ProgressReporter) -> None:
        """Set the fitted attributes, calling `report` before every step that may take long."""
        raise NotImplementedError

    @shared_docs
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the estimator to samples.

        Parameters
        ----------
        %(samples alone)s
        """
        super().fit(X, y, sample_weight)
        return self

    def _fit_copy(self, X: Any, y: Any, sample_weight: Any, options: FitOptions) -> Self:
        """Return a copy fitted to samples."""
        trained_copy = blank_copy(self)
        progress = Progress(options.watched_by, bool(self.verbose), 1, X, y)
        trained_copy._learn_from(X, y, sample_weight, progress.begin(""))
        progress.end()
        progress.close(X, y, trained_copy)
        return trained_copy

    def _learn_from(self, X: Any, y: Any, sample_weight: Any, report: ProgressReporter) -> None:
        """Read the samples and set the fitted attributes."""
        fit = Fit.of(self, X, None, sample_weight)
        assert fit.kernel is not None
        self.kernel_ = fit.kernel
        self._learn(fit, report)

    @property
    def _n_features_out(self) -> int:
        return len(self._expansion_.b)

    def _check_parameters(self) -> None:
        if self.n_landmarks is not None:
            integer("n_landmarks", self.n_landmarks, 1, "the number of landmarks; None means no projection")


class SampleReader(UnsupervisedMachine):
    """Reader of samples with the parameters of an unsupervised machine; equal rows are not merged."""

    def _merges(self, X: Any, budget: int) -> bool:
        return False
