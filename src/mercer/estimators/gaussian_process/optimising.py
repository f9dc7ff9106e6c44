"""Base class of Gaussian process machines, which optimise the marginal likelihood and cache a factorisation."""

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
class LikelihoodMachine(Machine):
    """Base class of machines that optimise their parameters by the marginal likelihood."""

    # The factor is as large as K, and is computed again when it is needed after unpickling.
    _FITTED = fitted(_process_=Unsaved(pickled=False))

    _: KW_ONLY
    optimise: bool | Sequence[str] = True
    max_iter: int = -1

    _default_steps = _DEFAULT_STEPS

    def _check_parameters(self) -> None:
        super()._check_parameters()
        names = self.optimise
        if isinstance(names, str) or not (isinstance(names, bool) or all(isinstance(name, str) for name in names)):
            raise TypeError(f"optimise={names!r} must be True, False or a list of parameter names")
        kernel = self._kernel()
        if kernel is not None and kernel.accepts == "gram":
            raise ValueError(
                "a Gaussian process needs k(x, x) of new samples, which a precomputed matrix does not contain; use "
                "RLSRegressor or KernelMachine for the mean alone"
            )

    @property
    def _steps(self) -> int:
        """Maximal number of steps of the search."""
        return max(1, iterations("max_iter", self.max_iter, _DEFAULT_STEPS))

    def _names(self) -> list[str] | None:
        """Return the names of the parameters to optimise; None for all, including the scale of `_scaled_kernel`."""
        return None if self.optimise is True else list(self.optimise or [])

    def _scaled_kernel(self, fit: Fit) -> Kernel:
        """Return the kernel, times a scale if all parameters are optimised; warn of those that stay fixed."""
        assert fit.kernel is not None
        if self.optimise is True:
            _warn_of_fixed_parameters(fit.kernel)
        return 1.0 * fit.kernel if self.optimise is True else fit.kernel

    def _refuse_large(self, fit: Fit) -> None:
        """Raise MemoryError if the matrices of the search exceed the memory budget."""
        n = len(fit.merged.weight)
        n_bytes = 48 * n**2  # K, its factor and inverse, the weights of the derivatives, and a block of derivatives
        if n_bytes > fit.limits.budget:
            raise memory_error(f"the covariances of {n} samples", n_bytes, fit.limits.budget, "fewer samples")

    def _make_process(self) -> Any:
        """Return the process of the fitted machine, from its fitted attributes."""
        raise NotImplementedError

    def _process(self) -> Any:
        """Return the process of the fitted machine, made again after unpickling."""
        check_is_fitted(self)
        if "_process_" not in vars(self):
            self._process_ = self._make_process()
        return self._process_


def _warn_of_fixed_parameters(kernel: Kernel) -> None:
    """Warn of parameters without derivatives: those of another library's kernel, and a matrix M."""
    for name, value in kernel.get_params().items():
        if hasattr(value, "get_params") and not isinstance(value, Kernel):
            warn_user(
                f"the parameters of {value!r} are not optimised, since their derivatives are not known; those of a "
                "kernel of mercer.kernels are. optimise=False optimises none",
                UserWarning,
            )
        elif name.rpartition("__")[2] == "M" and value is not None:
            warn_user(
                f"the matrix {name} is not optimised; a product of kernels with .on([j]) over the columns learns a "
                "scale for each. optimise=False, or a list of names, silences this warning",
                UserWarning,
            )


def copy_vectors(expansion: Expansion, fit: Fit) -> Expansion:
    """Return the expansion with copied vectors if they share the caller's memory."""
    return replace(expansion, vectors=copy.copy(expansion.vectors)) if fit.merged.X is fit.X else expansion
