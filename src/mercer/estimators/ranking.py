"""Ranking: which of two samples is better, learnt from the pairs of each group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from mercer.estimators.fitting.pipeline.fit import Fit
from mercer.estimators.fitting.pipeline.task import Solutions, Task, Tasks
from mercer.estimators.fitting.reports.ordered_pairs import share_of_ordered_pairs
from mercer.estimators.kernel_machine import RepresentedMachine
from mercer.problems.ranking import RankProblem
from mercer.runtime.parameters import positive
from mercer.runtime.refitting import blank_copy
from mercer.runtime.shared_docs import shared_docs
from mercer.samples import checks as samples
from mercer.samples.arrays import Data, Floats, Indices, Weights
from mercer.samples.engine import like_input, on_host, placed
from mercer.solvers.ranking import solve_ranking


@shared_docs
@dataclass(eq=False, repr=False)
class RankSVM(RepresentedMachine):
    """A function that puts the better sample of every pair ahead; pairs are those of a group with different y.

    Minimises ½‖w‖² + Σ C_ij max(0, 1 − (f(x_i) − f(x_j))) over the pairs with y_i > y_j and the same `qid`, C_ij = C
    times the weights of both. That is a linear or kernel SVM without bias on the differences of all pairs (Joachims'
    SVMrank, SVMlight's -z p); the pairs are never built.

    Parameters
    ----------
    C : float, default=1.0
        Price of a pair in the wrong order, or ahead by less than 1.
    %(kernel)s
    tol : float, default=1e-6
        How far the objective may be above its minimum, as a share of it.
    cache_size : float, default=1000
        Memory in MB that a fit may use beyond the data: 32 bytes times n_samples², or, with kernel="linear" on fewer
        columns than rows, times n_samples · n_features.
    %(verbose)s
    max_iter : int, default=-1
        Limit on Newton steps; −1 stands for 500.
    max_time : float, optional
        Limit in seconds. A fit that meets a limit warns, returns what it has, and says so in `stop_reason_`.
    %(n_jobs)s

    Attributes
    ----------
    certificate_ : Certificate
        Primal and dual value, gap and optimality conditions, recomputed after training.
    converged_ : bool
    stop_reason_ : str
        "converged", "rounding floor", "max_iter" or "max_time".
    dual_coef_ : array of shape (1, n_samples)
        β, with f(x) = Σ_j β_j k(x_j, x): Σα over the pairs that a sample should win, less those it should lose.
    intercept_ : array of shape (1,)
        0: only differences of f count.
    n_iter_ : int
    %(kernel with its numbers)s

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

    _default_steps = 500  # of Newton's method

    C: float = 1.0

    def fit(self, X: Data, y: ArrayLike | None, sample_weight: Weights = None, qid: ArrayLike | None = None) -> Self:
        """Train on samples X of which those with a larger y are better, within each group.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            A list of strings for a string kernel; the square kernel matrix for a precomputed one.
        y : array of shape (n_samples,)
            How good each sample is; only the order counts.
        sample_weight : array of shape (n_samples,), optional
            A weight counts like that many repetitions of its sample: a pair has the product of both.
        qid : array of shape (n_samples,), optional
            The group of each sample, such as the query it answers; None: all are compared with all.

        Returns
        -------
        self
        """
        asked = blank_copy(self)
        asked._qid = on_host(qid)
        super(RankSVM, asked).fit(X, y, sample_weight)
        del asked._qid
        return self._become(asked)

    def _check_parameters(self) -> None:
        positive("C", self.C)

    def _read(self, y: ArrayLike | None) -> tuple[Indices, tuple[Indices, Indices]]:
        return _levels(y, self._qid)

    def _tasks(self, fit: Fit) -> Tasks[RankProblem]:
        level, group = (part[fit.merged.first] for part in fit.target)
        best = np.zeros(int(group.max()) + 1, dtype=np.intp)
        np.maximum.at(best, group, level)
        if not (level < best[group]).any():
            raise ValueError(
                "no two samples of a group differ in y, so that there is nothing to rank; y must differ within a qid. "
                "Ranking cannot be learnt from 1 class"
            )
        return Tasks([Task("", RankProblem(level, group, fit.merged.weight, float(self.C)), solve_ranking)])

    def _conclude(self, fit: Fit, solved: Solutions[RankProblem]) -> None:
        self.n_iter_ = max(1, solved[0].solution.steps)
        self._conclude_coefficients(fit, solved[0].solution.beta[:, None], np.zeros(1))

    @like_input
    def predict(self, X: Data) -> Floats:
        """f(x) of each sample: the larger, the better; what it is compared with must be of the same group.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            As in `fit`; of a precomputed kernel, its values between these and the training samples.
        """
        return np.asarray(self._decision(X)[:, 0])

    def score(self, X: Data, y: ArrayLike, sample_weight: Weights = None, qid: ArrayLike | None = None) -> float:
        """The share of pairs in the right order; two equal f(x) count as half a pair.

        NaN, with scikit-learn's UndefinedMetricWarning, where no two samples of a group differ in y: there is no pair.

        Parameters
        ----------
        X, y, sample_weight, qid : as in `fit`
        """
        f = self.predict(placed(X))
        _, (level, group) = _levels(on_host(y), on_host(qid))
        weight = samples.weights(on_host(sample_weight), len(f))
        return share_of_ordered_pairs(RankProblem(level, group, weight, 1.0), f)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _levels(y: ArrayLike | None, qid: Any) -> tuple[Indices, tuple[Indices, Indices]]:
    """A code for each (group, y), and the place of y among those of its group and the group, both from 0."""
    target = samples.numbers(y)
    exact = np.asarray(y).ravel()
    if exact.dtype.kind in "iu" and exact.shape == target.shape:  # whole numbers above 2⁵³ differ where floats do not
        target = np.unique(exact, return_inverse=True)[1].ravel().astype(np.float64)
    if qid is None:
        qid = np.zeros(len(target))
    qid = np.asarray(qid)
    if qid.shape != target.shape:
        raise ValueError(f"qid has shape {qid.shape}, but y has {len(target)} entries: each sample has one group")
    missing = np.flatnonzero([one is None or one != one for one in qid.tolist()])
    if len(missing):
        raise ValueError(
            f"qid has no value in {len(missing)} of {len(qid)} rows (the first: {missing[0]}): the group of every "
            "sample must be known; leave these rows out, or give each a group of its own"
        )
    group = np.unique(qid, return_inverse=True)[1].ravel()
    order = np.lexsort((target, group))
    fresh = np.diff(group[order], prepend=-1) != 0
    higher = fresh | (np.diff(target[order], prepend=0.0) != 0)
    code = np.empty(len(target), dtype=np.intp)
    code[order] = np.cumsum(higher) - 1
    starts = np.zeros(int(group.max()) + 1, dtype=np.intp)
    starts[group[order][fresh]] = code[order][fresh]
    return code, (code - starts[group], group)
