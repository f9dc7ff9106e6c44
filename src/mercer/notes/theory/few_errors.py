"""Planes with as few errors as possible (Mozharovskyi, the soft margin), and what stands in for them.

The fewest errors are NP-complete to find. Rows that no plane separates hold a small set that none does: by Gordan's
theorem Σ λ_i y_i(x_i, 1) = 0 with λ ≥ 0, λ ≠ 0, and d + 2 rows are enough for that. Every plane errs on one row of
every such set at least. So a smallest set of rows that meets all sets known so far is a lower bound, found by an
integer program. Where a plane separates the other rows it is the answer, where not they hold a set more. Each set is
proven in rational numbers, and each plane with a bound on its rounding.

Soft margins stand in for it:

    minimise  ½‖w‖² + C·F(Σ ξ_i^σ),    ξ_i = max(0, 1 − y_i f(x_i))

Σ ξ^σ tends to the number of samples with slack as σ falls to 0. At σ = 1, with F convex and increasing, the minimiser
is the soft margin with the price C·F′(Σξ), and since F lies above its tangent at any S, the optimum is at least

    min[½‖w‖² + C·F′(S)Σξ] + C[F(S) − F′(S)S]

Below 1 the problem is not convex. Weights σξ^(σ−1) on the slacks lower it step by step to a local minimum.
"""

from __future__ import annotations

import math
import time
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, sparse
from sklearn.base import clone

from mercer.estimators import SVC
from mercer.kernels.names import KernelLike
from mercer.notes.theory.risks import sample_losses
from mercer.problems.penalties import PENALTIES, Own, Penalty, check_penalty
from mercer.runtime.parameters import positive, share
from mercer.runtime.shared_docs import shared_docs
from mercer.samples.arrays import Flags, Floats, Indices, freeze, gamma, host
from mercer.samples.engine import on_host
from mercer.samples.labels import read_signs

# Each set of rows without a plane is proven in rational numbers, a step of which takes the square of the dimension.
_MOST_FEATURES = 50
# What the integer program's bound may miss an integer by.
_ALMOST = 1e-6
# A margin of a plane with weights of at most 1 that may be rounding.
_NO_MARGIN = 1e-9
# Slacks that a solver may leave; those that are weighed as if they were larger; and that of a row that is given up.
_NO_SLACK, _SMALL_SLACK, _GIVEN_UP = 1e-6, 1e-3, 1e3
# Steps end when the value falls by no more than this share.
_SMALL_FALL, _MOST_STEPS = 1e-6, 100
_TINY = 1e-300


class FewestErrors(NamedTuple):
    """The errors of the best plane that was found, and how few any plane must make.

    Attributes
    ----------
    rows : array of int
        The samples on its wrong side, or on itself: `SVC` with C=inf separates the others.
    least : int
        No plane makes fewer errors: `len(rows)`, if the search came to its end.
    """

    rows: Indices
    least: int

    @property
    def proven(self) -> bool:
        """Whether no plane makes fewer errors than this one."""
        return len(self.rows) == self.least


