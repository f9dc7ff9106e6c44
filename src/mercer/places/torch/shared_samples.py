"""Data that a Gram on a device and its views share."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from mercer.kernels import Kernel
from mercer.places.choose import gram_for
from mercer.places.gram import Gram
from mercer.places.rounding import Rounding
from mercer.places.torch.formula import Formula, PreparedRows, UnpreparedRows
from mercer.places.torch.memory import explain_shortage
from mercer.places.torch.samples import TorchSamples
from mercer.samples.arrays import Floats


class TorchSharedSamples:
    """Samples, their prepared rows, and whether K was refuted."""

    def __init__(
        self,
        kernel: Kernel,
        X: TorchSamples,
        budget: int,
        n_threads: int,
        constant: float,
        *,
        of_differences: bool = False,
    ) -> None:
        self.kernel, self.X, self.constant, self.n_threads = kernel, X, constant, n_threads
        self.precomputed, self._of_differences = kernel.accepts == "gram", of_differences
        self.formula = (
            None if self.precomputed else Formula.of(kernel, X.rows, of_differences=of_differences, fuses=True)
        )
        self.refuted = False
        self._budget = budget
        self._prepared: dict[Any, PreparedRows] = {}  # by precision

    def prepared(self, dtype: Any) -> PreparedRows | UnpreparedRows:
        """Return all rows in a precision, prepared once if they fit half of the budget."""
        assert self.formula is not None
        if dtype not in self._prepared:
            needed_bytes = self.X.n_entries * dtype.itemsize
            if 2 * needed_bytes > self._budget:
                return UnpreparedRows(self.formula, self.X.rows, dtype)
            with explain_shortage(
                "a copy of the samples", needed_bytes, self.X.rows.device, "lower cache_size to do without"
            ):
                self._prepared[dtype] = self.formula.rows(self.X.rows, dtype)
        return self._prepared[dtype]

    @cached_property
    def on_other_devices(self) -> list[TorchSharedSamples]:
        """Shared data of the matrix for copies of the samples on all other devices that may be used."""
        samples = [self.X.on(device) for device in self.X.devices[1:]]
        return [self._with_samples(X, of_differences=self._of_differences) for X in samples]

    @cached_property
    def exact(self) -> TorchSharedSamples | None:
        """Shared data of the matrix computed from differences; None if only the host can compute more exact values."""
        recipe = None if self.formula is None else self.formula.recipe
        if recipe is None or recipe.inner == "dot" or recipe.factor is not None:
            return None
        assert self.formula is not None
        return self if self.formula.differences else self._with_samples(self.X, of_differences=True)

    def _with_samples(self, X: TorchSamples, *, of_differences: bool) -> TorchSharedSamples:
        return TorchSharedSamples(
            self.kernel, X, self._budget, self.n_threads, self.constant, of_differences=of_differences
        )

    @cached_property
    def on_host(self) -> Gram:
        """This matrix on the host, for bounds that the device cannot compute."""
        return gram_for(self.kernel, self.X.host(), self._budget, self.n_threads, constant=self.constant)

    @cached_property
    def rounding(self) -> Rounding | None:
        return None if self.formula is None else self.formula.rounding

    @cached_property
    def sizes(self) -> Floats:
        """N of every row, for error bounds."""
        assert self.formula is not None
        return self.formula.sizes(self.X.rows)
