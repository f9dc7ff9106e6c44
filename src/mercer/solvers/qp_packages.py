"""Quadratic programs by other people's packages: clarabel and piqp (interior points), quadprog (dual active set), osqp.

    minimise  ½ x'Px + q'x    subject to  Ax = totals,  lower ≤ x ≤ upper

An answer is what a package says, and no more: callers move it onto its bounds, and certify it on their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import scipy.sparse as sp

from mercer.arrays import Flags, Floats, Indices
from mercer.optional import require
from mercer.problems.dual_problem import QuadraticProgram
from mercer.solution import Stop, StopReason

# Tolerances for the gap and for feasibility, of problems that were scaled to numbers about 1.
_TOL: Final = 1e-12
# Where clarabel cannot reach the first of these, it ends further from the solution than when it is asked for the next.
_CLARABEL_TOLS: Final = (_TOL, 1e-10, 1e-8)
# osqp takes thousands of cheap steps. Where it finds the right bounds at this tolerance, its polishing gives the rest.
_OSQP_TOL: Final = 1e-8
_OSQP_WORDS: Final[dict[str, StopReason]] = {
    "maximum iterations": "max_iter",
    "time limit": "max_time",
    "solved": "converged",
}
_MOST_STEPS: Final = {"clarabel": 200, "piqp": 500, "osqp": 50_000}
# What is added to the diagonal for quadprog, which needs a definite matrix, as a share of its mean; and how often the
# problem is solved again around the last solution (proximal points), which takes it out again.
_PROXIMAL_SHARE: Final = 1e-8
_PROXIMAL_ROUNDS: Final = 20


@dataclass(frozen=True, eq=False)
class Answer:
    """x, which of its bounds are active, the multipliers b of the equalities, and how it ended.

    At the optimum −(Px + q) = A'b where no bound is active. "converged" is the package's word; x is not a number where
    it found none.
    """

    x: Floats
    at_lower: Flags
    at_upper: Flags
    b: Floats
    steps: int
    reason: StopReason

    def verdict(self, proven: bool) -> StopReason:
        """Why the solve ended, where a certificate says whether it is solved."""
        return "converged" if proven else "stalled" if self.reason == "converged" else self.reason


def solve_program(package: str, program: QuadraticProgram, stop: Stop) -> Answer:
    """The answer of the package of this name."""
    asked = "qp" if package == DEFAULT else f"qp:{package}"
    return PACKAGES[package](require(package, f"solver={asked!r}"), program, stop)


def _by_clarabel(clarabel: Any, program: QuadraticProgram, stop: Stop) -> Answer:
    m, equal = len(program.q), len(program.totals)
    above, below = _finite(program)
    A = sp.csc_matrix(_rows(program, above, below, sign=-1.0))
    right = np.concatenate([program.totals, program.upper[above], -program.lower[below]])
    cones = [clarabel.ZeroConeT(equal)] if equal else []
    if len(above) + len(below):
        cones.append(clarabel.NonnegativeConeT(len(above) + len(below)))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.max_iter = min(_MOST_STEPS["clarabel"], stop.max_iter)
    P, steps = sp.csc_matrix(np.triu(program.P)), 0
    for tol in _CLARABEL_TOLS:
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tol
        if math.isfinite(stop.deadline):
            settings.time_limit = max(1e-3, stop.seconds)
        found = clarabel.DefaultSolver(P, program.q, A, right, cones, settings).solve()
        steps += int(found.iterations)
        if str(found.status) not in ("AlmostSolved", "InsufficientProgress", "NumericalError"):
            break
    price = np.array(found.z)
    active = price[equal:] > np.array(found.s)[equal:]
    at_upper, at_lower = _flags(m, above[active[: len(above)]]), _flags(m, below[active[len(above) :]])
    reasons: dict[str, StopReason] = {"Solved": "converged", "MaxIterations": "max_iter", "MaxTime": "max_time"}
    reason = reasons.get(str(found.status), "stalled")
    return Answer(np.array(found.x), at_lower, at_upper, price[:equal], steps, reason)


def _by_piqp(piqp: Any, program: QuadraticProgram, stop: Stop) -> Answer:
    solver = piqp.DenseSolver()
    settings = solver.settings
    settings.verbose = False
    settings.max_iter = min(_MOST_STEPS["piqp"], stop.max_iter)
    settings.eps_abs = settings.eps_rel = settings.eps_duality_gap_abs = settings.eps_duality_gap_rel = _TOL
    settings.check_duality_gap = True
    sums = (np.asfortranarray(program.A), program.totals) if len(program.totals) else (None, None)
    P = np.asfortranarray(program.P)
    solver.setup(P, program.q, *sums, x_l=program.lower, x_u=program.upper)
    status = solver.solve()
    found = solver.result
    reasons: dict[Any, StopReason] = {piqp.PIQP_SOLVED: "converged", piqp.PIQP_MAX_ITER_REACHED: "max_iter"}
    at_lower, at_upper = (np.array(z) > np.array(s) for z, s in ((found.z_bl, found.s_bl), (found.z_bu, found.s_bu)))
    at_lower, at_upper = at_lower & np.isfinite(program.lower), at_upper & np.isfinite(program.upper)
    b = np.array(found.y) if len(program.totals) else np.empty(0)
    return Answer(np.array(found.x), at_lower, at_upper, b, int(found.info.iter), reasons.get(status, "stalled"))


def _by_osqp(osqp: Any, program: QuadraticProgram, stop: Stop) -> Answer:
    m, equal = len(program.q), len(program.totals)
    boxed = np.flatnonzero(np.isfinite(program.lower) | np.isfinite(program.upper))
    A = sp.csc_matrix(sp.vstack([sp.csr_array(program.A), sp.eye_array(m, format="csr")[boxed]]))
    low = np.concatenate([program.totals, program.lower[boxed]])
    high = np.concatenate([program.totals, program.upper[boxed]])
    solver = osqp.OSQP()
    solver.setup(
        sp.csc_matrix(np.triu(program.P)),
        program.q,
        A,
        low,
        high,
        verbose=False,
        eps_abs=_OSQP_TOL if len(boxed) else _TOL,
        eps_rel=_OSQP_TOL if len(boxed) else _TOL,
        max_iter=max(1, min(_MOST_STEPS["osqp"], stop.max_iter)),
        adaptive_rho_interval=50,  # by default it depends on the time that setting up took
        **({"time_limit": max(1e-3, stop.seconds)} if math.isfinite(stop.deadline) else {}),
    )

    def answer() -> tuple[Answer, bool]:
        found = solver.solve(raise_error=False)
        x, price = _numbers(found.x, m), _numbers(found.y, equal + len(boxed))
        own = price[equal:]
        at_upper = _flags(m, boxed[own > program.upper[boxed] - x[boxed]])
        at_lower = _flags(m, boxed[-own > x[boxed] - program.lower[boxed]])
        said = [reason for words, reason in _OSQP_WORDS.items() if words in str(found.info.status)]
        reason: StopReason = said[0] if said else "stalled"
        active = bool(at_upper.any() or at_lower.any())
        return Answer(x, at_lower, at_upper, price[:equal], int(found.info.iter), reason), active

    found, active = answer()
    if active and found.reason == "converged":  # polishing prints a line where no bound is active
        solver.update_settings(polishing=True)
        polished, _ = answer()
        found = replace(polished, steps=found.steps + polished.steps)
    return found


def _by_quadprog(quadprog: Any, program: QuadraticProgram, stop: Stop) -> Answer:
    """Without limits on steps or time, which quadprog does not have."""
    m, equal = len(program.q), len(program.totals)
    above, below = _finite(program)
    C = -_rows(program, above, below, sign=-1.0).toarray().T
    C[:, :equal] *= -1.0
    right = np.concatenate([program.totals, -program.upper[above], program.lower[below]])
    steps = 0

    def solve(P: Floats, q: Floats) -> tuple[Floats, Floats]:
        nonlocal steps
        given = (C, right, equal) if len(right) else ()
        x, _, _, iterations, price, _ = quadprog.solve_qp(P, -q, *given)
        steps += int(iterations[0])
        return x, price[: len(right)]

    try:
        try:
            x, price = solve(program.P, program.q)
        except ValueError as error:
            if "positive definite" not in str(error):
                raise
            x, price = _proximal(solve, program)
    except ValueError:  # no feasible point, it says, where rounding has hidden it
        nothing = np.zeros(m, dtype=bool)
        return Answer(np.full(m, np.nan), nothing, nothing, np.zeros(equal), max(1, steps), "stalled")
    active = price[equal:] > 0
    at_upper, at_lower = _flags(m, above[active[: len(above)]]), _flags(m, below[active[len(above) :]])
    return Answer(x, at_lower, at_upper, -price[:equal], steps, "converged")


def _proximal(solve: Callable[[Floats, Floats], tuple[Floats, Floats]], program: QuadraticProgram) -> Any:
    """Minimise ½x'Px + q'x + ½r‖x − last‖² until x no longer moves."""
    r = _PROXIMAL_SHARE * (float(np.abs(program.P.diagonal()).mean()) or 1.0)
    definite = program.P + r * np.eye(len(program.q))
    x, price = solve(definite, program.q)
    for _ in range(_PROXIMAL_ROUNDS):
        last = x
        x, price = solve(definite, program.q - r * last)
        if np.abs(x - last).max(initial=0.0) <= _TOL * max(1.0, float(np.abs(x).max(initial=0.0))):
            break
    return x, price


# The package that `solver="qp"` stands for, and all of them by the names that follow "qp:".
DEFAULT: Final = "clarabel"
PACKAGES: Final[dict[str, Callable[[Any, QuadraticProgram, Stop], Answer]]] = {
    "clarabel": _by_clarabel,
    "piqp": _by_piqp,
    "quadprog": _by_quadprog,
    "osqp": _by_osqp,
}
# The words for `solver=` and the package that each stands for.
NAMES: Final = {"qp": DEFAULT, **{f"qp:{name}": name for name in PACKAGES}}


def _finite(program: QuadraticProgram) -> tuple[Indices, Indices]:
    """The variables with an upper bound, and those with a lower one."""
    return np.flatnonzero(np.isfinite(program.upper)), np.flatnonzero(np.isfinite(program.lower))


def _rows(program: QuadraticProgram, above: Indices, below: Indices, sign: float) -> Any:
    """The equalities, then x of the variables with an upper bound, then `sign` times those with a lower one."""
    eye = sp.eye_array(len(program.q), format="csr")
    return sp.vstack([sp.csr_array(program.A), eye[above], sign * eye[below]])


def _flags(m: int, which: Indices) -> Flags:
    out = np.zeros(m, dtype=bool)
    out[which] = True
    return out


def _numbers(values: Any, size: int) -> Floats:
    """What a package gave, or not a number where it gave nothing."""
    return np.full(size, np.nan) if values is None or len(values) != size else np.array(values, dtype=np.float64)
