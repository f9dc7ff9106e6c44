"""Kernels of strings: what substrings and subsequences they share.

All are inner products of counts, or of weights ≥ 0, of parts of the strings: sums in which nothing cancels.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, product
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.kernels.composite import in_row_blocks
from mercer.kernels.kernel import DIAGONAL_ROWS, Answer, Domain, Kernel
from mercer.runtime.parameters import integer, positive
from mercer.samples.arrays import Floats, Samples, physical_memory, row_blocks
from mercer.samples.engine import PlacedSamples, placed

# What a part of a string counts for is at least this: float64 has all digits of it, and of sums of products with it.
_SMALLEST_WEIGHT = 1e-100
# Strings that a substring may be mistaken for: 6 amino acids with 2 mismatches have 6,000, 10 bases with 3 have 7,680.
_MOST_NEAR = 10_000
# Only lists of few strings are kept for the next time.
_FEW_NEAR = 256
# Bytes of a string and its count, beside its characters.
_PER_PART = 128


class OfSequences(Kernel):
    """Σ_s count(s in x) · count(s in z) over some parts s of strings, or another such sum of products.

    With `normalise` it is divided by √(k(x, x) k(z, z)), where that is not 0.
    """

    accepts: Domain = "sequences"
    positive_definite: Answer = "yes"
    strictly_positive_definite = universal = differentiable = positive_values = "no"
    normalise: bool
    _no_gradient = "a string cannot be changed by a small step"

    def _counts(self, X: Samples) -> list[Counter[Any]]:
        """The parts of every sample."""
        raise NotImplementedError

    def _sums(self, X: Samples, Z: Samples) -> Floats:
        """The sums of a block; X may be Z."""
        counts = self._counts(X if Z is X else [*X, *Z])
        columns: dict[Any, int] = {}
        indices = np.array([columns.setdefault(s, len(columns)) for found in counts for s in found], dtype=np.intp)
        values = np.array([count for found in counts for count in found.values()], dtype=np.float64)
        table = sp.csr_array((values, indices, np.cumsum([0, *map(len, counts)])), shape=(len(counts), len(columns)))
        return np.ascontiguousarray((table[: len(X)] @ table[len(counts) - len(Z) :].T).toarray())

    def _own_sums(self, X: Samples) -> Floats:
        """The sum of every sample with itself."""
        return np.array([sum(count * count for count in found.values()) for found in self._counts(X)], dtype=np.float64)

    def _roundings(self, X: Samples) -> int:
        """How many roundings a sum has, one after another; none of whole numbers."""
        return 0

    def _expect_memory(self, nbytes: int, what: str) -> None:
        """Raise an error if what is about to be made takes more than half of the host's memory."""
        if nbytes > physical_memory() / 2:
            raise ValueError(
                f"{self!r} would hold {what} at a time, about {nbytes / 2**30:,.0f} GB, more than half of this "
                "computer's memory; compare shorter strings, or fewer of them, or change the kernel's numbers"
            )

    def _samples(self, X: Samples) -> Samples:
        if isinstance(X, (str, bytes)):
            raise TypeError(f"{self!r} compares the samples of a list, but one string was given; put it in a list")
        X = placed(X)
        if isinstance(X, PlacedSamples) or all(isinstance(sample, str) for sample in X):
            return X
        return [self.sequence(sample, f"sample {i}") for i, sample in enumerate(X)]

    def _values(self, X: Samples, Z: Samples) -> Floats:
        self._check()
        out = self._sums(X, Z)
        if self.normalise:
            rows = _roots(self._own_sums(X))
            out /= rows[:, None]
            out /= rows if Z is X else _roots(self._own_sums(Z))
        return out

    def _diag(self, X: Samples) -> Floats:
        self._check()
        totals = self._own_sums(self._samples(X))
        return (totals > 0).astype(np.float64) if self.normalise else totals

    def n_terms(self, X: Samples) -> int:
        own = 0 if isinstance(X, PlacedSamples) else self._roundings(X)
        return 2 * own + 8 if self.normalise else own

    @property
    def unit_diagonal(self) -> Answer:
        return "depends" if self.normalise else "no"  # "yes" unless a sample has no part


