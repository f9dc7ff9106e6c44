"""Record of a textbook algorithm: the problem, every step, and the result."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from mercer.runtime.optional import require
from mercer.runtime.shared_docs import shared_docs
from mercer.samples.arrays import Flags, Floats, freeze
from mercer.samples.labels import read_signs

if TYPE_CHECKING:
    from mercer.inspection.displays import PathDisplay

# Largest |Σyα|, as a share of Σα, that counts as 0: solvers leave a rounding error.
_BALANCED = 1e-8


@dataclass(frozen=True, eq=False)
class Step:
    """One step of an algorithm.

    Attributes
    ----------
    chosen : tuple of int
        Working set: the indices of the samples whose α changed.
    size : float
        Step length λ along the direction; 1 for a step to the solution of a subproblem.
    clipped : bool
        Whether the box constraints shortened the step.
    gain : float
        Increase of the dual value.
    dual : float
        Dual value after the step.
    violation : float
        KKT violation after the step: the largest y_ig_i over I_up minus the smallest over I_down.
    b : float
        Bias after the step.
    alpha : array
        Dual variables after the step.
    """

    chosen: tuple[int, ...]
    size: float
    clipped: bool
    gain: float
    dual: float
    violation: float
    b: float
    alpha: Floats


@dataclass(frozen=True, eq=False)
class SmallProblem:
    """Soft margin dual: maximise Σα − ½ΣΣ α_iα_jy_iy_jK_ij subject to 0 ≤ α ≤ C and, with a bias, Σα_iy_i = 0.

    Parameters
    ----------
    K : array of shape (n, n)
        Kernel matrix.
    y : array of shape (n,)
        Labels of two classes; the larger one counts as +1, the other as −1.
    C : float
        Penalty for slack; inf for the hard margin.
    bias : bool, default=True
        Whether there is a free bias.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.notes.teaching import SmallProblem
    >>> problem = SmallProblem(np.array([[4.0, -4.0], [-4.0, 4.0]]), np.array([-1.0, 1.0]), C=1.0)  # x = −2 and 2
    >>> g = problem.gradient(alpha := np.zeros(2))
    >>> up, down = problem.index_sets(alpha)
    >>> g, up, down, problem.b_interval(alpha)  # no b is optimal: 1 > −1
    (array([1., 1.]), array([False,  True]), array([ True, False]), (1.0, -1.0))
    """

    K: Floats
    y: Floats
    C: float
    bias: bool = True

    def __post_init__(self) -> None:
        K, y = np.asarray(self.K, dtype=np.float64), read_signs(self.y)
        if K.shape != (len(y), len(y)) or not np.isfinite(K).all():
            raise ValueError(
                f"K must have a finite row and column for each of {len(y)} labels, not the shape {K.shape}"
            )
        object.__setattr__(self, "K", K)
        object.__setattr__(self, "y", y)
        if not self.C > 0:
            raise ValueError(f"C={self.C!r} must be above 0; inf is the hard margin")

    @property
    def n(self) -> int:
        """Number of samples."""
        return len(self.y)

    def gradient(self, alpha: Floats) -> Floats:
        """Return the gradient of the dual, g_i = 1 − y_i Σ_j y_jα_jK_ij."""
        return np.asarray(1.0 - self.y * (self.K @ (self.y * alpha)))

    def dual(self, alpha: Floats) -> float:
        """Return the dual value at α."""
        beta = self.y * alpha
        return float(alpha.sum() - 0.5 * beta @ (self.K @ beta))

    def read_feasible(self, name: str, values: ArrayLike) -> Floats:
        """Read a feasible α; raise ValueError that names the constraint which the values violate."""
        alpha = np.array(values, dtype=np.float64)
        if alpha.shape != (self.n,) or not np.isfinite(alpha).all():
            raise ValueError(f"{name} must have a finite α for each of {self.n} samples; its shape is {alpha.shape}")
        indices_outside = np.flatnonzero((alpha < 0) | (alpha > self.C))
        if len(indices_outside):
            i = int(indices_outside[0])
            raise ValueError(f"{name} is infeasible: α_{i} = {alpha[i]:g} is not between 0 and C = {self.C:g}; clip it")
        total = float(self.y @ alpha)
        if self.bias and abs(total) > _BALANCED * float(alpha.sum()):
            raise ValueError(
                f"{name} is infeasible: Σ y_iα_i = {total:g} must be 0; the α of the two classes must have equal sums"
            )
        return np.asarray(freeze(alpha))

    def index_sets(self, alpha: Floats) -> tuple[Flags, Flags]:
        """Return I_up and I_down, as masks: which y_iα_i may increase, and which may decrease."""
        may_rise, may_fall = alpha < self.C, alpha > 0
        return np.where(self.y > 0, may_rise, may_fall), np.where(self.y > 0, may_fall, may_rise)

    def violation_and_b(self, alpha: Floats, g: Floats) -> tuple[float, float]:
        """Return the KKT violation and b.

        The violation is the maximum of y_ig_i over I_up minus the minimum over I_down; b is the mean of y_ig_i over
        free α or, if no α is free, midway between the maximum and the minimum. Without a bias, the violation is the
        largest |g_i| of an α that can still move along its gradient, and b is 0.
        """
        if not self.bias:
            increasable, decreasable = g[alpha < self.C], g[alpha > 0]
            return max(0.0, float(increasable.max(initial=0.0)), float(-decreasable.min(initial=0.0))), 0.0
        up, low = self.index_sets(alpha)
        top, bottom = self._ends(alpha, g)
        is_free = up & low
        return max(0.0, top - bottom), float((self.y * g)[is_free].mean()) if is_free.any() else 0.5 * (top + bottom)

    def b_interval(self, alpha: Floats) -> tuple[float, float]:
        """Return the largest y_ig_i over I_up and the smallest over I_down.

        A feasible α is optimal if and only if the first is at most the second: then every b between them fulfils the
        KKT conditions. ValueError is raised for another α.
        """
        feasible = self.read_feasible("alpha", alpha)
        return self._ends(feasible, self.gradient(feasible))

    def _ends(self, alpha: Floats, g: Floats) -> tuple[float, float]:
        up, low = self.index_sets(alpha)
        h = self.y * g
        return float(h[up].max(initial=-math.inf)), float(h[low].min(initial=math.inf))


@dataclass(eq=False, repr=False)
class Steps:
    """Record of a run of a textbook algorithm.

    Attributes
    ----------
    method, rule : str
        Algorithm, and its rule for choosing working sets.
    problem : SmallProblem
        Problem that was solved: K, y and C.
    start : array
        Dual variables before the first step.
    steps : list of Step
        All steps, in order.
    alpha, b, dual
        Final dual variables, bias and dual value.
    converged : bool
        Whether the violation fell to tol.
    """

    method: str
    rule: str
    problem: SmallProblem
    steps: list[Step] = field(default_factory=list)
    converged: bool = False
    start: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.start = np.zeros(self.problem.n)

    def record(
        self,
        alpha: Floats,
        chosen: Sequence[int],
        size: float,
        clipped: bool,
        b: float | None = None,
        feasible: Floats | None = None,
    ) -> Step:
        """Add the step that led to α; `b` is the bias, for an algorithm that computes one itself.

        If α is not feasible, the dual value and the violation are those of `feasible`.
        """
        point = alpha if feasible is None else feasible
        dual, g = self.problem.dual(point), self.problem.gradient(point)
        violation, best_b = self.problem.violation_and_b(point, g)
        gain = dual - self.dual
        rows = tuple(int(i) for i in chosen)
        step = Step(rows, size, clipped, gain, dual, violation, best_b if b is None else b, freeze(alpha.copy()))
        self.steps.append(step)
        return step

    @property
    def alpha(self) -> Floats:
        """Final dual variables."""
        return self.steps[-1].alpha if self.steps else self.start

    @property
    def b(self) -> float:
        """Final bias."""
        if self.steps:
            return self.steps[-1].b
        return self.problem.violation_and_b(self.alpha, self.problem.gradient(self.alpha))[1]

    @property
    def dual(self) -> float:
        """Final dual value."""
        return self.steps[-1].dual if self.steps else self.problem.dual(self.start)

    def __len__(self) -> int:
        return len(self.steps)

    def __repr__(self) -> str:
        end_text = "converged" if self.converged else "not converged"
        return f"Steps({self.method}, {len(self)} steps on {self.problem.n} samples, dual {self.dual:.6g}, {end_text})"

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a row per step."""
        pandas = require("pandas", "Steps.to_frame")
        names = ("chosen", "size", "clipped", "gain", "dual", "violation", "b")
        return pandas.DataFrame({name: [getattr(step, name) for step in self.steps] for name in names})

    def __str__(self) -> str:
        lines = [f"{'step':>5} {'chosen':>12} {'size':>12} {'gain':>12} {'dual':>14} {'violation':>11} {'b':>11}"]
        for k, step in enumerate(self.steps, 1):
            chosen_text = " ".join(map(str, step.chosen[:4])) + (" …" if len(step.chosen) > 4 else "")
            mark = "|" if step.clipped else " "
            numbers = f"{step.gain:12.6g} {step.dual:14.8g} {step.violation:11.4g} {step.b:11.6g}"
            lines.append(f"{k:5} {chosen_text:>12} {step.size:11.6g}{mark} {numbers}")
        end = "converged" if self.converged else "stopped before tol"
        n_steps = f"{len(self)} step{'s' * (len(self) != 1)}"
        return "\n".join([*lines, f"{self.method}, {self.rule or 'all variables'}: {end} after {n_steps}"])

    def plot(self, *axes: Any, **options: Any) -> PathDisplay:
        """Plot the dual value and the violation after each step; see `mercer.displays.PathDisplay.from_steps`."""
        from mercer.inspection.displays import PathDisplay

        return PathDisplay.from_steps(self, *axes, **options)

    @shared_docs
    def film(self, *, interval_ms: float = 200.0, figure: Any = None) -> Any:
        """Animate α and the dual value with matplotlib, for a notebook or `film().save(path)`.

        Parameters
        ----------
        %(film)s

        Returns
        -------
        matplotlib.animation.FuncAnimation
            Animation with a frame per step.
        """
        from mercer.inspection.displays.convergence import film_steps

        return film_steps(self, interval_ms=interval_ms, figure=figure)
