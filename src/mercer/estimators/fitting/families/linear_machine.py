"""Base class of linear machines, which are trained in w and b: their tasks and fitted attributes."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from functools import partial
from types import MappingProxyType

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from mercer.certificates.certificate import Certificate
from mercer.estimators.fitting.mixins import MachineMethods
from mercer.estimators.fitting.pipeline.fit import Fit, read_samples
from mercer.estimators.fitting.pipeline.machine import CERTIFIED, Machine, RandomState
from mercer.estimators.fitting.pipeline.state import Count, Text, fitted
from mercer.estimators.fitting.pipeline.task import Solutions, Task, Tasks
from mercer.places import rows_for
from mercer.problems.linear_problem import LinearProblem
from mercer.runtime.errors import warn_user
from mercer.runtime.parameters import REGULARIZED, bias_kind, one_of, positive
from mercer.runtime.threads import effective_n_threads
from mercer.samples.arrays import Data, Floats, n_entries
from mercer.solvers.linear.choose import METHODS, solve_linear
from mercer.solvers.linear.referee import LinearSolution
from mercer.solvers.solution import Solve

# For at most this many entries of X the classes are solved one after another, since starting threads takes longer
# (iris: 3.4 ms with threads on a busy host, 2.7 ms without).
_FEW_ENTRIES = 20_000


@dataclass(eq=False, repr=False)
class LinearMachine(MachineMethods, Machine):
    """Base class of machines with one w and b per output; subclasses add parameters, problems and attribute shapes."""

    _default_steps = 10_000  # Newton steps, or passes over the data

    _FITTED = fitted(CERTIFIED, n_features_in_=Count(required=True), n_iter_=Count(), solver_=Text())

    _: KW_ONLY
    max_time: float | None = None
    bias: bool | str = True
    intercept_scaling: float = 1.0
    tol: float | None = 1e-4
    gap_tol: float | None = None
    solver: str = "auto"
    dual: bool | str = "auto"
    shrinking: bool = True
    max_iter: int = -1
    random_state: RandomState = None

    _FOREIGN_PARAMETERS = MappingProxyType(
        {"fit_intercept": "True is bias='regularized' here, False is bias=False, and bias=True does not penalise b"}
    )

    def _check_parameters(self) -> None:
        one_of("solver", self.solver, ("auto", *METHODS))
        positive("C", self.C)
        bias_feature(self)

    def _side_by_side(self, fit: Fit, n_tasks: int) -> int:
        return min(n_tasks, fit.limits.n_threads) if n_entries(fit.X) > _FEW_ENTRIES else 1

    def _linear_tasks(
        self, fit: Fit, names: list[str], problems: list[LinearProblem], unit: float = 1.0
    ) -> Tasks[LinearProblem]:
        """Return a task for each problem, all on the same rows; `unit` is the unit of `tol`."""
        solve, place = linear_solver(self, fit), partial(fit.rows, centred=problems[0].exact_bias)
        named_problems = zip(names, problems, strict=True)
        return Tasks(Task(name, problem, solve, place=place, unit=unit) for name, problem in named_problems)

    def _conclude_linear(self, fit: Fit, solved: Solutions[object]) -> tuple[Floats, Floats]:
        """Set `n_iter_` and `solver_`, and return w and b with one row per output."""
        self.n_iter_ = max(1, int(self.n_iter_.max()))
        self.solver_ = solved[0].solution.solver
        w, b = np.vstack([s.solution.w for s in solved]), np.hstack([s.solution.b for s in solved])
        if bias_feature(self) == math.inf and fit.centre is not None:
            centre_row = rows_for(fit.centre[None], 1)
            b = b - np.array([centre_row.precise_product(row).value[0] for row in w])
        return fit.to_all_columns(w), b

    def _decision(self, X: Data) -> Floats:
        check_is_fitted(self)
        rows = rows_for(read_samples(self, X, None, reset=False), effective_n_threads(self.n_jobs))
        w, b = np.atleast_2d(self.coef_), self.intercept_
        return np.column_stack([rows.product(w[k], float(b[k])) for k in range(len(b))])


def bias_feature(machine: Machine) -> float:
    """Return the value of the constant feature whose weight is the bias: infinite if b is free, 0 without bias."""
    one_of("bias", bias_kind(machine.bias), (True, False, "regularized"))
    if machine.bias in REGULARIZED:
        return positive("intercept_scaling", machine.intercept_scaling)
    return math.inf if machine.bias else 0.0


def linear_solver(machine: Machine, fit: Fit) -> Solve:
    """Return the solver that the machine's parameters name, with its options bound."""
    return partial(solve_linear, solver=machine.solver, seed=seed_of(machine, fit), shrinking=bool(machine.shrinking))


def seed_of(machine: Machine, fit: Fit) -> int:
    """Return the seed of the sample order in dual coordinate descent; random_state=None means one fixed order."""
    return 0 if machine.random_state is None else int(fit.limits.random.randint(2**31 - 1))


def warn_of_early_stops(Cs: Floats, solved: list[tuple[LinearSolution, Certificate]]) -> None:
    """Warn of the values of C on a path at which a limit ended the fit."""
    stopped_early = [k for k, (solution, _) in enumerate(solved) if solution.stop_reason != "converged"]
    if not stopped_early:
        return
    worst = max(stopped_early, key=lambda k: solved[k][1].relative_gap)
    solution, certificate = solved[worst]
    warn_user(
        f"linear_path stopped early at {len(stopped_early)} of {len(Cs)} values of C, at C={Cs[worst]:g} "
        f"({solution.stop_reason}) with a gap of {certificate.relative_gap:.1e} of the dual value; raise max_iter or "
        "max_time, or scale the features",
        ConvergenceWarning,
    )
