"""What the estimators of this room share: a fit on samples alone, read and merged as for every machine."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

from mercer.estimators.fitting.pipeline.fit import Fit
from mercer.estimators.fitting.pipeline.machine import Machine, Training
from mercer.estimators.fitting.pipeline.reporting import Progress
from mercer.estimators.fitting.pipeline.state import BoundKernel, Function, fitted
from mercer.kernels.names import KernelLike
from mercer.runtime.parameters import integer
from mercer.runtime.refitting import blank_copy
from mercer.runtime.shared_docs import shared_docs
from mercer.solvers.solution import Report


@dataclass(eq=False, repr=False)
class Learner(Machine):
    """A machine without targets: it adds its parameters and what it learns."""

    _: KW_ONLY
    kernel: KernelLike = "rbf"
    degree: int = 3
    gamma: float | str = "scale"
    coef0: float = 0.0
    n_landmarks: int | None = None
    cache_size: float = 1000
    random_state: Any = None

    _FITTED = fitted(kernel_=BoundKernel(required=True), _expansion_=Function(required=True))

    def _learn(self, fit: Fit, report: Report) -> None:
        """Set the fitted attributes; `report` takes what there is to say before every step that may last."""
        raise NotImplementedError

    @shared_docs
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from samples X.

        Parameters
        ----------
        %(samples alone)s
        """
        super().fit(X, y, sample_weight)
        return self

    def _trained(self, X: Any, y: Any, sample_weight: Any, training: Training) -> Self:
        trained = blank_copy(self)
        progress = Progress(training.watched_by, bool(self.verbose), 1, X, y)
        trained._learn_from(X, y, sample_weight, progress.begin(""))
        progress.end()
        progress.close(X, y, trained)
        return trained

    def _learn_from(self, X: Any, y: Any, sample_weight: Any, report: Report) -> None:
        fit = Fit.of(self, X, None, sample_weight)
        assert fit.kernel is not None
        self.kernel_ = fit.kernel
        self._learn(fit, report)

    @property
    def _n_features_out(self) -> int:
        return len(self._expansion_.b)

    def _check_parameters(self) -> None:
        if self.n_landmarks is not None:
            integer("n_landmarks", self.n_landmarks, 1, "the samples that represent all; None takes all of them")


class Reader(Learner):
    """Samples that are read like those of any machine, with the parameters given; every row stays by itself."""

    def _merges(self, X: Any, budget: int) -> bool:
        return False
