"""Machines that take new samples in: they keep those they know, and go on from the last solution."""

from __future__ import annotations

import warnings
from typing import Any, Self

from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_consistent_length

from mercer.data import samples
from mercer.fitting.machine import Machine, Training
from mercer.fitting.telling import with_callbacks
from mercer.fitting.warm_start import Memory


class Growing(Machine):
    """A Machine whose problems are DualProblems, so that an old solution is a start for a new one."""

    @with_callbacks  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add samples to those known and train on all of them, from the last solution on.

        The result is that of `fit` on all samples in the order in which they came, to the tolerance, and `support_`
        counts in that order. The machine must therefore keep a copy of all samples; `fit` keeps one only with
        warm_start=True, and without it the first call of partial_fit starts anew, with a warning.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        self
        """
        memory = self._what_it_knows()
        if memory is None:
            return self._become(self._trained(X, y, sample_weight, Training(self, keeps=True)))
        X = self._samples(X, self._kernel(), reset=False)
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        y = None if y is None else column_or_1d(y, warn=True)
        check_consistent_length(X, y)
        everything = memory.known.followed_by(X, y, samples.weights(sample_weight, n))
        trained = self._trained(*everything, Training(self, memory, keeps=True))
        if hasattr(self, "feature_names_in_"):
            trained.feature_names_in_ = self.feature_names_in_
        return self._become(trained)

    def _what_it_knows(self) -> Memory | None:
        """What partial_fit can add to: None before the first call."""
        if self._kernel().accepts == "gram":
            raise ValueError(
                "partial_fit cannot add samples to a precomputed kernel, which needs their values with all others; "
                "use warm_start=True and fit the larger matrix, whose first rows are the old ones"
            )
        memory: Memory | None = getattr(self, "_memory_", None)
        if memory is None and hasattr(self, "_expansion_"):
            warnings.warn(
                "fit kept no samples that partial_fit could add to, so it starts anew with the given ones; call "
                "partial_fit from the first samples on, or fit with warm_start=True",
                UserWarning,
                stacklevel=4,
            )
        return memory
