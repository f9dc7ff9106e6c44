"""Rademacher complexity: how well a class of functions can fit random signs.

    R̂(F) = E_σ sup over f in F of |2/n Σ σ_i f(x_i)|        R(F) = E of R̂(F) over samples

The supremum has a closed form for the ball of an RKHS, {⟨w, φ(x)⟩ : ‖w‖ ≤ B}: it is 2B/n √(σ'Kσ), and by Jensen's
inequality R̂ ≤ 2B/n √(tr K) (Igel, theorem 4.5). For finitely many functions it is a maximum. Signs are drawn by Monte
Carlo, or all of them are enumerated if there are few samples.

The seven rules of Igel's theorem 2.1 derive, from bounds on R̂(F), a bound on R̂ of a class built from F, on the same
samples. They are methods of `ComplexityBound`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mercer.notes.theory.bound import IID, Assumption, Bound, bound_by_sum, deviation, euclidean_norm, read_numbers
from mercer.runtime.parameters import Seed, finite, integer, not_negative
from mercer.runtime.shared_docs import shared_docs
from mercer.samples.arrays import Floats, row_blocks

_RULES = "Igel, theorem 2.1"


@dataclass(frozen=True, repr=False)
class ComplexityBound(Bound):
    """Upper bound on R̂ of a class F, with rules for classes built from F (Igel, theorem 2.1).

    It is a `Bound`. Two of the seven rules do not change the value: it also bounds R̂ of every subclass of F and of its
    convex hull, whose R̂ equals that of F.

    Examples
    --------
    >>> from mercer.notes.theory import trace_bound
    >>> ball = trace_bound(100.0, 100)
    >>> ball.value, ball.multiple(-2.0).value, ball.contraction(0.5).value, ball.union(ball).value
    (0.2, 0.4, 0.2, 0.4)
    """

    def multiple(self, factor: float) -> ComplexityBound:
        """Bound R̂ of a multiple: R̂(cF) = |c| R̂(F).

        Parameters
        ----------
        factor : float
            Factor c.

        Returns
        -------
        ComplexityBound
            Upper bound on R̂ of the derived class.
        """
        return self._derive_bound("R̂ of the multiple", {"|c| R̂(F)": abs(finite("factor", factor)) * self.value})

    def contraction(self, lipschitz: float, *, zero_at_zero: bool | None = None) -> ComplexityBound:
        """Bound R̂ of a composition: R̂(A∘F) ≤ 2L R̂(F) for A with Lipschitz constant L and A(0) = 0.

        Parameters
        ----------
        lipschitz : float
            Lipschitz constant L of A.
        zero_at_zero : bool, optional
            Whether A(0) = 0; None to assume it.

        Returns
        -------
        ComplexityBound
            Upper bound on R̂ of the derived class.
        """
        zero_at_origin = Assumption("the outer function A has A(0) = 0", zero_at_zero)
        value = 2.0 * not_negative("lipschitz", lipschitz) * self.value
        return self._derive_bound("R̂ of the composition", {"2L R̂(F)": value}, zero_at_origin)

    def shift(self, values: ArrayLike) -> ComplexityBound:
        """Bound R̂ of a shifted class: R̂(F + h) ≤ R̂(F) + 2√(Ê h²/n).

        Parameters
        ----------
        values : array
            Values of h on the samples.

        Returns
        -------
        ComplexityBound
            Upper bound on R̂ of the derived class.
        """
        return self._derive_bound("R̂ of the shifted class", {"R̂(F)": self.value, "2√(Ê h²/n)": _shift_term(values)})

    def power(self, target: ArrayLike, q: float) -> ComplexityBound:
        """Bound R̂ of powers: R̂({|f − h|^q}) ≤ 2q (R̂(F) + 2√(Ê h²/n)) if |f − h| ≤ 1.

        Ê h² is the mean over the samples. Igel writes the true expectation here, but the empirical one in the rule for
        shifted classes, from which this rule follows.

        Parameters
        ----------
        target : array
            Values of h on the samples.
        q : float
            Power, at least 1.

        Returns
        -------
        ComplexityBound
            Upper bound on R̂ of the derived class.
        """
        if not q >= 1:
            raise ValueError(f"q={q!r} must be a number of at least 1: |t|^q is not Lipschitz at 0 otherwise")
        closeness = Assumption("no f differs from h by more than 1")
        value = 2.0 * finite("q", q) * (self.value + _shift_term(target))
        return self._derive_bound("R̂ of the powers", {"2q (R̂(F) + 2√(Ê h²/n))": value}, closeness)

    def union(self, *others: ComplexityBound) -> ComplexityBound:
        """Bound R̂ of a union: R̂(∪F_i) ≤ Σ R̂(F_i), where F_1 is this class.

        Parameters
        ----------
        *others : ComplexityBound
            Upper bounds on R̂ of the other classes, on the same samples.

        Returns
        -------
        ComplexityBound
            Upper bound on R̂ of the derived class.
        """
        bounds = (self, *others)
        parts = {f"R̂(F_{i})": bound.value for i, bound in enumerate(bounds, 1)}
        assumptions = tuple(dict.fromkeys(assumption for bound in bounds for assumption in bound.assumptions))
        deltas = [bound.delta for bound in bounds if bound.delta is not None]
        delta = sum(deltas) if deltas else None
        return ComplexityBound("R̂ of the union", sum(parts.values()), parts, assumptions, delta, source=_RULES)

    def _derive_bound(self, quantity: str, parts: Mapping[str, float], *further: Assumption) -> ComplexityBound:
        """Return a bound on R̂ of a class built from F, with further assumptions."""
        assumptions = (*self.assumptions, *further)
        return ComplexityBound(quantity, sum(parts.values()), parts, assumptions, self.delta, source=_RULES)


@dataclass(frozen=True)
class Complexity:
    """Empirical Rademacher complexity, exact or estimated by Monte Carlo.

    Attributes
    ----------
    value : float
        R̂, or its mean over the draws.
    standard_error : float
        Standard error of the mean over the draws; 0 if all sign vectors were enumerated.
    n_draws : int
        Number of sign vectors.
    bound : ComplexityBound or None
        Upper bound on R̂: 2B/n √(tr K) for a ball, Massart's lemma for finitely many functions; None for a ball with a
        bias. Its methods `multiple`, `contraction`, `shift`, `power` and `union` bound R̂ of derived classes.
    """

    value: float
    standard_error: float
    n_draws: int
    bound: ComplexityBound | None = None

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        error = f" ± {self.standard_error:.2g}" if self.standard_error else ""
        text = f"Rademacher complexity R̂ = {self.value:.6g}{error}, from {self.n_draws:,} vectors of signs"
        return text if self.bound is None else f"{text}\n{self.bound}"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))  # in a notebook, and at IPython's prompt


@shared_docs
def ball_complexity(
    K: ArrayLike, *, norm: float = 1.0, bias: float = 0.0, n_draws: int = 1024, random_state: Seed = 0
) -> Complexity:
    """Compute the Rademacher complexity R̂ of {⟨w, φ(x)⟩ + b : ‖w‖ ≤ norm, |b| ≤ bias} on samples.

    Parameters
    ----------
    K : array of shape (n, n)
        Kernel matrix of the samples, positive semi-definite.
    norm : float, default=1.0
        Radius B of the ball: the largest ‖w‖.
    bias : float, default=0.0
        Largest |b|.
    %(vectors of signs)s

    Returns
    -------
    Complexity
        R̂ as `value`, with its `standard_error`, the number of sign vectors `n_draws`, and `bound`: an upper bound on
        R̂ whose methods are the rules for derived classes.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.notes.theory import ball_complexity
    >>> complexity = ball_complexity(np.eye(4), norm=2.0)  # ‖σ‖ is always √n
    >>> complexity.value, complexity.standard_error, complexity.bound.value
    (2.0, 0.0, 2.0)
    """
    K = np.asarray(K, dtype=np.float64)
    if K.ndim != 2 or K.shape[0] != K.shape[1] or len(K) == 0 or not np.isfinite(K).all():
        raise ValueError(f"K must be the square matrix of finite kernel values of at least one sample, not {K.shape}")
    not_negative("norm", norm)
    not_negative("bias", bias)
    n = len(K)

    def supremum(signs: Floats) -> Floats:
        squares = np.einsum("si,si->s", signs @ K, signs)
        return np.asarray(2.0 / n * (norm * np.sqrt(np.maximum(squares, 0.0)) + bias * np.abs(signs.sum(axis=1))))

    value, error, draws = _mean_over_signs(supremum, n, n_draws, random_state)
    return Complexity(value, error, draws, trace_bound(float(np.trace(K)), n, norm=norm) if bias == 0 else None)


@shared_docs
def finite_complexity(values: ArrayLike, *, n_draws: int = 1024, random_state: Seed = 0) -> Complexity:
    """Compute the Rademacher complexity R̂ of finitely many functions from their values on samples.

    Parameters
    ----------
    values : array of shape (n_functions, n)
        Values of each function (row) on each sample (column).
    %(vectors of signs)s

    Returns
    -------
    Complexity
        R̂ as `value`, with its `standard_error`, the number of sign vectors `n_draws`, and `bound`: an upper bound on
        R̂ whose methods are the rules for derived classes.

    Examples
    --------
    >>> from mercer.notes.theory import finite_complexity
    >>> finite_complexity([[1.0, 1.0]]).value  # one function: 2/n·E|Σσ|
    1.0
    """
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2 or table.size == 0 or not np.isfinite(table).all():
        raise ValueError(
            f"values must be finite, with a row per function and a column per sample, not of shape {table.shape}"
        )
    n = table.shape[1]
    mean = _mean_over_signs(lambda s: 2.0 / n * np.abs(s @ table.T).max(axis=1), n, n_draws, random_state)
    largest = max(euclidean_norm(row) for row in table) / math.sqrt(n)
    bound = finite_complexity_bound(len(table), n, largest=largest)
    return Complexity(*mean, replace(bound, assumptions=()))  # the values show that its assumption holds


@shared_docs
def trace_bound(trace: float, n: int, *, norm: float = 1.0) -> ComplexityBound:
    """Bound the complexity R̂ of the ball ‖w‖ ≤ B by 2B/n √(tr K) (Igel, theorem 4.5).

    Parameters
    ----------
    %(trace and n)s
    norm : float, default=1.0
        Radius B of the ball: the largest ‖w‖.

    Returns
    -------
    ComplexityBound
        Upper bound on R̂, with the rules for derived classes as methods: `multiple(c)`, `contraction(L)`, `shift(h)`,
        `power(h, q)` and `union(others)`. The bound also holds for subclasses and for the convex hull.
    """
    integer("n", n, 1, "the number of samples")
    terms = {"2B/n √tr K": 2.0 * not_negative("norm", norm) / n * math.sqrt(not_negative("trace", trace))}
    psd = Assumption("the kernel is positive semi-definite")
    return ComplexityBound("R̂ of the ball", sum(terms.values()), terms, (psd,), source="Igel, theorem 4.5")


def finite_complexity_bound(n_functions: int, n: int, *, largest: float = 1.0) -> ComplexityBound:
    """Bound the complexity R̂ of N functions by 2·max √(2 ln(2N)/n) (Massart's lemma).

    Here max is the largest root mean square of a function on the samples. With N = Φ(d, n), the number of dichotomies,
    the bound is of the order √(d ln(n/d)/n), which links it to the VC dimension. The 2 in the logarithm comes from the
    absolute value in R̂.

    Parameters
    ----------
    n_functions : int
        Number N of functions.
    n : int
        Number of samples.
    largest : float, default=1.0
        Largest root mean square of a function on the samples.

    Returns
    -------
    ComplexityBound
        Upper bound on R̂, with the rules for derived classes as methods: `multiple(c)`, `contraction(L)`, `shift(h)`,
        `power(h, q)` and `union(others)`. The bound also holds for subclasses and for the convex hull.
    """
    integer("n_functions", n_functions, 1, "the number of functions")
    integer("n", n, 1, "the number of samples")
    value = 2.0 * not_negative("largest", largest) * math.sqrt(2.0 * math.log(2 * n_functions) / n)
    largest_size = Assumption(f"every function has a root mean square of at most {largest:g} on the samples")
    terms = {"2·max √(2 ln 2N / n)": value}
    return ComplexityBound("R̂ of the class", value, terms, (largest_size,), source="Massart 2000, lemma 5.2")


@shared_docs
def true_complexity_bound(empirical: float, n: int, *, delta: float = 0.05) -> Bound:
    """Bound the true complexity by R ≤ R̂ + 2√(ln(1/δ)/2n), for functions into [0, 1] (Igel, lemma 2.1).

    Parameters
    ----------
    empirical : float
        R̂ on the samples, or an upper bound on it.
    %(n and delta)s

    Returns
    -------
    Bound
        Upper bound on R.
    """
    terms = {"R̂": not_negative("empirical", empirical), "2√(ln(1/δ)/2n)": 2 * deviation(n, delta, 1)}
    into_unit_interval = Assumption("the functions map into [0, 1]")
    return bound_by_sum("R of the class", terms, (IID, into_unit_interval), delta, 2.0, "Igel, lemma 2.1")


@shared_docs
def expectation_bound(mean: float, complexity: float, n: int, *, delta: float = 0.05, empirical: bool = True) -> Bound:
    """Bound E f by Ê f + R̂ + 3√(ln(2/δ)/2n), uniformly over a class of functions f (Igel, theorem 2.2).

    With the true complexity R, the bound is Ê f + R + √(ln(2/δ)/2n).

    Parameters
    ----------
    mean : float
        Mean Ê f of f over the samples.
    complexity : float
        R̂ on these samples, or an upper bound on it; R itself with ``empirical=False``.
    %(n and delta)s
    empirical : bool, default=True
        Whether `complexity` is R̂ on these samples.

    Returns
    -------
    Bound
        Upper bound on E f.

    Examples
    --------
    >>> from mercer.notes.theory import expectation_bound
    >>> print(expectation_bound(0.1, 0.05, n=10_000, delta=0.05))
    E f ≤ 0.190743  with probability 0.95
               0.1  Ê f
              0.05  R̂
          0.040743  3√(ln(2/δ)/2n)
      if the samples are drawn independently from one distribution: assumed
      if the functions map into [0, 1]: assumed
      if the class was fixed before these samples were seen: assumed
    """
    factor, letter = (3, "R̂") if empirical else (1, "R")
    sign = "3√(ln(2/δ)/2n)" if empirical else "√(ln(2/δ)/2n)"
    terms = {
        "Ê f": finite("mean", mean),
        letter: not_negative("complexity", complexity),
        sign: factor * deviation(n, delta, 2),
    }
    into_unit_interval = Assumption("the functions map into [0, 1]")
    assumption = Assumption("the class was fixed before these samples were seen")
    return bound_by_sum("E f", terms, (IID, into_unit_interval, assumption), delta, 1.0, "Igel, theorem 2.2")


def _mean_over_signs(
    supremum: Callable[[Floats], Floats], n: int, n_draws: int, random_state: Seed
) -> tuple[float, float, int]:
    """Return the mean of a function over sign vectors, its standard error, and the number of vectors."""
    integer("n_draws", n_draws, 2, "a standard error needs two draws")
    if 2**n <= n_draws:
        all_signs = np.array(list(itertools.product((-1.0, 1.0), repeat=n)))
        return float(supremum(all_signs).mean()), 0.0, len(all_signs)
    rng = np.random.default_rng(random_state)
    blocks = row_blocks(n_draws, 24 * n)  # the signs, as drawn and as floats, and their product with K
    values = np.concatenate([supremum(rng.choice((-1.0, 1.0), size=(b.stop - b.start, n))) for b in blocks])
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(n_draws)), n_draws


def _shift_term(values: ArrayLike) -> float:
    """Return the term 2√(Ê h²/n) from the values of h on the n samples."""
    h = read_numbers(values, "h must have one finite value per sample")
    return 2.0 * euclidean_norm(h) / len(h)
