"""Support vector classification: the soft margin, one against one for several classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from mercer.arrays import Floats, Indices, freeze, take
from mercer.estimators import samples
from mercer.estimators.joint import JOINT, joint_table, joint_task, outputs
from mercer.estimators.machine import Machine, Solved, Task
from mercer.estimators.merging import Merged
from mercer.estimators.parameters import one_of, positive
from mercer.expansion import Expansion
from mercer.kernels import kernel_accepts
from mercer.problems.classification import soft_margin


@dataclass(frozen=True, eq=False)
class _Classes:
    """The classes, the pairs of them that are trained (first against second), and each class's factor on C."""

    labels: np.ndarray
    pairs: list[tuple[int, int]]
    factor: Floats


class SVC(ClassifierMixin, Machine):  # type: ignore[misc]  # scikit-learn is untyped
    """C-support vector classification, exact and certified.

    Minimises ½‖w‖² + Σ C_i ξ_i subject to y_i f(x_i) ≥ 1 − ξ_i, ξ_i ≥ 0, with f(x) = ⟨w, φ(x)⟩ + b, through its
    dual. A drop-in
    for scikit-learn's SVC: every parameter and attribute of that class is here with the same meaning. For f(x) = 0
    the second class is predicted, as LIBSVM does.

    Parameters
    ----------
    C : float, default=1.0
        Price of slack. A sample's own C_i is C times its weight times its class's weight.
    kernel : str, Kernel or callable, default="rbf"
        A name ("linear", "poly", "rbf", "sigmoid", "laplacian", "precomputed", ...), a kernel object, which may be
        composed with + * ** and exp, or a function (X, Z) -> matrix of kernel values.
    degree, gamma, coef0
        Parameters of the named kernels; a kernel object has its own.
    shrinking : bool, default=True
        Leave settled samples aside while training; the answer is the same.
    probability : bool, default=False
        Not available: use sklearn.calibration.CalibratedClassifierCV, whose probabilities agree with predict.
    tol : float, default=1e-3
        Largest violation of the optimality conditions that may remain; LIBSVM's meaning.
    gap_tol : float, optional
        Also go on until the duality gap is at most this share of the dual value.
    cache_size : float, default=1000
        Memory in MB that a fit may use beyond the data.
    class_weight : dict or "balanced", optional
    verbose : bool, default=False
        Print a line a second.
    max_iter : int, default=-1
        Limit on steps of the inner solver; −1 stands for max(10⁷, 100·n_samples).
    max_time : float, optional
        Limit in seconds. A fit that meets a limit warns, returns what it has, and says so in `stop_reason_`.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
    break_ties : bool, default=False
    multiclass : {"ovo", "crammer-singer", "weston-watkins"}, default="ovo"
        How several classes are treated. "ovo" trains every pair of classes and lets them vote. The other two are one
        problem over all classes, with a function f_k for each and the largest as the prediction: they minimise
        ½Σ_k‖w_k‖² + Σ_i C_i loss_i, where loss_i is max_k (1 − [k = y_i] + f_k(x_i) − f_{y_i}(x_i)) for
        "crammer-singer" and Σ_{k≠y_i} max(0, 1 − f_{y_i}(x_i) + f_k(x_i)) for "weston-watkins". They have a
        row of `dual_coef_` and an entry of `intercept_` per class; with two classes both are the binary machine at 2C,
        and shown as its one function, f_2 − f_1.
    bias : {True, False, "regularized"}, default=True
        Whether f has a constant term: True a free one, "regularized" one that is penalised together with the weights
        (the kernel k + 1, as BSVM and kernlab's "kbb-svc" have it), False none (as LIBLINEAR and kernlab's "spoc-svc").
        With "ovo" only True is available.
    random_state : ignored
        Nothing here is random.
    n_jobs : int, optional
        Threads; None uses as many as BLAS would.

    Attributes
    ----------
    certificate_ : Certificate
        Primal and dual value, gap, violation and each optimality condition's residual, recomputed after training.
    converged_ : bool
    stop_reason_ : str
        "converged", "rounding floor", "stalled", "max_iter" or "max_time".
    kernel_ : Kernel
        The kernel with its parameters as numbers.
    support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_, classes_, class_weight_, n_iter_,
    fit_status_, shape_fit_, n_features_in_, feature_names_in_
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
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        multiclass: str = "ovo",
        bias: Any = True,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.gap_tol = gap_tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.max_time = max_time
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.multiclass = multiclass
        self.bias = bias
        self.random_state = random_state
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        accepts = kernel_accepts(self.kernel)
        tags.input_tags.sparse = accepts == "vectors"
        tags.input_tags.pairwise = accepts == "gram"
        tags.input_tags.string = accepts == "sequences"
        tags.input_tags.two_d_array = accepts != "sequences"
        return tags

    # --- training --------------------------------------------------------------------------------------------------

    def _target(self, y: Any) -> tuple[Indices, _Classes]:
        self._check_parameters()
        labels, codes = samples.labels(y)
        # One pair is oriented so that f > 0 means the second class, several so that it means the first (as
        # scikit-learn).
        pairs = [(1, 0)] if len(labels) == 2 else list(combinations(range(len(labels)), 2))
        return codes, _Classes(labels, pairs, np.ones(len(labels)))

    def _weigh(self, target: _Classes, codes: Indices, weight: Floats) -> _Classes:
        return replace(target, factor=samples.class_weights(self.class_weight, target.labels, codes, weight))

    def _tasks(self, merged: Merged, target: _Classes) -> list[Task]:
        C = positive("C", self.C) * target.factor[merged.y] * merged.weight
        if self.multiclass in JOINT:
            return [joint_task(merged, C, len(target.labels), self.multiclass, self.bias)]
        tasks = []
        for first, second in target.pairs:
            rows = np.flatnonzero((merged.y == first) | (merged.y == second))
            y = np.where(merged.y[rows] == first, 1.0, -1.0)
            name = f"{target.labels[first]} against {target.labels[second]}"
            tasks.append(Task(name, rows, soft_margin(y, C[rows])))
        return tasks

    def _conclude(self, merged: Merged, solved: list[Solved], target: _Classes, X: Any) -> None:
        joint = self.multiclass in JOINT
        table = joint_table(solved[0]) if joint else _table(merged, solved)
        used = np.flatnonzero(np.diff(table.indptr))
        used = used[np.argsort(merged.y[used], kind="stable")]
        precomputed = self.kernel_.accepts == "gram"
        self.classes_ = freeze(target.labels)
        self.class_weight_ = freeze(target.factor)
        b = np.array([s.certificate.b[0] for s in solved])
        self.intercept_ = freeze(outputs(np.array(solved[0].certificate.b)) if joint else b)
        self._expansion_ = Expansion(
            kernel=self.kernel_,
            vectors=None if precomputed else take(merged.X, used),
            coefficients=outputs(table[used].toarray()) if joint else _compact(table[used]),
            b=self.intercept_,
            columns=merged.rows[used] if precomputed else None,
            n_columns=len(X) if precomputed else 0,
        )

        # From here on in the caller's rows: copies share their merged sample's coefficient, classes come one after
        # another.
        C = positive("C", self.C) * target.factor[merged.y]
        own = _split(table, merged, C)
        codes = merged.y[merged.member]
        order = np.lexsort((merged.rows, codes))
        order = order[np.diff(own.indptr)[order] > 0]
        self.support_ = freeze(merged.rows[order].astype(np.int32))
        self.support_vectors_ = freeze(np.empty((0, 0)) if precomputed else take(X, merged.rows[order]))
        self.n_support_ = freeze(np.bincount(codes[order], minlength=len(target.labels)).astype(np.int32))
        shown = outputs(own[order].toarray()).T if joint else _dual_coef(own[order], codes[order], target)
        self.dual_coef_ = freeze(np.ascontiguousarray(shown))
        self.fit_status_ = int(not self.converged_)
        self.shape_fit_ = X.shape if hasattr(X, "shape") else (len(X),)

    def _check_parameters(self) -> None:
        if np.inf == self.C:
            raise ValueError("C=inf, the hard margin, is not available yet; use a large finite C, for example 1e6")
        positive("C", self.C)
        if self.probability not in (False, "deprecated"):
            raise ValueError(
                f"probability={self.probability!r} is not available: wrap the machine in "
                "sklearn.calibration.CalibratedClassifierCV, whose probabilities agree with predict"
            )
        one_of("decision_function_shape", self.decision_function_shape, ("ovr", "ovo"))
        one_of("multiclass", self.multiclass, ("ovo", *JOINT))
        one_of("bias", self.bias, (True, False, "regularized"))
        if self.multiclass == "ovo" and self.bias is not True:
            raise ValueError(f"bias={self.bias!r} is not available with multiclass='ovo' yet; use bias=True")
        if self.multiclass in JOINT and self.decision_function_shape == "ovo":
            raise ValueError(
                f"decision_function_shape='ovo' has no meaning for multiclass={self.multiclass!r}, which has one "
                "function per class and no pairs; leave it at 'ovr'"
            )
        self._check_ties()

    def _check_ties(self) -> None:
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")

    # --- prediction ------------------------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Floats:
        """f(x) for two classes; for more, a score per class ("ovr") or a column per pair ("ovo").

        The scores of the joint machines are their f_k(x).
        """
        values = self._decision(X)
        if len(self.classes_) == 2:
            return np.asarray(values[:, 0])
        if self.multiclass in JOINT or self.decision_function_shape == "ovo":
            return values
        votes, confidence = self._votes(values)
        # The confidence only orders classes of equal votes: it is squeezed into less than half a vote.
        return np.asarray(votes + confidence / (3 * (np.abs(confidence) + 1)))

    def predict(self, X: Any) -> np.ndarray:
        """The class of each sample; for several classes the one with most votes, the first of them in a tie."""
        check_is_fitted(self)
        self._check_ties()
        if len(self.classes_) == 2:
            winner = (self._decision(X)[:, 0] >= 0).astype(np.intp)
        elif self.break_ties or self.multiclass in JOINT:
            winner = np.argmax(self.decision_function(X), axis=1)
        else:
            winner = np.argmax(self._votes(self._decision(X))[0], axis=1)
        return np.asarray(self.classes_[winner])

    def _votes(self, values: Floats) -> tuple[Floats, Floats]:
        """How many pairs each class wins, and the sum of its decision values."""
        votes = np.zeros((len(values), len(self.classes_)))
        confidence = np.zeros_like(votes)
        for p, (first, second) in enumerate(combinations(range(len(self.classes_)), 2)):
            wins = values[:, p] > 0
            votes[:, first] += wins
            votes[:, second] += ~wins
            confidence[:, first] += values[:, p]
            confidence[:, second] -= values[:, p]
        return votes, confidence

    @property
    def coef_(self) -> Any:
        """w, one row per pair of classes (joint machines: per class); only for a linear kernel."""
        check_is_fitted(self)
        recipe = self.kernel_.recipe()
        if recipe is None or not recipe.linear:
            raise AttributeError(f"coef_ exists only for a linear kernel, and this one is {self.kernel_!r}")
        expansion = self._expansion_
        w = expansion.coefficients.T @ expansion.vectors
        return freeze(w * recipe.scale)


def _table(merged: Merged, solved: list[Solved]) -> sp.csr_array:
    """β of every merged sample (row) in every pair (column)."""
    beta = np.concatenate([s.solution.beta for s in solved])
    rows = np.concatenate([s.task.rows for s in solved])
    pair = np.repeat(np.arange(len(solved)), [len(s.task.rows) for s in solved])
    table = sp.csr_array((beta, (rows, pair)), shape=(len(merged.y), len(solved)))
    table.eliminate_zeros()
    return table


def _compact(table: sp.csr_array) -> Any:
    """Dense where there is one pair, and every vector serves it."""
    return table.toarray() if table.shape[1] == 1 else table


def _split(table: sp.csr_array, merged: Merged, C: Floats) -> sp.csr_array:
    """The same for the caller's rows: in proportion to their weight, bounded ones exactly onto their own bound."""
    own = table[merged.member]
    row = np.repeat(np.arange(own.shape[0]), np.diff(own.indptr))
    sample = merged.member[row]
    bounded = np.abs(own.data) == C[sample] * merged.weight[sample]
    own_bound = C[sample] * merged.own_weight[row]
    own.data = np.where(bounded, np.sign(own.data) * own_bound, own.data * merged.share[row])
    return own


def _dual_coef(own: sp.csr_array, codes: Indices, target: _Classes) -> Floats:
    """LIBSVM's layout: a vector of class c holds its coefficients against the other classes in their order."""
    entries = own.tocoo()
    out = np.zeros((len(target.labels) - 1, own.shape[0]))
    if len(target.labels) == 2:
        out[0, entries.row] = entries.data
        return out
    first, second = np.array(target.pairs).T
    vector, pair = entries.row, entries.col
    against = np.where(codes[vector] == first[pair], second[pair] - 1, first[pair])
    out[against, vector] = entries.data
    return out