def fewest_errors(X: ArrayLike, y: ArrayLike, *, bias: bool = True, max_time: float = 10.0) -> FewestErrors:
    """A plane with as few errors as possible, with a lower bound on them.

    Parameters
    ----------
    X : array of shape (n, d)
        The samples, of at most 50 features. For the planes of a kernel, give its features (`mercer.features`).
    y : array of n labels
        Of two classes.
    bias : bool, default=True
        Whether the plane may miss the origin.
    max_time : float, default=10.0
        Seconds after which the search ends with what it has.

    Returns
    -------
    FewestErrors
        The `rows` on the plane's wrong side or on itself, `least`, below which no plane gets, and `proven`, whether
        they are as many.

    Examples
    --------
    >>> from mercer.notes.theory import fewest_errors
    >>> found = fewest_errors([[0.0], [1.0], [2.0], [3.0]], [-1, 1, -1, 1])
    >>> len(found.rows), found.least, found.proven
    (1, 1, True)
    """
    samples, labels = np.asarray(host(X), dtype=np.float64), read_signs(on_host(y))
    deadline = time.monotonic() + positive("max_time", max_time)
    if samples.ndim != 2 or not len(samples) or labels.shape != (len(samples),) or not np.isfinite(samples).all():
        raise ValueError(
            f"X must be finite rows with a label each, at least one; the shapes are {samples.shape} and {labels.shape}"
        )
    if samples.shape[1] > _MOST_FEATURES:
        raise ValueError(
            f"X has {samples.shape[1]} features, but proofs in rational numbers are for {_MOST_FEATURES} at most; take "
            "fewer, for example the first components of KernelPCA"
        )
    if bias:
        samples = _centred(samples)
    # One coordinate more is the bias, and ⟨w, row⟩ > 0 asks for a plane. Powers of two change no digit, but of numbers
    # that they make too small; a column that has such stays as it is.
    signed = labels[:, None] * (np.column_stack([samples, np.ones(len(samples))]) if bias else samples)
    scale = np.exp2(-np.ceil(np.log2(np.maximum(np.abs(signed).max(axis=0), 1e-300))))
    scale = np.where((signed * scale / scale == signed).all(axis=0), scale, 1.0)
    rows, least = _Search(signed * scale, deadline).run()
    return FewestErrors(freeze(rows), least)


def _centred(X: Floats) -> Floats:
    """X around its medians, in the columns where that loses no digit."""
    centre = np.median(X, axis=0)
    moved = X - centre
    back = moved - X
    lost = (X - (moved - back)) - (centre + back)  # exactly what rounding took (Knuth's TwoSum)
    return np.where(lost.any(axis=0), X, moved)


class _Search:
    """Sets of rows that no plane separates, and smallest sets of rows that meet all of them."""

    def __init__(self, signed: Floats, deadline: float) -> None:
        self._signed, self._deadline = signed, deadline
        self._sets: list[Indices] = []
        self._best: Indices = np.arange(len(signed))

    def run(self) -> tuple[Indices, int]:
        least = 0
        while time.monotonic() < self._deadline:
            out, bound = self._smallest()
            least = max(least, bound)
            known = len(self._sets)
            self._more_sets(np.flatnonzero(~out))
            if len(self._best) <= least or len(self._sets) == known:
                break
        return self._best, least

    def _smallest(self) -> tuple[Flags, int]:
        """The rows of a smallest set that meets all known ones, and a lower bound on its size."""
        n = len(self._signed)
        if not self._sets:
            return np.zeros(n, dtype=bool), 0
        columns = np.concatenate(self._sets)
        starts = np.concatenate([[0], np.cumsum([len(one) for one in self._sets])])
        meets = sparse.csr_array((np.ones(len(columns)), columns, starts), (len(self._sets), n))
        found = optimize.milp(
            np.ones(n),
            integrality=np.ones(n, dtype=np.int64),
            bounds=optimize.Bounds(0, 1),
            constraints=optimize.LinearConstraint(meets, 1, np.inf),
            options={"time_limit": max(0.1, self._deadline - time.monotonic()), "mip_rel_gap": 0.0},
        )
        bound = found.get("mip_dual_bound")
        least = 0 if bound is None or not math.isfinite(bound) else math.ceil(bound - _ALMOST)
        return (np.zeros(n, dtype=bool) if found.x is None else found.x > 0.5), least

    def _more_sets(self, rows: Indices) -> None:
        """Sets among these rows that share none, until a plane separates what is left."""
        while len(rows) and time.monotonic() < self._deadline:
            w, weights, margin = _widest(self._signed[rows])
            self._keep(w)
            if margin > _NO_MARGIN:
                return
            some = rows[_proven_apart(self._signed[rows], weights)]
            if not len(some):
                return
            self._sets.append(some)
            rows = np.setdiff1d(rows, some)

    def _keep(self, w: Floats) -> None:
        sure = self._signed @ w > gamma(len(w) + 4) * (np.abs(self._signed) @ np.abs(w)) + _TINY
        wrong = np.flatnonzero(~sure)
        if len(wrong) < len(self._best):
            self._best = wrong


