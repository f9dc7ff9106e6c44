"""String kernels: they compare the substrings or subsequences of two strings.

All are inner products of counts, or of weights ≥ 0, of parts of the strings: sums without cancellation.
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
from mercer.samples.engine import EngineSamples, to_engine

# Smallest weight of a part of a string: products of two such weights, and their sums, have full precision in float64.
_SMALLEST_WEIGHT = 1e-100
# Largest number of neighbours of a substring: 6 amino acids with 2 mismatches have 6,000, 10 bases with 3 have 7,680.
_MAX_NEIGHBOURS = 10_000
# Largest number of neighbours of a substring for which the list of neighbours is cached.
_MAX_CACHED_NEIGHBOURS = 256
# Bytes of a string and its count in addition to its characters.
_PER_PART = 128


class StringKernel(Kernel):
    """Base class of kernels Σ_s count(s in x) · count(s in z) over parts s of strings, or of similar sums.

    With `normalise`, values are divided by √(k(x, x) k(z, z)) if that is not 0.
    """

    accepts: Domain = "sequences"
    positive_definite: Answer = "yes"
    strictly_positive_definite = universal = differentiable = positive_values = "no"
    normalise: bool
    _no_gradient = "a string cannot be changed by a small step"

    def _counts(self, X: Samples) -> list[Counter[Any]]:
        """Count the parts of every sample."""
        raise NotImplementedError

    def _sums(self, X: Samples, Z: Samples) -> Floats:
        """Compute a block of unnormalised values; X may be Z."""
        counts = self._counts(X if Z is X else [*X, *Z])
        columns: dict[Any, int] = {}
        indices = np.array([columns.setdefault(s, len(columns)) for parts in counts for s in parts], dtype=np.intp)
        values = np.array([count for parts in counts for count in parts.values()], dtype=np.float64)
        table = sp.csr_array((values, indices, np.cumsum([0, *map(len, counts)])), shape=(len(counts), len(columns)))
        return np.ascontiguousarray((table[: len(X)] @ table[len(counts) - len(Z) :].T).toarray())

    def _diagonal_sums(self, X: Samples) -> Floats:
        """Compute the unnormalised value of every sample with itself."""
        return np.array([sum(count * count for count in parts.values()) for parts in self._counts(X)], dtype=np.float64)

    def _roundings(self, X: Samples) -> int:
        """Return the largest number of successive roundings in a sum; 0 for sums of whole numbers."""
        return 0

    def _check_memory(self, nbytes: int, content: str) -> None:
        """Raise an error if a temporary array would take more than half of the host's memory."""
        if nbytes > physical_memory() / 2:
            raise ValueError(
                f"{self!r} would hold {content} at a time, about {nbytes / 2**30:,.0f} GB, more than half of this "
                "computer's memory; compare shorter strings, or fewer of them, or change the kernel's parameters"
            )

    def _samples(self, X: Samples) -> Samples:
        if isinstance(X, (str, bytes)):
            raise TypeError(f"{self!r} compares the strings of a list, but a single string was given; put it in a list")
        X = to_engine(X)
        if isinstance(X, EngineSamples) or all(isinstance(sample, str) for sample in X):
            return X
        return [self.sequence(sample, f"sample {i}") for i, sample in enumerate(X)]

    def _values(self, X: Samples, Z: Samples) -> Floats:
        self._check()
        out = self._sums(X, Z)
        if self.normalise:
            rows = _roots(self._diagonal_sums(X))
            out /= rows[:, None]
            out /= rows if Z is X else _roots(self._diagonal_sums(Z))
        return out

    def _diag(self, X: Samples) -> Floats:
        self._check()
        totals = self._diagonal_sums(self._samples(X))
        return (totals > 0).astype(np.float64) if self.normalise else totals

    def n_terms(self, X: Samples) -> int:
        """Return the largest number of non-zero terms in a sum over two samples."""
        roundings = 0 if isinstance(X, EngineSamples) else self._roundings(X)
        return 2 * roundings + 8 if self.normalise else roundings

    @property
    def unit_diagonal(self) -> Answer:
        return "depends" if self.normalise else "no"  # "yes" unless a sample has no part


def _roots(squares: Floats) -> Floats:
    """Return the square roots, and 1 for squares that are 0."""
    return np.sqrt(np.where(squares > 0, squares, 1.0))


