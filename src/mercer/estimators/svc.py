"""Support vector classification: the soft margin, one against one for several classes."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from mercer.arrays import Floats, Indices
from mercer.data.labels import REST
from mercer.estimators.regularisation import check_price, price
from mercer.fitting.classifier import PairwiseClassifier
from mercer.fitting.coefficients import Bounds, own_table
from mercer.fitting.dual_machine import bias_of
from mercer.fitting.fit import Fit
from mercer.fitting.hard_margin import bias_between, centred_place, refuse_both_labels, refuse_no_margin
from mercer.fitting.joint import JOINT, joint_norms, joint_problem, joint_table, outputs
from mercer.fitting.linear_kernel import linear_way
from mercer.fitting.no_probabilities import PROBABILITIES
from mercer.fitting.shared_docs import shared_docs
from mercer.fitting.tasks import Solved, Task
from mercer.parameters import one_of, store
from mercer.problems.classification import soft_margin, squared_soft_margin
from mercer.problems.dual_problem import DualProblem
from mercer.solvers.dual.hard_margin import solve_hard_margin
from mercer.solvers.joint.ascent import solve_joint


@shared_docs
class SVC(PairwiseClassifier):
    """C-support vector classification, exact and certified.

    Minimises ½‖w‖² + Σ C_i ξ_i subject to y_i f(x_i) ≥ 1 − ξ_i, ξ_i ≥ 0, with f(x) = ⟨w, φ(x)⟩ + b, through its
    dual. A drop-in
    for scikit-learn's SVC: every parameter and attribute of that class is here with the same meaning. For f(x) = 0
    the second class is predicted, as LIBSVM does.

    Parameters
    ----------
    C : float, default=1.0
        Price of slack. A sample's own C_i is C times its weight times its class's weight. `inf` is the hard margin,
        found as the nearest points of the two classes' convex hulls; where there is none, `NotSeparableError` says
        what was proven.
    kernel : str, Kernel or callable, default="rbf"
        A name ("linear", "poly", "rbf", "sigmoid", "laplacian", "precomputed", ...), a kernel object, which may be
        composed with + * ** and exp, or a function (X, Z) -> matrix of kernel values.
    degree, gamma, coef0
        Parameters of the named kernels; a kernel object has its own.
    probability : bool, default=False
        Not available: use sklearn.calibration.CalibratedClassifierCV, or `KernelMachine(loss="logistic")`.
    class_weight : dict or "balanced", optional
    slack : {"l1", "l2"}, default="l1"
        The slack's price: C_i ξ_i, or ½ C_i ξ_i² (LIBLINEAR's C for the squared hinge is half of ours).
    bias : True, False or "regularized", default=True
        f with b, without b, or with b as the weight of one more, constant feature, so that it is kept small like the
        others (½(‖w‖² + b²); the kernel is then k + 1 inside).
    %(theta)s
    multiclass : {"ovo", "ovr", "crammer-singer", "weston-watkins"}, default="ovo"
        An underscore will do for the hyphen.
        Several classes by machines for each pair and LIBSVM's vote, or for each class against the rest, of which the
        largest f wins; `dual_coef_` then has a row per class. The other two are one problem over all classes, with a
        function f_k for each: they minimise ½Σ_k‖w_k‖² + Σ_i C_i loss_i, where loss_i is
        max_k (1 − [k = y_i] + f_k(x_i) − f_{y_i}(x_i)) for "crammer-singer" and
        Σ_{k≠y_i} max(0, 1 − f_{y_i}(x_i) + f_k(x_i)) for "weston-watkins"; with two classes both are the binary machine
        at 2C, and shown as its one function, f_2 − f_1.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        The form of `decision_function` for several classes one against one.
    break_ties : bool, default=False
    %(dual parameters)s

    Attributes
    ----------
    %(dual attributes)s
    classes_, class_weight_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVC(C=10).fit(X, y)
    >>> round(model.score(X, y), 2)
    0.99
    >>> model.certificate_.gap < 1e-2
    True
    """

    _renamed: ClassVar[dict[str, str]] = {"lam": "theta"}

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: Any = False,
        tol: float = 1e-3,
        gap_tol: float | None = None,
        cache_size: float = 1000,
        class_weight: Any = None,
        verbose: bool = False,
        max_iter: int = -1,
        max_time: float | None = None,
        slack: str = "l1",
        bias: Any = True,
        theta: float | None = None,
        multiclass: str = "ovo",
        solver: str = "auto",
        warm_start: bool = False,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        lam: float | None = None,
    ) -> None:
        store(self, locals())

    # --- training --------------------------------------------------------------------------------------------------

    def _tasks(self, fit: Fit) -> list[Task]:
        merged, target = fit.merged, fit.target
        if self._joint:
            C = self._joint_price(fit) * merged.weight
            joint = joint_problem(merged, C, len(target.labels), self.multiclass, self.bias)
            return [Task("all classes", joint, self._solver(solve_joint), np.arange(joint.n))]
        if self._hard:
            return self._hard_tasks(fit)
        if len(target.pairs) > 1 and REST not in target.pairs[0]:
            return self._pair_tasks(fit)
        tasks = []
        for pair in target.pairs:
            rows, y = target.sides(pair, merged.y)
            problem = self._problem(fit, [rows], y)
            solve = self._solver(linear_way(self, fit, rows, problem))
            tasks.append(Task(target.name(pair), problem, solve, rows))
        return tasks

    def _hard_tasks(self, fit: Fit) -> list[Task]:
        if not fit.precomputed:
            refuse_both_labels(fit.merged, fit.limits.n_threads)
        tasks, place, solve = [], centred_place(fit, self.bias), self._solver_around(solve_hard_margin)
        for pair in fit.target.pairs:
            rows, y = fit.target.sides(pair, fit.merged.y)
            problem = soft_margin(y, np.full(len(y), np.inf))
            problem = problem if self.bias is True else problem.without_bias()
            tasks.append(Task(fit.target.name(pair), problem, solve, rows, place=place))
        return tasks

    def _pair_tasks(self, fit: Fit) -> list[Task]:
        """One against one: hundreds of problems are made, and checked, as one, which is then cut."""
        target = fit.target
        members = target.members(fit.merged.y)
        blocks = [(members[first], members[second]) for first, second in target.pairs]
        sizes = np.array([(len(first), len(second)) for first, second in blocks])
        offsets = np.cumsum([0, *sizes.sum(axis=1)])
        together = np.concatenate([block for both in blocks for block in both])
        rows = [together[begin:end] for begin, end in pairwise(offsets.tolist())]
        y = np.repeat(np.tile([1.0, -1.0], len(blocks)), sizes.ravel())
        problems = self._problem(fit, rows, y).parts(offsets)
        shared = blocks if self.solver == "auto" else [None] * len(blocks)
        return [
            Task(target.name(pair), problem, self._solver(linear_way(self, fit, some, problem)), some, both)
            for pair, some, problem, both in zip(target.pairs, rows, problems, shared, strict=True)
        ]

    def _problem(self, fit: Fit, rows: list[Indices], y: Floats) -> DualProblem:
        """The problems on some of the samples each, one after another."""
        together = rows[0] if len(rows) == 1 else np.concatenate(rows)
        prices = np.repeat(self._prices(fit, rows), [len(some) for some in rows])
        C = prices * fit.target.factor[fit.merged.y[together]] * fit.merged.weight[together]
        problem = (squared_soft_margin if self.slack == "l2" else soft_margin)(y, C)
        return problem if self.bias is True else problem.without_bias()

    def _prices(self, fit: Fit, rows: list[Indices]) -> Floats:
        """C of a sample of weight 1 in the problems on these samples."""
        return np.array([price(self, float(fit.merged.weight[some].sum())) for some in rows])

    def _joint_price(self, fit: Fit) -> Floats:
        """C of a merged sample of weight 1."""
        return np.asarray(price(self, float(fit.merged.weight.sum())) * fit.target.factor[fit.merged.y])

    def _conclude(self, fit: Fit, solved: list[Solved]) -> None:
        if self._joint:
            C = self._joint_price(fit)[:, None]
            table = joint_table(solved[0])
            own = own_table(table, fit.merged, Bounds(C, C))
            self._conclude_tables(fit, outputs(table), outputs(own), outputs(solved[0].certificate.b))
            self._conclude_duals(fit, solved)
            return
        bound: Any = np.inf
        b = np.array([bias_of(s, self.bias) for s in solved])
        if self._hard:
            refuse_no_margin(fit.merged, solved)
            b = b if solved[0].task.place is None else bias_between(fit, solved)
            self._conclude_pairs(fit, solved, Bounds(bound, bound), b)
            return
        if self.slack == "l1":
            bound = self._prices(fit, [s.task.rows for s in solved])
        factor = fit.target.factor[fit.merged.y][:, None]
        self._conclude_pairs(fit, solved, Bounds(bound, bound, factor), b)

    def _norms(self, solved: list[Solved]) -> Any:
        return joint_norms(solved[0]) if self._joint else super()._norms(solved)

    @property
    def _hard(self) -> bool:
        return bool(np.inf == self.C)

    @property
    def _joint(self) -> bool:
        return self.multiclass in JOINT

    @property
    def _constant_feature(self) -> bool:
        return super()._constant_feature and not self._joint  # the joint problem has a constant of its own

    def _check_parameters(self) -> None:
        if self._hard:
            self._check_hard()
        else:
            check_price(self)
        if self.probability not in (False, "deprecated"):
            raise ValueError(f"probability={self.probability!r} is not available. {PROBABILITIES.format(name='SVC')}")
        one_of("slack", self.slack, ("l1", "l2"))
        one_of("bias", self.bias, (True, False, "regularized"))
        one_of("multiclass", self.multiclass, ("ovo", "ovr", *JOINT))
        if self._joint:
            self._check_joint()
        super()._check_parameters()

    def _check_joint(self) -> None:
        if self._hard or self.slack == "l2":
            given = "C=inf" if self._hard else "slack='l2'"
            raise ValueError(f"{given} is not defined for multiclass={self.multiclass!r}; use 'ovo' or 'ovr'")
        if self.decision_function_shape == "ovo":
            raise ValueError(
                f"decision_function_shape='ovo' has no meaning for multiclass={self.multiclass!r}, which has one "
                "function per class and no pairs; leave it at 'ovr'"
            )

    def _check_hard(self) -> None:
        if self.theta is not None or self.lam is not None:
            raise ValueError(f"C=inf and theta={self.theta or self.lam!r} both set the price of errors; give one")
