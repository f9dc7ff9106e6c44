"""Kernels of strings: what substrings and subsequences they share.

All are inner products of counts, or of weights ≥ 0, of parts of the strings: sums in which nothing cancels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations, product
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.arrays import Floats, Indices, Samples, row_blocks
from mercer.engine import PlacedSamples, placed
from mercer.kernels.composite import in_row_blocks
from mercer.kernels.kernel import DIAGONAL_ROWS, Answer, Domain, Kernel
from mercer.parameters import integer, positive

# Weights of parts of strings are at least the square of this: float64 has all digits of them, and of their sums.
_SMALLEST_WEIGHT = 1e-100


class OfSequences(Kernel):
    """A kernel of strings: a sum of products of counts or weights, which may be divided by √(k(x, x) k(z, z))."""

    accepts: Domain = "sequences"
    positive_definite: Answer = "yes"
    strictly_positive_definite = universal = differentiable = positive_values = "no"
    normalise: bool
    _no_gradient = "a string cannot be changed by a small step"

    def _check(self) -> None:
        raise NotImplementedError

    def _sums(self, X: Samples, Z: Samples) -> Floats:
        """The sums of a block, before they are normalised; X may be Z."""
        raise NotImplementedError

    def _own_sums(self, X: Samples) -> Floats:
        """Those of every sample with itself."""
        return np.array([self._sums([x], [x])[0, 0] for x in X])

    def _roundings(self, X: Samples) -> int:
        """How many roundings a sum has, one after another; none of whole numbers."""
        return 0

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

    def diag(self, X: Samples) -> Floats:
        self._check()
        totals = self._own_sums(self._samples(X)).astype(np.float64)
        return (totals > 0).astype(np.float64) if self.normalise else totals

    def n_terms(self, X: Samples) -> int:
        own = 0 if isinstance(X, PlacedSamples) else self._roundings(X)
        return 2 * own + 8 if self.normalise else own

    @property
    def unit_diagonal(self) -> Answer:
        return "depends" if self.normalise else "no"  # "yes" unless a sample has no part


def _roots(squares: Floats) -> Floats:
    return np.sqrt(np.where(squares > 0, squares, 1.0))


def products_of_counts(counts: list[Counter[Any]], others: list[Counter[Any]] | None = None) -> Floats:
    """Σ_s count(s in x)·count(s in z), for all pairs; without others, of these with each other."""
    columns: dict[Any, int] = {}
    left = _count_matrix(counts, columns)
    right = left if others is None else _count_matrix(others, columns)
    left.resize(len(counts), len(columns))
    return np.ascontiguousarray((left @ right.T).toarray())


def _count_matrix(counts: list[Counter[Any]], columns: dict[Any, int]) -> Any:
    """A row for each sample; parts that are new get new columns."""
    indices = [columns.setdefault(part, len(columns)) for found in counts for part in found]
    values = np.array([count for found in counts for count in found.values()], dtype=np.float64)
    ends = np.cumsum([0, *map(len, counts)])
    return sp.csr_array((values, np.array(indices, dtype=np.intp), ends), shape=(len(counts), len(columns)))


class OfCounts(OfSequences):
    """Σ_s count(s in x) · count(s in z) over the parts s that a kernel counts."""

    def _counts(self, sample: str) -> Counter[Any]:
        raise NotImplementedError

    def _sums(self, X: Samples, Z: Samples) -> Floats:
        counts = [self._counts(x) for x in X]
        return products_of_counts(counts, None if Z is X else [self._counts(z) for z in Z])

    def _own_sums(self, X: Samples) -> Floats:
        return np.array([sum(count * count for count in self._counts(x).values()) for x in X], dtype=np.float64)


class Spectrum(OfCounts):
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

    def __init__(self, length: int = 3, normalise: bool = False) -> None:
        self.length, self.normalise = length, normalise
        self._check()

    def _check(self) -> None:
        integer("length", self.length, 1, "the number of characters of a substring")

    def _counts(self, sample: str) -> Counter[Any]:
        return Counter(sample[i : i + self.length] for i in range(len(sample) - self.length + 1))


class Mismatch(OfCounts):
    """Σ_s count(s in x) · count(s in z), counting substrings that differ from s in at most ``mismatches`` characters.

    s runs over all strings of ``length`` letters of the alphabet (Leslie, Eskin, Cohen, Weston and Noble 2004).

    Parameters
    ----------
    length : int ≥ 1
        Of the substrings, in characters.
    mismatches : int ≥ 0
        How many characters may differ; below the length. The work grows with (letters)^mismatches.
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

    def __init__(self, length: int = 4, mismatches: int = 1, alphabet: str = "ACGT", normalise: bool = False) -> None:
        self.length, self.mismatches, self.alphabet, self.normalise = length, mismatches, alphabet, normalise
        self._check()

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

    def _counts(self, sample: str) -> Counter[Any]:
        unknown = set(sample) - set(self.alphabet)
        if unknown:
            raise ValueError(
                f"{min(unknown)!r}, in {sample!r:.60}, is not a letter of alphabet={self.alphabet!r}; name all letters"
            )
        found: Counter[Any] = Counter()
        for part, count in Spectrum(self.length)._counts(sample).items():
            for near in _within(part, self.mismatches, self.alphabet):
                found[near] += count
        return found


