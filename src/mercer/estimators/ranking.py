"""Ranking support vector machine, which learns an order from the pairs of samples in each group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from mercer.estimators.fitting.pipeline.fit import Fit
from mercer.estimators.fitting.pipeline.task import Solutions, Task, Tasks
from mercer.estimators.fitting.reports.ordered_pairs import share_of_ordered_pairs
from mercer.estimators.kernel_machine import RepresenterMachine
from mercer.problems.ranking import RankProblem
from mercer.runtime.parameters import positive
from mercer.runtime.refitting import blank_copy
from mercer.runtime.shared_docs import shared_docs
from mercer.samples import checks
from mercer.samples.arrays import Data, Floats, Indices, Weights
from mercer.samples.engine import like_input, on_host, to_engine
from mercer.solvers.ranking import solve_ranking


@shared_docs
@dataclass(eq=False, repr=False)
class RankSVM(RepresenterMachine):
    """Ranking support vector machine with a certificate of optimality.

    Learns a function f that orders the samples of each group as y does: minimises
    ½‖w‖² + Σ C_ij max(0, 1 − (f(x_i) − f(x_j))) over the pairs with y_i > y_j and the same `qid`, where C_ij is C times
    the weights of both samples. This is an SVM without bias on the differences of all pairs (Joachims' SVMrank,
    SVMlight's -z p); the pairs are never formed explicitly.

    Parameters
    ----------
    C : float, default=1.0
        Penalty for a pair that is in the wrong order or in the right order by less than 1.
    %(kernel)s
    tol : float, default=1e-6
        Largest distance of the objective from its minimum, relative to the minimum.
    cache_size : float, default=1000
        Memory in MB that a fit may use in addition to the data. It takes 32 bytes times n_samples² or, with
        kernel="linear" and fewer features than samples, times n_samples · n_features.
    %(verbose)s
    max_iter : int, default=-1
        Maximum number of Newton steps; −1 means 500.
    max_time : float, optional
        Time limit in seconds. A fit that reaches a limit warns and keeps its current solution; see `stop_reason_`.
    %(n_jobs)s

    Attributes
    ----------
    certificate_ : Certificate
        Primal and dual value, gap and optimality conditions, recomputed after training.
    converged_ : bool
        Whether the requested accuracy was reached.
    stop_reason_ : str
        Reason why training ended: "converged", "rounding floor", "max_iter" or "max_time".
    dual_coef_ : array of shape (1, n_samples)
        Coefficients β of f(x) = Σ_j β_j k(x_j, x): the sum of α over the pairs in which the sample is the better one,
        minus the sum over those in which it is the worse one.
    intercept_ : array of shape (1,)
        Always 0, since only differences of f matter.
    n_iter_ : int
        Number of Newton steps.
    %(kernel with its numbers)s

    See Also
    --------
    SVC : Support vector classification.
    mercer.losses : Other losses of differences, for `KernelMachine`.

    Examples
    --------
    >>> from mercer import RankSVM
    >>> X = [[3.0, 0.0], [2.0, 1.0], [1.0, 0.0], [5.0, 1.0], [4.0, 0.0]]
    >>> model = RankSVM(kernel="linear").fit(X, y=[3, 2, 1, 1, 0], qid=[1, 1, 1, 2, 2])
    >>> model.predict(X)[:3].round(2)
    array([3., 2., 1.])
    >>> model.score(X, [3, 2, 1, 1, 0], qid=[1, 1, 1, 2, 2])
    1.0
    """

    _default_steps = 500  # steps of Newton's method

    C: float = 1.0

    def fit(self, X: Data, y: ArrayLike | None, sample_weight: Weights = None, qid: ArrayLike | None = None) -> Self:
        """Fit the machine to samples, of which those with a larger y should rank higher within their group.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Training samples: a list of strings for a string kernel, the square kernel matrix for a precomputed one.
        y : array of shape (n_samples,)
            Relevance of each sample; only the order matters.
        sample_weight : array of shape (n_samples,), optional
            Sample weights. A weight is equivalent to that many repetitions of the sample; a pair has the product of
            its two weights.
        qid : array of shape (n_samples,), optional
            Group of each sample, such as its query; None means a single group.

        Returns
        -------
        self
            Fitted estimator.
        """
        fitted_copy = blank_copy(self)
        fitted_copy._qid = on_host(qid)
        super(RankSVM, fitted_copy).fit(X, y, sample_weight)
        del fitted_copy._qid
        return self._adopt(fitted_copy)

    def _check_parameters(self) -> None:
        positive("C", self.C)

    def _read(self, y: ArrayLike | None) -> tuple[Indices, tuple[Indices, Indices]]:
        return _levels(y, self._qid)

    def _tasks(self, fit: Fit) -> Tasks[RankProblem]:
        """Return the task of all pairs; raise ValueError if no two samples of a group differ in y."""
        level, group = (part[fit.merged.first] for part in fit.target)
        best = np.zeros(int(group.max()) + 1, dtype=np.intp)
        np.maximum.at(best, group, level)
        if not (level < best[group]).any():
            raise ValueError(
                "no two samples of a group differ in y, so there is nothing to rank; y must differ within a qid. "
                "Ranking cannot be learnt from 1 class"
            )
        return Tasks([Task("", RankProblem(level, group, fit.merged.weight, float(self.C)), solve_ranking)])

    def _conclude(self, fit: Fit, solved: Solutions[RankProblem]) -> None:
        """Set the fitted attributes that only this kind of machine has."""
        self.n_iter_ = max(1, solved[0].solution.steps)
        self._conclude_coefficients(fit, solved[0].solution.beta[:, None], np.zeros(1))

    @like_input
    def predict(self, X: Data) -> Floats:
        """Predict the ranking score f(x) of each sample.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            Samples, as in `fit`. For a precomputed kernel, the kernel values with the training samples.

        Returns
        -------
        array of shape (n_samples,)
            Scores: larger ones rank higher. Only scores of the same group are comparable.
        """
        return np.asarray(self._decision(X)[:, 0])

    def score(self, X: Data, y: ArrayLike, sample_weight: Weights = None, qid: ArrayLike | None = None) -> float:
        """Return the fraction of pairs in the right order; a pair with equal f(x) counts as half.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            Samples, as in `predict`.
        y : array of shape (n_samples,)
            Relevance of each sample.
        sample_weight : array of shape (n_samples,), optional
            Sample weights.
        qid : array of shape (n_samples,), optional
            Group of each sample; None means a single group.

        Returns
        -------
        float
            Score between 0 and 1; NaN, with scikit-learn's UndefinedMetricWarning, if no two samples of a group differ
            in y.
        """
        f = self.predict(to_engine(X))
        _, (level, group) = _levels(on_host(y), on_host(qid))
        weight = checks.weights(on_host(sample_weight), len(f))
        return share_of_ordered_pairs(RankProblem(level, group, weight, 1.0), f)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _levels(y: ArrayLike | None, qid: Any) -> tuple[Indices, tuple[Indices, Indices]]:
    """Return three integers for each sample, as code, (level, group), all counted from 0.

    Samples have the same code if they have the same group and y; the level is the rank of y among the distinct y of the
    group.
    """
    target = checks.numbers(y)
    y_as_given = np.asarray(y).ravel()
    # Integers above 2⁵³ may differ where floats do not.
    if y_as_given.dtype.kind in "iu" and y_as_given.shape == target.shape:
        target = np.unique(y_as_given, return_inverse=True)[1].ravel().astype(np.float64)
    if qid is None:
        qid = np.zeros(len(target))
    qid = np.asarray(qid)
    if qid.shape != target.shape:
        raise ValueError(f"qid has shape {qid.shape}, but y has {len(target)} entries: each sample has one group")
    missing = np.flatnonzero([value is None or value != value for value in qid.tolist()])
    if len(missing):
        raise ValueError(
            f"qid is missing in {len(missing)} of {len(qid)} rows (the first: {missing[0]}): the group of every "
            "sample must be known; drop these rows, or give each a group of its own"
        )
    group = np.unique(qid, return_inverse=True)[1].ravel()
    order = np.lexsort((target, group))
    is_new_group = np.diff(group[order], prepend=-1) != 0
    is_new_level = is_new_group | (np.diff(target[order], prepend=0.0) != 0)
    code = np.empty(len(target), dtype=np.intp)
    code[order] = np.cumsum(is_new_level) - 1
    starts = np.zeros(int(group.max()) + 1, dtype=np.intp)
    starts[group[order][is_new_group]] = code[order][is_new_group]
    return code, (code - starts[group], group)
