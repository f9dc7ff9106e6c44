"""What Gaussian processes share: parameters that make the data most likely, and a factor that is kept."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

from sklearn.utils.validation import check_is_fitted

from mercer.estimators.fitting.pipeline.fit import Fit
from mercer.estimators.fitting.pipeline.machine import Machine
from mercer.estimators.fitting.pipeline.state import Unsaved, fitted
from mercer.kernels import Kernel
from mercer.places.expansion import Expansion
from mercer.runtime.errors import warn_user
from mercer.runtime.parameters import iterations
from mercer.solvers.least_squares.solution import memory_error

_DEFAULT_STEPS = 100


@dataclass(eq=False, repr=False)
class Optimising(Machine):
    """A machine that chooses its kernel by the marginal likelihood."""

    # The factor is as large as K, and made again where it is needed.
    _FITTED = fitted(_process_=Unsaved(pickled=False))

    _: KW_ONLY
    optimise: bool | Sequence[str] = True
    max_iter: int = -1

    _default_steps = _DEFAULT_STEPS

    def _check_parameters(self) -> None:
        super()._check_parameters()
        names = self.optimise
        wrong = isinstance(names, str) or not (isinstance(names, bool) or all(isinstance(name, str) for name in names))
        if wrong:
            raise TypeError(f"optimise={names!r} must be True, False or a list of names of parameters")
        kernel = self._kernel()
        if kernel is not None and kernel.accepts == "gram":
            raise ValueError(
                "a Gaussian process needs k(x, x) of new samples, which a precomputed matrix does not hold; use "
                "RLSRegressor or KernelMachine for the mean alone"
            )

    @property
    def _steps(self) -> int:
        return max(1, iterations("max_iter", self.max_iter, _DEFAULT_STEPS))

    def _names(self) -> list[str] | None:
        """What to change, None for all: without names the kernel has a scale of its own, whose name is new."""
        return None if self.optimise is True else list(self.optimise or [])

    def _wrapped(self, fit: Fit) -> Kernel:
        """The kernel, times a factor that is learnt too if everything is; warn of parameters that cannot be learnt."""
        assert fit.kernel is not None
        if self.optimise is True:
            _tell_fixed(fit.kernel)
        return 1.0 * fit.kernel if self.optimise is True else fit.kernel

    def _refuse_large(self, fit: Fit) -> None:
        n = len(fit.merged.weight)
        need = 48 * n**2  # K, its factor, its inverse, the weights of derivatives and a block of these
        if need > fit.limits.budget:
            raise memory_error(f"the covariances of {n} samples", need, fit.limits.budget, "fewer samples")

    def _made(self) -> Any:
        """The process of a machine that was loaded from a file."""
        raise NotImplementedError

    def _process(self) -> Any:
        check_is_fitted(self)
        if "_process_" not in vars(self):
            self._process_ = self._made()
        return self._process_


def _tell_fixed(kernel: Kernel) -> None:
    """Warn of parameters that no gradient search reaches: those of a function of another library, and a matrix M."""
    for name, value in kernel.get_params().items():
        if hasattr(value, "get_params") and not isinstance(value, Kernel):
            warn_user(
                f"the parameters of {value!r} stay as they are given, since their derivatives are not known; with "
                "a kernel of mercer.kernels they are learnt. optimise=False keeps all as given",
                UserWarning,
            )
        elif name.rpartition("__")[2] == "M" and value is not None:
            warn_user(
                f"the matrix {name} stays as it is given; a product of kernels with .on([j]) over the columns learns a "
                "scale for each. optimise=False, or a list of names, says that M may stay",
                UserWarning,
            )


def own_vectors(expansion: Expansion, fit: Fit) -> Expansion:
    """An expansion that holds no samples of the caller's."""
    return replace(expansion, vectors=copy.copy(expansion.vectors)) if fit.merged.X is fit.X else expansion