@lru_cache(maxsize=1 << 14)
def _within(part: str, mismatches: int, alphabet: str) -> tuple[str, ...]:
    """All strings that differ from this one in at most so many characters, each once."""
    found = []
    for n_changed in range(mismatches + 1):
        for places in combinations(range(len(part)), n_changed):
            for letters in product(*([one for one in alphabet if one != part[place]] for place in places)):
                changed = list(part)
                for place, letter in zip(places, letters, strict=True):
                    changed[place] = letter
                found.append("".join(changed))
    return tuple(found)


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

    def __init__(self, longest: int | None = None, decay: float = 1.0, normalise: bool = False) -> None:
        self.longest, self.decay, self.normalise = longest, decay, normalise
        self._check()

    def _check(self) -> None:
        if self.longest is not None:
            integer("longest", self.longest, 1, "the number of characters of a substring")
        if positive("decay", self.decay) < _SMALLEST_WEIGHT:
            raise ValueError(
                f"decay={self.decay!r} must be at least {_SMALLEST_WEIGHT:g}: smaller ones count for nothing"
            )

    def _sums(self, X: Samples, Z: Samples) -> Floats:
        n, same = len(X), Z is X
        strings = list(X) if same else [*X, *Z]
        parts: list[tuple[Indices, Indices, Floats]] = []
        width = 0
        for length, owner, which in _classes(strings, n, same, self.longest):
            parts.append((owner, which + width, np.full(len(owner), self._weights(length)[-1])))
            width += int(which.max(initial=-1)) + 1
        owner, which, weight = (
            np.concatenate([part[k] for part in parts]) if parts else np.zeros(0, dtype=np.intp) for k in range(3)
        )
        left = owner < n
        right = left if same else ~left
        rows = sp.csr_array((weight[left], (owner[left], which[left])), shape=(n, width))
        columns = sp.csr_array(
            (np.ones(int(right.sum())), (owner[right] - (0 if same else n), which[right])), shape=(len(Z), width)
        )
        out = np.ascontiguousarray((rows @ columns.T).toarray(), dtype=np.float64)
        if same:
            np.fill_diagonal(out, self._own_sums(X))
        return out

    def _own_sums(self, X: Samples) -> Floats:
        """Substrings that occur once in a string are not looked at one by one: they are the rest of all of them."""
        out = np.zeros(len(X))
        for i, x in enumerate(X):
            longest = len(x) if self.longest is None else min(len(x), int(self.longest))
            weights = self._weights(longest)
            squares = np.arange(len(x), len(x) - longest, -1, dtype=np.float64)  # how many substrings there are
            for length, _, which in _classes([x], 1, True, self.longest):
                counts = np.bincount(which).astype(np.float64)
                squares[length - 1] += (counts * counts - counts).sum()
            out[i] = weights @ squares
        return out

    def _weights(self, longest: int) -> Floats:
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(float(self.decay) ** np.arange(1, longest + 1))

    def _roundings(self, X: Samples) -> int:
        longest = max(map(len, X), default=0)
        return 0 if self.decay == 1 else longest * (min(longest, self.longest or longest) + 1) + 8


def _classes(strings: list[str], n: int, same: bool, longest: int | None) -> Iterator[tuple[int, Indices, Indices]]:
    """For each length the places whose substring of that length occurs again: which string, and which class of equals.

    Occurs again means at another place or, unless they are the same, both in the first n strings and in the others.
    Equal substrings of one more character begin with equal ones, so that the classes are divided by the next character.
    """
    text: NDArray[Any] = np.frombuffer("".join(strings).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    lengths = np.array([len(one) for one in strings], dtype=np.intp)
    owner = np.repeat(np.arange(len(strings)), lengths)
    last = np.cumsum(lengths)[owner]
    place, which = np.arange(len(text)), np.zeros(len(text), dtype=np.intp)
    length = 0
    while len(place) and length != longest:
        inside = place + length < last[place]
        place, which = place[inside], which[inside]
        if not len(place):
            return
        code = text[place + length]
        order = np.lexsort((code, which))
        new = np.ones(len(order), dtype=np.intp)
        new[1:] = (np.diff(which[order]) != 0) | (code[order][1:] != code[order][:-1])
        which = np.empty_like(which)
        which[order] = np.cumsum(new) - 1
        counts = np.bincount(which)
        again = counts > 1
        if not same:
            of_first = np.bincount(which, weights=owner[place] < n, minlength=len(counts))
            again = (of_first > 0) & (of_first < counts)
        kept = again[which]
        place, which = place[kept], (np.cumsum(again) - 1)[which[kept]]
        length += 1
        if len(place):
            yield length, owner[place], which


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

    def __init__(self, length: int = 3, decay: float = 0.5, normalise: bool = False) -> None:
        self.length, self.decay, self.normalise = length, decay, normalise
        self._check()

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
        z, out = _padded(Z, 1), np.zeros((len(X), len(Z)))
        for rows in row_blocks(len(X), 32 * z.size * (self.length + 1)):
            out[rows] = self._of_pairs(_padded(X[rows], 2)[:, None], z[None])
        return out

    def _own_sums(self, X: Samples) -> Floats:
        return in_row_blocks(lambda rows: self._of_pairs(_padded(rows, 1), _padded(rows, 2)), X, DIAGONAL_ROWS)

    def _of_pairs(self, x: NDArray[Any], z: NDArray[Any]) -> Floats:
        """Lodhi's recursion over the characters of x and z, the last axes, for all pairs at a time.

        tails[p][j] is K'_p: of p characters matched in x up to now and in z before j, counted up to both ends.
        """
        lam, p, pairs, m = (
            float(self.decay),
            int(self.length),
            np.broadcast_shapes(x.shape[:-1], z.shape[:-1]),
            z.shape[-1],
        )
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
        return 16 * max(map(len, X), default=0) + 8 * int(self.length)


def _padded(strings: Samples, filling: int) -> NDArray[Any]:
    """Characters as numbers, a row for each string; what fills a row is no character and no other filling."""
    codes = np.full((len(strings), max(map(len, strings), default=0)), -filling, dtype=np.int64)
    for i, one in enumerate(strings):
        codes[i, : len(one)] = [ord(character) for character in one]
    return codes