def _roots(squares: Floats) -> Floats:
    return np.sqrt(np.where(squares > 0, squares, 1.0))


@dataclass(eq=False, repr=False)
class Spectrum(OfSequences):
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

    length: int = 3
    normalise: bool = False

    def _check(self) -> None:
        integer("length", self.length, 1, "the number of characters of a substring")

    def _counts(self, X: Samples) -> list[Counter[Any]]:
        count = sum(max(0, len(x) - self.length + 1) for x in X)
        if count:
            self._expect_memory(count * (self.length + _PER_PART), f"{count:,} substrings of {self.length} characters")
        return [Counter(x[i : i + self.length] for i in range(len(x) - self.length + 1)) for x in X]


@dataclass(eq=False, repr=False)
class Mismatch(OfSequences):
    """Σ_s count(s in x) · count(s in z), counting substrings that differ from s in at most ``mismatches`` characters.

    s runs over all strings of ``length`` letters of the alphabet (Leslie, Eskin, Cohen, Weston and Noble 2004).

    Parameters
    ----------
    length : int ≥ 1
        Of the substrings, in characters.
    mismatches : int ≥ 0
        How many characters may differ; below the length. The work grows with (letters)^mismatches, which times the
        number of ways to choose so many characters of the length may be at most 10,000.
    alphabet : str
        The letters that strings may have.
    normalise : bool
        Divide by √(k(x, x) k(z, z)); the values of a string too short to have a substring stay 0.

    Examples
    --------
    >>> from mercer.kernels import Mismatch
    >>> Mismatch(2, 1, alphabet="ab")(["aa"], ["aa", "ab", "bb"])  # of aa, ab, ba; aa, ab, bb; ab, ba, bb
    array([[3., 2., 2.]])
    """

    length: int = 4
    mismatches: int = 1
    alphabet: str = "ACGT"
    normalise: bool = False

    def _check(self) -> None:
        integer("length", self.length, 1, "the number of characters of a substring")
        integer("mismatches", self.mismatches, 0, "the number of characters that may differ")
        if self.mismatches >= self.length:
            raise ValueError(
                f"mismatches={self.mismatches} must be below length={self.length}, or everything would match"
            )
        letters = self.alphabet
        if not isinstance(letters, str) or not letters or len(set(letters)) < len(letters):
            raise ValueError(f"alphabet={letters!r} must be a string of different letters")
        if self._n_near() > _MOST_NEAR:
            raise ValueError(
                f"length={self.length}, mismatches={self.mismatches} and {len(letters)} letters: each substring would "
                f"be taken for letters^mismatches times C(length, mismatches) others, more than {_MOST_NEAR:,}; lower "
                "the mismatches or the length"
            )

    def _n_near(self) -> int:
        """At most so many strings are within the mismatches of another; anything above the most allowed is one."""
        few = min(int(self.mismatches), int(self.length - self.mismatches), 15)  # C(30, 15) is far above
        letters = len(self.alphabet) ** min(int(self.mismatches), 14)
        return int(letters * math.comb(int(self.length), few))

    def _counts(self, X: Samples) -> list[Counter[Any]]:
        for x in X:
            if unknown := set(x) - set(self.alphabet):
                raise ValueError(
                    f"{min(unknown)!r}, in {x!r:.60}, is not a letter of alphabet={self.alphabet!r}; name all letters"
                )
        counts = []
        exact, near = Spectrum(self.length)._counts(X), self._n_near()
        total = near * sum(map(len, exact))
        self._expect_memory(total * (self.length + _PER_PART), f"{total:,} strings of {self.length} characters")
        alike = _few_within if near <= _FEW_NEAR else _within
        for parts in exact:
            counts.append(found := Counter[Any]())
            for part, count in parts.items():
                for other in alike(part, self.mismatches, self.alphabet):
                    found[other] += count
        return counts