@dataclass(eq=False, repr=False)
class Spectrum(StringKernel):
    """Spectrum kernel Σ_s count(s in x) · count(s in z) over all substrings s of ``length`` characters.

    See Leslie, Eskin and Noble (2002).

    Parameters
    ----------
    length : int ≥ 1
        Length of the substrings in characters.
    normalise : bool
        Whether to divide by √(k(x, x) k(z, z)); the values of a string that is shorter than ``length`` stay 0.

    Examples
    --------
    >>> from mercer.kernels import Spectrum
    >>> Spectrum(2)(["banana"], ["bandana", "cab"])  # ba, an, na: 1·1 + 2·2 + 2·1
    array([[7., 0.]])
    """

    length: int = 3
    normalise: bool = False

    def _check(self) -> None:
        integer("length", self.length, 1, "it is the number of characters of a substring")

    def _counts(self, X: Samples) -> list[Counter[Any]]:
        count = sum(max(0, len(x) - self.length + 1) for x in X)
        if count:
            self._check_memory(count * (self.length + _PER_PART), f"{count:,} substrings of {self.length} characters")
        return [Counter(x[i : i + self.length] for i in range(len(x) - self.length + 1)) for x in X]


@dataclass(eq=False, repr=False)
class Mismatch(StringKernel):
    """Mismatch kernel Σ_s count(s in x) · count(s in z), where substrings with few mismatches count as s.

    The sum runs over all strings s of ``length`` letters of the alphabet, and substrings that differ from s in at most
    ``mismatches`` characters are counted (Leslie, Eskin, Cohen, Weston and Noble 2004).

    Parameters
    ----------
    length : int ≥ 1
        Length of the substrings in characters.
    mismatches : int ≥ 0
        Largest number of characters that may differ; less than ``length``. The work grows with
        C(length, mismatches) · (number of letters)^mismatches, which may be at most 10,000.
    alphabet : str
        Letters that may occur in the strings.
    normalise : bool
        Whether to divide by √(k(x, x) k(z, z)); the values of a string that is shorter than ``length`` stay 0.

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
        integer("length", self.length, 1, "it is the number of characters of a substring")
        integer("mismatches", self.mismatches, 0, "it is the number of characters that may differ")
        if self.mismatches >= self.length:
            raise ValueError(
                f"mismatches={self.mismatches} must be below length={self.length}, or everything would match"
            )
        letters = self.alphabet
        if not isinstance(letters, str) or not letters or len(set(letters)) < len(letters):
            raise ValueError(f"alphabet={letters!r} must be a string of different letters")
        if self._n_neighbours() > _MAX_NEIGHBOURS:
            raise ValueError(
                f"length={self.length}, mismatches={self.mismatches} and {len(letters)} letters: each substring would "
                f"match letters^mismatches times C(length, mismatches) others, more than {_MAX_NEIGHBOURS:,}; lower "
                "the mismatches or the length"
            )

    def _n_neighbours(self) -> int:
        """Return an upper bound on the number of neighbours, capped at a value above `_MAX_NEIGHBOURS`."""
        n_positions = min(int(self.mismatches), int(self.length - self.mismatches), 15)  # C(30, 15) > `_MAX_NEIGHBOURS`
        letters = len(self.alphabet) ** min(int(self.mismatches), 14)
        return int(letters * math.comb(int(self.length), n_positions))

    def _counts(self, X: Samples) -> list[Counter[Any]]:
        for x in X:
            if unknown := set(x) - set(self.alphabet):
                raise ValueError(
                    f"{min(unknown)!r}, in {x!r:.60}, is not a letter of alphabet={self.alphabet!r}; name all letters"
                )
        counts = []
        exact_counts, n_neighbours = Spectrum(self.length)._counts(X), self._n_neighbours()
        total = n_neighbours * sum(map(len, exact_counts))
        self._check_memory(total * (self.length + _PER_PART), f"{total:,} strings of {self.length} characters")
        neighbours = _cached_neighbours if n_neighbours <= _MAX_CACHED_NEIGHBOURS else _neighbours
        for parts in exact_counts:
            counts.append(with_mismatches := Counter[Any]())
            for part, count in parts.items():
                for other in neighbours(part, self.mismatches, self.alphabet):
                    with_mismatches[other] += count
        return counts


@lru_cache(maxsize=1 << 14)
def _cached_neighbours(part: str, mismatches: int, alphabet: str) -> tuple[str, ...]:
    """Return `_neighbours`, cached for the most recent substrings."""
    return _neighbours(part, mismatches, alphabet)


def _neighbours(part: str, mismatches: int, alphabet: str) -> tuple[str, ...]:
    """Return all strings that differ from a string in at most `mismatches` characters."""
    changed = (
        product(*(alphabet if position in positions else letter for position, letter in enumerate(part)))
        for positions in combinations(range(len(part)), mismatches)
    )
    return tuple({"".join(letters) for strings in changed for letters in strings})


@dataclass(eq=False, repr=False)
class Substrings(StringKernel):
    """Kernel Σ_s decay^|s| count(s in x) · count(s in z) over all substrings s, or those up to a given length.

    With a decay of 1 this is the bounded range kernel if ``longest`` is given, and otherwise the constant kernel of
    Vishwanathan and Smola (2002).

    Parameters
    ----------
    longest : int ≥ 1, optional
        Length of the longest substrings in characters; None for no limit.
    decay : float > 0
        Factor on the weight of a substring for each of its characters.
    normalise : bool
        Whether to divide by √(k(x, x) k(z, z)); the values of an empty string stay 0.

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
            integer("longest", self.longest, 1, "it is the number of characters of a substring")
        if positive("decay", self.decay) < _SMALLEST_WEIGHT:
            raise ValueError(f"decay={self.decay!r} must be at least {_SMALLEST_WEIGHT:g}, or values lose digits")

    def _weights(self, X: Samples) -> Floats:
        """Return the weights decay^l of all lengths l ≥ 1 that occur in X."""
        longest = _longest(X)
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(float(self.decay) ** np.arange(1, min(longest, self.longest or longest) + 1))

    def _sums(self, X: Samples, Z: Samples) -> Floats:
        out = np.zeros((len(X), len(Z)))
        for length, weight in enumerate(self._weights(X), 1):
            part = Spectrum(length)._sums(X, Z)
            if Z is X:
                np.fill_diagonal(part, 0.0)
            if not part.any():  # longer substrings are not shared either
                break
            out += weight * part
        if Z is X:
            np.fill_diagonal(out, self._diagonal_sums(X))
        return out

    def _diagonal_sums(self, X: Samples) -> Floats:
        out = np.zeros(len(X))
        for i, x in enumerate(X):
            weights = self._weights([x])
            squares = np.arange(len(x), len(x) - len(weights), -1, dtype=np.float64)  # if all parts are different
            for length in range(1, len(weights) + 1):
                sum_of_squares = float(Spectrum(length)._diagonal_sums([x])[0])
                if sum_of_squares == squares[length - 1]:  # all longer parts are different too
                    break
                squares[length - 1] = sum_of_squares
            with np.errstate(over="ignore"):  # the caller reports overflow
                out[i] = weights @ squares
        return out

    def _roundings(self, X: Samples) -> int:
        return 0 if self.decay == 1 else 2 * len(self._weights(X)) + 8


