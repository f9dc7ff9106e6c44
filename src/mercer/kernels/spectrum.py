"""The spectrum kernel of strings: the inner product of their counts of substrings of one length."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.arrays import Floats, Samples
from mercer.engine import PlacedSamples, placed
from mercer.kernels.kernel import Answer, Domain, Kernel
from mercer.parameters import integer


class Spectrum(Kernel):
    """Σ_s count(s in x) · count(s in z) over all substrings s of ``length`` characters (Leslie, Eskin and Noble 2002).

    Parameters
    ----------
    length : int ≥ 1
        Of the substrings that are compared, in characters.
    normalise : bool
        Divide by √(k(x, x) k(z, z)); the values of a string too short to have a substring stay 0.

    Examples
    --------
    >>> from mercer.kernels import Spectrum
    >>> Spectrum(2)(["banana"], ["bandana", "cab"])  # ba, an, na: 1·1 + 2·2 + 2·1
    array([[7., 0.]])
    """

    accepts: Domain = "sequences"
    positive_definite = "yes"
    strictly_positive_definite = universal = differentiable = "no"
    _no_gradient = "a string cannot be changed by a small step"

    def __init__(self, length: int = 3, normalise: bool = False) -> None:
        self.length, self.normalise = length, normalise
        self._check()

    def _check(self) -> None:
        integer("length", self.length, 1, "the number of characters of a substring")

    def _samples(self, X: Samples) -> Samples:
        if isinstance(X, (str, bytes)):
            raise TypeError(
                "a spectrum kernel compares the strings of a list, but one string was given; put it in a list"
            )
        X = placed(X)
        if isinstance(X, PlacedSamples):
            return X
        for i, sample in enumerate(X):
            if not isinstance(sample, str):
                raise TypeError(
                    f"a spectrum kernel compares strings, but sample {i} is {type(sample).__name__}: {sample!r:.60}"
                )
        return X

    def _values(self, X: Samples, Z: Samples) -> Floats:
        self._check()
        columns: dict[str, int] = {}
        of_x = self._counts(X, columns)
        of_z = of_x if Z is X else self._counts(Z, columns)
        of_x.resize(len(X), len(columns))
        return np.ascontiguousarray((of_x @ of_z.T).toarray())

    def diag(self, X: Samples) -> Floats:
        self._check()
        X = self._samples(X)
        totals = np.array([sum(count * count for count in self._spectrum(x).values()) for x in X], dtype=np.float64)
        return (totals > 0).astype(np.float64) if self.normalise else totals

    def _spectrum(self, sample: str) -> Counter[str]:
        return Counter(sample[i : i + self.length] for i in range(len(sample) - self.length + 1))

    def _counts(self, X: Samples, columns: dict[str, int]) -> Any:
        """The counts as a sparse matrix; substrings that are new get new columns."""
        indices: list[int] = []
        values: list[float] = []
        ends = [0]
        for sample in X:
            found = self._spectrum(sample)
            length = np.sqrt(sum(count * count for count in found.values())) if self.normalise and found else 1.0
            indices += [columns.setdefault(part, len(columns)) for part in found]
            values += [count / length for count in found.values()]
            ends.append(len(indices))
        arrays = np.array(values, dtype=np.float64), np.array(indices, dtype=np.intp), np.array(ends, dtype=np.intp)
        return sp.csr_array(arrays, shape=(len(X), len(columns)))

    @property
    def unit_diagonal(self) -> Answer:
        return "depends" if self.normalise else "no"  # "yes" unless a string is too short