@lru_cache(maxsize=1 << 14)
def _few_within(part: str, mismatches: int, alphabet: str) -> tuple[str, ...]:
    return _within(part, mismatches, alphabet)


def _within(part: str, mismatches: int, alphabet: str) -> tuple[str, ...]:
    """All strings that differ from this one in at most so many characters."""
    changed = (
        product(*(alphabet if place in places else letter for place, letter in enumerate(part)))
        for places in combinations(range(len(part)), mismatches)
    )
    return tuple({"".join(letters) for some in changed for letters in some})


@dataclass(eq=False, repr=False)
class Substrings(OfSequences):
    """Σ_s decay^|s| count(s in x) · count(s in z) over all substrings s, or those of at most ``longest`` characters.

    With a decay of 1 and ``longest`` this is the bounded range kernel, without ``longest`` the constant one
    (Vishwanathan and Smola 2002).

    Parameters
    ----------
    longest : int ≥ 1, optional
        Of the substrings, in characters; None for no limit.
    decay : float > 0
        What a substring counts for each of its characters.
    normalise : bool
        Divide by √(k(x, x) k(z, z)); the values of an empty string stay 0.

    Examples
    --------
    >>> from mercer.kernels import Substrings
    >>> Substrings()(["banana"], ["ban", "nab"])  # of b, a, n, ba, an, ban; of n, a, b, na
    array([[10.,  8.]])
    >>> Substrings(longest=1, decay=0.5)(["banana"], ["ban", "nab"])
    array([[3., 3.]])
    """

    longest: int | None = None
    decay: float = 1.0
    normalise: bool = False

    def _check(self) -> None:
        if self.longest is not None:
            integer("longest", self.longest, 1, "the number of characters of a substring")
        if positive("decay", self.decay) < _SMALLEST_WEIGHT:
            raise ValueError(f"decay={self.decay!r} must be at least {_SMALLEST_WEIGHT:g}, or values lose digits")

    def _weights(self, X: Samples) -> Floats:
        """decay^l of all lengths l, from 1 on."""
        most = _longest(X)
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(float(self.decay) ** np.arange(1, min(most, self.longest or most) + 1))

    def _sums(self, X: Samples, Z: Samples) -> Floats:
        out = np.zeros((len(X), len(Z)))
        for length, weight in enumerate(self._weights(X), 1):
            part = Spectrum(length)._sums(X, Z)
            if Z is X:
                np.fill_diagonal(part, 0.0)
            if not part.any():  # and so for all longer ones
                break
            out += weight * part
        if Z is X:
            np.fill_diagonal(out, self._own_sums(X))
        return out

    def _own_sums(self, X: Samples) -> Floats:
        out = np.zeros(len(X))
        for i, x in enumerate(X):
            weights = self._weights([x])
            squares = np.arange(len(x), len(x) - len(weights), -1, dtype=np.float64)  # as if all parts were different
            for length in range(1, len(weights) + 1):
                own = float(Spectrum(length)._own_sums([x])[0])
                if own == squares[length - 1]:  # and so for all longer ones
                    break
                squares[length - 1] = own
            with np.errstate(over="ignore"):  # whoever asked for the values tells it
                out[i] = weights @ squares
        return out

    def _roundings(self, X: Samples) -> int:
        return 0 if self.decay == 1 else 2 * len(self._weights(X)) + 8