def _widest(signed: Floats) -> tuple[Floats, Floats, float]:
    """The w of entries up to 1 with the largest least ⟨w, row⟩, the rows' weights in the dual, and that margin."""
    n, d = signed.shape
    found: Any = optimize.linprog(
        np.append(np.zeros(d), -1.0),
        A_ub=np.column_stack([-signed, np.ones(n)]),
        b_ub=np.zeros(n),
        bounds=[(-1, 1)] * d + [(None, None)],
        method="highs-ds",  # whose weights are those of a corner, and so few
    )
    if found.status != 0:
        return np.zeros(d), np.zeros(n), 0.0
    return found.x[:d], -found.ineqlin.marginals, -float(found.fun)


def _proven_apart(signed: Floats, weights: Floats) -> Indices:
    """Rows with Σ λ_i row_i = 0 for some λ > 0, exactly, among those that have weight; none if there are no such."""
    some = np.flatnonzero(weights > 1e-9 * weights.max(initial=0.0))
    if not 0 < len(some) <= signed.shape[1] + 1:
        return some[:0]
    null = _null_vector([[Fraction(x) for x in signed[some, k].tolist()] for k in range(signed.shape[1])], len(some))
    if null is None or (min(null) < 0 < max(null)):
        return some[:0]
    return some[[value != 0 for value in null]]


def _null_vector(A: list[list[Fraction]], k: int) -> list[Fraction] | None:
    """The x with Ax = 0 whose last free entry is 1, by elimination; None where x = 0 is the only one."""
    pivots: list[int] = []
    for column in range(k):
        row = next((r for r in range(len(pivots), len(A)) if A[r][column]), None)
        if row is None:
            continue
        top = len(pivots)
        A[top], A[row] = A[row], A[top]
        A[top] = [value / A[top][column] for value in A[top]]
        for r in range(len(A)):
            if r != top and A[r][column]:
                A[r] = [a - A[r][column] * b for a, b in zip(A[r], A[top], strict=True)]
        pivots.append(column)
    free = [column for column in range(k) if column not in pivots]
    if not free:
        return None
    x = [Fraction(0)] * k
    x[free[-1]] = Fraction(1)
    for r, column in enumerate(pivots):
        x[column] = -A[r][free[-1]]
    return x


class SlackPower(NamedTuple):
    """What `least_slack_power` found.

    Attributes
    ----------
    model : SVC
        The machine.
    value : float
        ½‖w‖² + C·F(Σ ξ^σ) at it. Slacks below 10⁻⁶, which a solver leaves where there should be none, count as 0.
    bound : float
        A lower bound on the least value of all machines; −∞ for σ < 1.
    """

    model: Any
    value: float
    bound: float