@dataclass(eq=False, repr=False)
class Subsequences(StringKernel):
    """Subsequence kernel Σ_s Σ decay^(span of s in x + span of s in z) over subsequences s of ``length`` characters.

    The inner sum runs over all occurrences of s in x and z, and a span includes the gaps (Lodhi et al. 2002).

    Parameters
    ----------
    length : int ≥ 1
        Length of the subsequences in characters.
    decay : float, above 0 and at most 1
        Factor on the weight of an occurrence for each character from its first to its last.
    normalise : bool
        Whether to divide by √(k(x, x) k(z, z)); the values of a string that is shorter than ``length`` stay 0.

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
        integer("length", self.length, 1, "it is the number of characters of a subsequence")
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
        self._check_memory(per_row, f"{self.length} lengths of {len(Z):,} strings of up to {_longest(Z):,} characters")
        z = _padded_codes(Z, 1)
        for rows in row_blocks(len(X), per_row):
            out[rows] = self._pair_values(_padded_codes(X[rows], 2)[:, None], z[None])
        return out

    def _diagonal_sums(self, X: Samples) -> Floats:
        if self.length > (longest := _longest(X)):
            return np.zeros(len(X))
        rows = min(len(X), DIAGONAL_ROWS)
        self._check_memory(
            32 * rows * (longest + 1) * (int(self.length) + 1), f"{self.length} lengths of {rows} strings"
        )
        return in_row_blocks(
            lambda block: self._pair_values(_padded_codes(block, 1), _padded_codes(block, 2)), X, DIAGONAL_ROWS
        )

    def _pair_values(self, x: NDArray[Any], z: NDArray[Any]) -> Floats:
        """Run the recursion of Lodhi et al. over the characters of x and z, the last axes, for all pairs at once.

        tails[p][j] is their K'_p: the weights of subsequences of p characters in the part of x read so far and in the
        first j characters of z, where spans reach to the ends of both.
        """
        lam, p, m = float(self.decay), int(self.length), z.shape[-1]
        pairs = np.broadcast_shapes(x.shape[:-1], z.shape[:-1])
        tails = [np.ones((m + 1, *(1 for _ in pairs))), *(np.zeros((m + 1, *pairs)) for _ in range(1, p))]
        total = np.zeros(pairs)
        for i in range(x.shape[-1]):
            equal = np.moveaxis(x[..., i, None] == z, -1, 0)
            total += lam * lam * (equal * tails[p - 1][:-1]).sum(axis=0)
            for q in range(p - 1, 0, -1):  # downwards, since K'_q at i needs K'_{q−1} at i − 1
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
    """Return the number of characters of the longest string; 0 if there are no strings."""
    return max(map(len, strings), default=0)


def _padded_codes(strings: Samples, padding: int) -> NDArray[Any]:
    """Return the code points of each string as a row, padded with −`padding`, which equals no code point."""
    codes = np.full((len(strings), _longest(strings)), -padding, dtype=np.int64)
    for i, string in enumerate(strings):
        codes[i, : len(string)] = [ord(character) for character in string]
    return codes
