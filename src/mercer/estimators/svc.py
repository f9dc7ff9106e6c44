"""Support vector classification with a soft or hard margin; one against one for several classes by default."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from mercer.certificates.certificate import Certificate
from mercer.certificates.hulls import with_halfway_bias
from mercer.certificates.lagrangian import Lagrangian
from mercer.estimators.fitting.families.pairwise import (
    JOINT,
    PairwiseClassifier,
    centred_gram,
    joint_norms,
    joint_problem,
    joint_table,
    midpoint_bias,
    outputs,
    refuse_both_labels,
    refuse_no_margin,
)
from mercer.estimators.fitting.pipeline.fit import Fit
from mercer.estimators.fitting.pipeline.machine import ClassWeight
from mercer.estimators.fitting.pipeline.state import Predicate, fitted
from mercer.estimators.fitting.pipeline.task import PairTasks, Solutions, Task, Tasks
from mercer.estimators.fitting.reports.coefficients import Bounds, allow_for_joint_copies, caller_table
from mercer.estimators.regularisation import check_C_or_theta, penalty_C
from mercer.places.host.pair_place import Layout
from mercer.problems.classification import soft_margin, squared_soft_margin
from mercer.problems.dual_problem import DualProblem
from mercer.problems.multiclass import JointProblem
from mercer.runtime.errors import PROBABILITIES
from mercer.runtime.parameters import bias_kind, one_of
from mercer.runtime.shared_docs import shared_docs
from mercer.samples.arrays import Floats, Indices, inner, megabytes
from mercer.samples.labels import REST
from mercer.solvers import JOINT_SOLVERS
from mercer.solvers.dual.hulls import solve_hard_margin

_BIASES, _SCHEMES = (True, False, "regularized"), ("ovo", "ovr", *JOINT)


def _is_fit_record(value: Any, _: Any) -> bool:
    """Return True if a value read from a file can be the attribute `_trained_as_`, the parameters of a fit."""
    choices = {"slack": ("none", "l1", "l2"), "bias": _BIASES, "multiclass": _SCHEMES}
    has_keys = isinstance(value, dict) and value.keys() == choices.keys()
    return has_keys and all(type(value[name]) in (str, bool) and value[name] in choices[name] for name in choices)


@shared_docs
@dataclass(eq=False, repr=False)
class SVC(PairwiseClassifier):
    """C-support vector classification with a certificate of optimality.

    Minimises ½‖w‖² + Σ C_i ξ_i subject to y_i f(x_i) ≥ 1 − ξ_i, ξ_i ≥ 0, with f(x) = ⟨w, φ(x)⟩ + b, by solving the
    dual problem. It is a drop-in replacement for scikit-learn's SVC: all parameters and attributes of that class exist
    here with the same meaning. If f(x) = 0, the second class is predicted, as in LIBSVM.

    Parameters
    ----------
    C : float, default=1.0
        Penalty for slack. The penalty C_i of a sample is C times its weight times the weight of its class. `inf` is the
        hard margin, computed from the nearest points of the convex hulls of the two classes; if the classes cannot be
        separated, `NotSeparableError` is raised with the evidence.
    %(kernel)s
    probability : bool, default=False
        Must be False. For probabilities use `calibrate` after `fit`, or `KernelMachine(loss="logistic")`.
    %(class_weight)s
    slack : {"l1", "l2"}, default="l1"
        Form of the slack term: C_i ξ_i, or ½ C_i ξ_i² (LIBLINEAR's C for the squared hinge is half of this C).
    bias : True, False or "regularized", default=True
        Treatment of the intercept b: not penalised, absent, or penalised as the weight of a constant feature
        (½(‖w‖² + b²), which amounts to the kernel k + 1).
    %(theta)s
    multiclass : {"ovo", "ovr", "crammer-singer", "weston-watkins"}, default="ovo"
        Strategy for several classes; an underscore may replace the hyphen. "ovo" trains a machine for each pair of
        classes and predicts by LIBSVM's vote. "ovr" trains one for each class against the rest and predicts the largest
        f; `dual_coef_` then has a row for each class. The other two solve one joint problem with a function f_k for
        each class: they minimise ½Σ_k‖w_k‖² + Σ_i C_i loss_i, where loss_i is
        max_k (1 − [k = y_i] + f_k(x_i) − f_{y_i}(x_i)) for "crammer-singer" and
        Σ_{k≠y_i} max(0, 1 − f_{y_i}(x_i) + f_k(x_i)) for "weston-watkins". With two classes both are equivalent to the
        binary machine at 2C, and its single function f_2 − f_1 is kept.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        Shape of `decision_function` with several classes and multiclass="ovo".
    break_ties : bool, default=False
        Whether `predict` breaks ties of the vote by the decision values, as in scikit-learn.
    %(dual parameters)s

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Class labels.
    class_weight_ : array of shape (n_classes,)
        Factor on C for each class.
    %(dual attributes)s

    See Also
    --------
    NuSVC : Classification with the fraction ν of margin errors as parameter instead of C.
    LinearSVC : Faster training for a linear kernel.
    SVR : Support vector regression.
    mercer.TunedSVC : SVC that chooses C and gamma by cross-validation.

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

    C: float = 1.0
    _: KW_ONLY
    probability: bool | str = False
    class_weight: ClassWeight = None
    slack: str = "l1"
    bias: bool | str = True
    theta: float | None = None
    multiclass: str = "ovo"

    _FITTED = fitted(_trained_as_=Predicate(must="be the slack, bias and multiclass of a fit", holds=_is_fit_record))

    # --- training --------------------------------------------------------------------------------------------------

    def _tasks(self, fit: Fit) -> Tasks[DualProblem | JointProblem]:
        """Return one joint task, or a task for each pair of classes or each class against the rest."""
        merged, target = fit.merged, fit.target
        if self._joint:
            C = self._joint_penalties(fit) * merged.weight
            problem_of_all = joint_problem(merged, C, len(target.labels), self.multiclass, self.bias)
            return Tasks(
                [
                    Task(
                        "all classes",
                        problem_of_all,
                        self._solver(solvers=JOINT_SOLVERS),
                        np.arange(problem_of_all.n),
                    )
                ]
            )
        if self._hard:
            return self._hard_tasks(fit)
        if len(target.pairs) > 1 and REST not in target.pairs[0]:
            return self._pair_tasks(fit)
        tasks = []
        for pair, C in zip(target.pairs, self._penalties(fit), strict=True):
            rows, y = target.sides(pair, merged.y)
            problem = self._problem(fit, rows, y, C)
            solve = self._solver_for(fit, rows, problem)
            tasks.append(Task(target.name(pair), problem, solve, rows))
        return Tasks(tasks)

    def _hard_tasks(self, fit: Fit) -> Tasks[DualProblem]:
        """Return the hard-margin tasks; they are solved as nearest points of convex hulls, on centred samples."""
        if not fit.precomputed:
            refuse_both_labels(fit.merged, fit.limits.n_threads)
        (place, centring), tasks = centred_gram(fit, self.bias), []
        solve = self._nested_solver(partial(solve_hard_margin, centring=centring))
        for pair in fit.target.pairs:
            rows, y = fit.target.sides(pair, fit.merged.y)
            problem = soft_margin(y, np.full(len(y), np.inf))
            problem = problem if self.bias is True else problem.without_bias()
            tasks.append(Task(fit.target.name(pair), problem, solve, rows, place=place))
        return Tasks(tasks)

    def _pair_tasks(self, fit: Fit) -> PairTasks:
        """Return the one-against-one tasks, whose problems are built and checked as a single array problem."""
        target = fit.target
        members, starts = target.sorted_samples(fit.merged.y)
        layout = Layout.of_sorted(members, starts, np.array(target.pairs))
        self._check_pair_memory(layout, fit)
        signs = np.ones(2 * layout.n)
        signs[1::2] = -1.0
        y = signs.repeat(layout.block_sizes[layout.pairs])
        penalties = self._penalties(fit).repeat(layout.lengths)
        return PairTasks(
            problem=self._problem(fit, layout.rows, y, penalties),
            layout=layout,
            name_of=lambda k: target.name(target.pairs[k]),
            solver_of=partial(self._solver_for, fit),
            together=self.solver == "auto",
        )

    def _check_pair_memory(self, layout: Layout, fit: Fit) -> None:
        """Raise MemoryError if the pairs of classes do not fit into the memory budget."""
        # Bytes per pair and per variable, as measured with 300 and 1,000 classes of one and five rows.
        n_bytes = 400 * layout.n + 120 * int(layout.offsets[-1])
        if layout.n > 10_000 and n_bytes > fit.limits.budget:
            raise MemoryError(
                f"{len(fit.target.labels)} classes make {layout.n} pairs, which take about {megabytes(n_bytes)}, but "
                f"cache_size={self.cache_size:g} allows {megabytes(fit.limits.budget)}; use multiclass='ovr', one "
                "machine per class, or raise cache_size"
            )

    def _problem(self, fit: Fit, rows: Indices, y: Floats, penalties: Any) -> DualProblem:
        """Return the dual problem of the merged samples `rows` with labels y = ±1.

        For several pairs of classes, all arguments and the problem are concatenated over the pairs.
        """
        C = penalties * fit.target.factor[fit.merged.y[rows]] * fit.merged.weight[rows]
        problem = (squared_soft_margin if self.slack == "l2" else soft_margin)(y, C)
        return problem if self.bias is True else problem.without_bias()

    def _penalties(self, fit: Fit) -> Floats:
        """Return the penalty C of a sample of weight 1 in each binary problem."""
        pairs = fit.target.pairs
        if self.theta is None:
            return np.full(len(pairs), float(self.C))
        weights = np.bincount(fit.merged.y, weights=fit.merged.weight, minlength=len(fit.target.labels))
        if REST in pairs[0]:
            return np.full(len(pairs), penalty_C(self, float(weights.sum())))
        totals, index = np.unique(weights[np.array(pairs)].sum(axis=1), return_inverse=True)
        return np.array([penalty_C(self, total) for total in totals.tolist()])[index]

    def _joint_penalties(self, fit: Fit) -> Floats:
        """Return the penalty C of each merged sample, for a weight of 1, in the joint problem."""
        return np.asarray(penalty_C(self, float(fit.merged.weight.sum())) * fit.target.factor[fit.merged.y])

    def _conclude(self, fit: Fit, solved: Solutions[Any]) -> None:
        """Set the fitted attributes from the solution of the joint problem, or from those of all binary problems."""
        slack = "none" if self._hard else self.slack
        self._trained_as_ = {"slack": slack, "bias": bias_kind(self.bias), "multiclass": self.multiclass}
        if self._joint:
            C = self._joint_penalties(fit)
            table = joint_table(solved[0])
            by_row = caller_table(table, fit, lambda: Bounds(C[:, None], C[:, None]))
            self._conclude_tables(fit, outputs(table), outputs(by_row), outputs(solved[0].certificate.b))
            allow_for_joint_copies(self, fit, solved, (table, by_row), C)
            self.rkhs_norm_ = joint_norms(solved[0])
            return
        b = solved.biases(self.bias)
        if self._hard:
            refuse_no_margin(fit, solved, self.solver)
            if solved[0].task.place is not None:
                b, proofs = midpoint_bias(fit, solved), self.certificate_.parts or (self.certificate_,)
                self.certificate_ = Certificate.total([with_halfway_bias(proof) for proof in proofs])
            self._conclude_pairs(fit, solved, lambda: Bounds(np.inf, np.inf), b)
        else:
            self._conclude_pairs(fit, solved, partial(self._box, fit), b)
        if len(fit.target.labels) == 2:
            self.certificate_ = replace(self.certificate_, lagrangian=self._lagrangian(fit, solved))

    def _lagrangian(self, fit: Fit, solved: Solutions[Any]) -> Lagrangian:
        """Return the Lagrangian of the problem of two classes, with its variables in the order of the user's rows."""
        columns = solved.columns
        bias_is_free, beta = self.bias is True, columns.beta
        b = float(self.intercept_[0]) if bias_is_free else 0.0
        # The solver's b belongs to samples that may have been centred.
        solver_b = float(solved.biases(self.bias)[0]) if bias_is_free else 0.0
        if self._hard:
            penalties = np.full(len(beta), np.inf)
        else:
            penalties = columns.upper - columns.lower if self.slack == "l1" else 1.0 / solved.d
        rows = fit.merged.first[columns.samples]
        order = np.full(int(rows.max(initial=-1)) + 1, -1)
        order[rows] = np.arange(len(rows))
        order = order[order >= 0]
        return Lagrangian(
            slack="none" if self._hard else self.slack,
            rows=rows[order],
            y=np.where(fit.merged.y[columns.samples] == 1, 1.0, -1.0)[order],
            C=penalties[order],
            alpha=np.abs(beta)[order],
            f=(solved.u + (solver_b - b))[order],
            b=b,
            free=bias_is_free,
            square=inner(beta, solved.u),
        )

    def _box(self, fit: Fit) -> Bounds:
        """Return the upper bounds of α for each class of a pair, C or, with squared slack, infinity."""
        bound: Any = self._penalties(fit) if self.slack == "l1" else np.inf
        return Bounds(bound, bound, fit.target.factor[fit.merged.y][:, None])

    @property
    def _hard(self) -> bool:
        """True for the hard margin."""
        return bool(np.inf == self.C)

    @property
    def _joint(self) -> bool:
        """True if one joint problem covers all classes."""
        return self.multiclass in JOINT

    @property
    def _constant_feature(self) -> bool:
        return super()._constant_feature and not self._joint  # the joint problem adds the constant itself

    def _check_parameters(self) -> None:
        if self._hard:
            self._check_hard()
        else:
            check_C_or_theta(self)
        if self.probability not in (False, "deprecated"):
            raise ValueError(f"probability={self.probability!r} is not available. {PROBABILITIES.format(name='SVC')}")
        one_of("slack", self.slack, ("l1", "l2"))
        one_of("bias", bias_kind(self.bias), _BIASES)
        one_of("multiclass", self.multiclass, _SCHEMES)
        if self._joint:
            self._check_joint()
        super()._check_parameters()

    def _check_joint(self) -> None:
        """Raise ValueError for parameters that have no meaning for a joint machine."""
        if self._hard or self.slack == "l2":
            parameter = "C=inf" if self._hard else "slack='l2'"
            raise ValueError(f"{parameter} is not defined for multiclass={self.multiclass!r}; use 'ovo' or 'ovr'")
        if self.decision_function_shape == "ovo":
            raise ValueError(
                f"decision_function_shape='ovo' has no meaning for multiclass={self.multiclass!r}, which has one "
                "function per class and no pairs; leave it at 'ovr'"
            )

    def _check_hard(self) -> None:
        if self.theta is not None:
            raise ValueError(f"C=inf and theta={self.theta!r} both set the penalty for errors; give one")