@shared_docs
def least_slack_power(
    X: Any,
    y: ArrayLike,
    *,
    kernel: KernelLike = "rbf",
    degree: int = 3,
    gamma: float | str = "scale",
    coef0: float = 0.0,
    C: float = 1.0,
    power: float = 1.0,
    outer: Penalty | None = None,
    start: ArrayLike | None = None,
) -> SlackPower:
    """A machine with a small ½‖w‖² + C·F(Σ ξ_i^σ): the least one at σ = 1, a local minimum below.

    Parameters
    ----------
    X : array, CSR matrix or list
        The samples.
    y : array of n labels
        Of two classes.
    %(kernel)s
    C : float, default=1.0
        The price of slack.
    power : float, default=1.0
        σ, above 0 and at most 1. `SVC` with slack="l2" has σ = 2, and `KernelMachine` takes a loss with any other.
    outer : object, optional
        F, with value(u) and derivative(u), increasing and convex for u ≥ 0; by default F(u) = u.
    start : array of int, optional
        For σ < 1, rows that are given up first, such as those of `fewest_errors`; by default those of σ = 1.

    Returns
    -------
    SlackPower
        Its `model`, an `SVC`; the `value` at it, for which slacks below 10⁻⁶ count as 0; and `bound`, a lower bound on
        the least value of all machines, −∞ for σ < 1. Σ ξ^σ is n times ``risk(y, f, loss="hinge", power=σ)``.

    Examples
    --------
    >>> from mercer.notes.theory import fewest_errors, least_slack_power
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [9.0]], [-1, -1, 1, 1, -1]
    >>> found = least_slack_power(X, y, kernel="linear", C=10.0, power=0.1, start=fewest_errors(X, y).rows)
    >>> (found.model.predict(X) != y).sum()
    np.int64(1)
    """
    price, sigma = positive("C", C), share("power", power, whole=True)
    F: Penalty = PENALTIES["norm"] if outer is None else outer  # F(u) = u
    if not isinstance(F, Penalty):
        raise TypeError(f"outer={outer!r} must be an object with value(u) and derivative(u)")
    if outer is not None:
        F = Own(F)
        check_penalty(F)
    labels = read_signs(on_host(y))
    machine = SVC(kernel=kernel, degree=degree, gamma=gamma, coef0=coef0, C=1.0, tol=1e-7, gap_tol=1e-8)

    def fit(prices: Any) -> tuple[Any, Floats]:
        """The soft margin with these prices, and its slacks."""
        model = clone(machine).fit(X, labels, sample_weight=np.broadcast_to(prices, labels.shape))
        slack = sample_losses(labels, model.decision_function(X), loss="hinge")
        return model, np.where(slack < _NO_SLACK, 0.0, slack)

    def value(model: Any, slack: Floats) -> float:
        total = float(np.sum(slack[slack > 0] ** sigma))
        return 0.5 * float(np.ravel(model.rkhs_norm_)[0]) ** 2 + price * float(F.value(total))

    best, slack, bound = _least_convex(fit, F, price, 2.0 * min((labels > 0).sum(), (labels < 0).sum()))
    least = value(best, slack)
    if sigma == 1:
        return SlackPower(best, least, bound)
    if start is not None:
        slack, least = np.zeros(len(labels)), math.inf
        slack[np.asarray(start, dtype=np.intp)] = _GIVEN_UP
    for _ in range(_MOST_STEPS):
        slope = float(F.derivative(float(np.sum(slack**sigma))))
        model, slack = fit(price * slope * sigma * np.maximum(slack, _SMALL_SLACK) ** (sigma - 1))
        last, new = least, value(model, slack)
        if new < least:
            best, least = model, new
        if not new < last * (1 - _SMALL_FALL):
            break
    return SlackPower(best, least, -math.inf)


def _least_convex(fit: Any, F: Penalty, C: float, most: float) -> tuple[Any, Floats, float]:
    """The minimiser of ½‖w‖² + C·F(Σξ), its slacks, and a lower bound; Σξ is at most `most`, that of w = 0.

    The price is C·F′(Σξ). As a price grows Σξ falls, and so does F′ of it: they meet once.
    """

    def off(x: float) -> float:
        return x - math.log(C * max(float(F.derivative(float(fit(math.exp(x))[1].sum()))), _TINY))

    high = C * float(F.derivative(most))
    if not math.isfinite(high):
        raise ValueError(
            f"outer.derivative({most:g}) is {high / C:g}: Σξ is {most:g} at w = 0, and F needs a slope there; use a "
            "flatter F, such as one of a share of u"
        )
    low = max(C * float(F.derivative(0.0)), 1e-12 * high)
    price, total = low, 0.0
    if low < high * (1 - _ALMOST):  # a little more at both ends: slacks are known to some digits only
        x = optimize.brentq(off, math.log(low) - 1e-3, math.log(high) + 1e-3, xtol=1e-9, rtol=1e-12)
        total = float(fit(math.exp(x))[1].sum())
        price = C * max(float(F.derivative(total)), _TINY)
    model, slack = fit(price)
    top, slope = C * float(F.value(total)), C * float(F.derivative(total)) * total
    dual = model.certificate_.dual
    return model, slack, dual + top - slope - 1e-14 * (abs(dual) + abs(top) + abs(slope))