@dataclass(eq=False, repr=False)
class Subsequences(OfSequences):
    """Σ_s Σ decay^(span of s in x + span of s in z) over all subsequences s of ``length`` characters, gaps allowed.

    The inner sum is over all places at which s occurs, and a span counts the gaps too (Lodhi et al. 2002).

    Parameters
    ----------
    length : int ≥ 1
        Of the subsequences, in characters.
    decay : float, above 0 and at most 1
        What an occurrence counts for each character from its first to its last.
    normalise : bool
        Divide by √(k(x, x) k(z, z)); the values of a string too short to have a subsequence stay 0.

    Examples
    --------
    >>> from mercer.kernels import Subsequences
    >>> Subsequences(2, decay=0.5)(["cat"], ["car", "cat"])  # λ⁴; 2λ⁴ + λ⁶
    array([[0.0625  , 0.140625]])
    """

    length: int = 3
    decay: float = 0.5
    normalise: bool = False

    def _check(self) -> None:
        integer("length", self.length, 1, "the number of characters of a subsequence")
        if positive("decay", self.decay) > 1:
            raise ValueError(f"decay={self.decay!r} must be at most 1, or gaps would be worth more than matches")
        if float(self.decay) ** (2 * self.length) < _SMALLEST_WEIGHT:
            raise ValueError(
                f"decay={self.decay!r} to the power 2·length={2 * self.length} is below {_SMALLEST_WEIGHT:g}, and "
                "values would lose digits; raise the decay, or shorten the subsequences"
            )

    def _sums(self, X: Samples, Z: Samples) -> Floats:
        out = np.zeros((len(X), len(Z)))
        if self.length > min(_longest(X), _longest(Z)):
            return out
        per_row = 32 * (_longest(Z) + 1) * len(Z) * (int(self.length) + 1)
        self._expect_memory(per_row, f"{self.length} lengths of {len(Z):,} strings of up to {_longest(Z):,} characters")
        z = _padded(Z, 1)
        for rows in row_blocks(len(X), per_row):
            out[rows] = self._of_pairs(_padded(X[rows], 2)[:, None], z[None])
        return out

    def _own_sums(self, X: Samples) -> Floats:
        if self.length > (longest := _longest(X)):
            return np.zeros(len(X))
        rows = min(len(X), DIAGONAL_ROWS)
        self._expect_memory(
            32 * rows * (longest + 1) * (int(self.length) + 1), f"{self.length} lengths of {rows} strings"
        )
        return in_row_blocks(lambda rows: self._of_pairs(_padded(rows, 1), _padded(rows, 2)), X, DIAGONAL_ROWS)

    def _of_pairs(self, x: NDArray[Any], z: NDArray[Any]) -> Floats:
        """Lodhi's recursion over the characters of x and z, the last axes, for all pairs at a time.

        tails[p][j] is K'_p: of p characters matched in x up to now and in z before j, counted up to both ends.
        """
        lam, p, m = float(self.decay), int(self.length), z.shape[-1]
        pairs = np.broadcast_shapes(x.shape[:-1], z.shape[:-1])
        tails = [np.ones((m + 1, *(1 for _ in pairs))), *(np.zeros((m + 1, *pairs)) for _ in range(1, p))]
        total = np.zeros(pairs)
        for i in range(x.shape[-1]):
            equal = np.moveaxis(x[..., i, None] == z, -1, 0)
            total += lam * lam * (equal * tails[p - 1][:-1]).sum(axis=0)
            for q in range(p - 1, 0, -1):  # K'_q of i needs K'_{q−1} of i − 1
                ends, run = equal * (lam * lam * tails[q - 1][:-1]), np.zeros(pairs)
                tails[q] *= lam
                for j in range(m):
                    run *= lam
                    run += ends[j]
                    tails[q][j + 1] += run
        return total

    def _roundings(self, X: Samples) -> int:
        longest = _longest(X)
        return 16 * longest + 8 * min(int(self.length), longest + 1)


def _longest(strings: Samples) -> int:
    """Number of characters of the longest string; 0 of none."""
    return max(map(len, strings), default=0)


def _padded(strings: Samples, filling: int) -> NDArray[Any]:
    """Characters as numbers, a row for each string; what fills a row is no character and no other filling."""
    codes = np.full((len(strings), _longest(strings)), -filling, dtype=np.int64)
    for i, one in enumerate(strings):
        codes[i, : len(one)] = [ord(character) for character in one]
    return codes
