"""The solvers for linear machines meet the interface of solvers."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy import sparse

from contracts.solver_contract import STOP, SolverCase, SolverContract
from mercer.kernels import Linear
from mercer.places import gram_for
from mercer.places.choose import rows_for
from mercer.problems.linear_problem import epsilon_insensitive, hinge
from mercer.problems.multiclass import JointProblem
from mercer.solvers.linear.choose import solve_linear
from mercer.solvers.linear.joint import solve_joint_linear
from reference.multiclass import dual_by_qp
from reference.plain_rows import PlainRows
from reference.qp import by_clarabel

rng = np.random.default_rng(0)
N = 80
X = rng.normal(size=(N, 5))
WIDE = np.hstack([X, np.eye(N)])
TARGET = X @ rng.normal(size=5) + 0.5 * rng.normal(size=N) + 0.2
Y = np.where(TARGET > 0, 1.0, -1.0)
C = rng.uniform(0.5, 2.0, N)
LABELS = rng.integers(0, 3, N)

# Newton's (w, b) is an answer of its own, of which β is only the proof; a start is a whole outcome.
Case = partial(SolverCase, point=lambda outcome: outcome.w, start=lambda outcome: outcome)


def cases():
    for squared in (False, True):
        for bias in (np.inf, 1.0, 0.0):
            machines = {
                "hinge": hinge(Y, C, bias, squared),
                "tube": epsilon_insensitive(TARGET, C, 0.1, bias, squared),
            }
            for kind, problem in machines.items():
                name, constant = f"{'squared ' * squared}{kind}, bias {bias}", 0.0 if bias == np.inf else bias**2
                value = by_clarabel(problem.dual, X @ X.T + constant)[0]
                for solver in ("newton", "dual", "qp"):
                    yield (
                        f"{solver}, {name}",
                        Case(partial(solve_linear, solver=solver, seed=1), problem, rows_for(X, 1), value),
                    )
                place = rows_for(sparse.csr_array(WIDE), 1)
                value = by_clarabel(problem.dual, WIDE @ WIDE.T + constant)[0]
                yield f"auto on more columns than rows, {name}", Case(solve_linear, problem, place, value)
                yield f"auto without descent, {name}", Case(solve_linear, problem, PlainRows(WIDE), value)
    for bias in (False, "regularized"):
        problem = JointProblem(LABELS, C, 3, shared=True, shift=float(bias == "regularized"))
        value = dual_by_qp(X @ X.T, LABELS, C, 3, machine="crammer-singer", bias=bias)[0]
        yield f"joint, bias {bias}", Case(partial(solve_joint_linear, seed=1), problem, rows_for(X, 1), value)
        solve = partial(solve_joint_linear, gram=partial(gram_for, Linear(), X))
        yield f"joint without descent, bias {bias}", Case(solve, problem, PlainRows(X), value)


CASES = dict(cases())


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


class TestSolversOfLinearMachines(SolverContract):
    def test_from_a_point_outside_the_box(self, case):
        """As along a path over C: the start may come from a larger one."""
        start, _ = case.solve(case.problem, case.place, replace(STOP, tol=1e-4))
        if isinstance(case.problem, JointProblem):
            smaller = replace(case.problem, C=case.problem.C / 2)
        else:
            whole = case.problem
            smaller = replace(whole, lower=whole.lower / 2, upper=whole.upper / 2, d=2 * whole.d)
        warm, certificate = case.solve(smaller, case.place, STOP, start)
        _, proof = case.solve(smaller, case.place, STOP)
        assert warm.stop_reason == "converged"
        assert certificate.kkt["dual feasibility: box"] <= 1e-12
        assert certificate.primal == pytest.approx(proof.primal, rel=1e-5)


def test_descent_is_refused_where_there_is_none():
    with pytest.raises(ValueError, match=r"solver='dual' takes steps on single rows.*use solver='auto'"):
        solve_linear(hinge(Y, C, 0.0, False), PlainRows(X), STOP, solver="dual")
    problem = JointProblem(LABELS, C, 3, shared=True)
    with pytest.raises(ValueError, match="there is none; use multiclass='ovr'"):
        solve_joint_linear(problem, PlainRows(X), STOP)
