"""Stochastic subgradient descent on a stream: one pass over each chunk, which is then forgotten."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_consistent_length

from mercer.arrays import freeze, is_sparse
from mercer.data import samples
from mercer.data.labels import class_weights, codes_among, known_classes
from mercer.data.merging import merge
from mercer.fitting.pegasos_machine import PegasosMachine, deadline_of, seed_of
from mercer.fitting.state import fitted_names
from mercer.solvers.pegasos.descent import advance
from mercer.solvers.pegasos.draws import one_pass
from mercer.solvers.pegasos.iterates import Iterates
from mercer.solvers.pegasos.spaces import Call
from mercer.threads import effective_n_threads


class StreamLearner(PegasosMachine):
    """A machine that goes on learning."""

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Go on training with one pass over a chunk: every row is visited as often as its weight says.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Classes may be missing from a chunk.
        classes : array, optional
            All classes there are; required at the first call unless the machine was fitted before.
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        self
        """
        learner = copy.copy(self)
        learner._learn(X, y, classes, sample_weight, deadline_of(self.max_time))
        self._take_over(learner)
        return self

    def fit_stream(self, chunks: Iterable[Any], classes: Any) -> Self:
        """Train from the start in one pass over an iterable of chunks (X, y) or (X, y, sample_weight).

        No chunk is kept, except for the vectors that a kernel machine needs. If a chunk fails, or the iterable does,
        the machine is left as it was.

        Parameters
        ----------
        chunks : iterable of tuples
        classes : array
            All classes that may occur.

        Returns
        -------
        self
        """
        learner = copy.copy(self)
        for name in fitted_names(learner):
            delattr(learner, name)
        deadline, chunk = deadline_of(self.max_time), None
        for number, chunk in enumerate(chunks):
            if not isinstance(chunk, tuple) or len(chunk) not in (2, 3):
                raise ValueError(
                    f"chunk {number} of the stream is {type(chunk).__name__}; give tuples (X, y) or "
                    "(X, y, sample_weight)"
                )
            learner._learn(chunk[0], chunk[1], classes, chunk[2] if len(chunk) == 3 else None, deadline)
            if not learner.converged_:
                break
        if chunk is None:
            raise ValueError("the stream holds no chunk: there is nothing to train on")
        self._take_over(learner)
        return self

    def _take_over(self, learner: Self) -> None:
        for name in fitted_names(self):
            delattr(self, name)
        self.__dict__.update(vars(learner))

    def _learn(self, X: Any, y: Any, classes: Any, sample_weight: Any, deadline: float) -> None:
        """One pass over a chunk."""
        self._check_parameters()
        for name, value in (("early_stopping", self.early_stopping), ("certificate", self.certificate)):
            if value:
                raise ValueError(f"{name}=True needs all samples at once: use fit, or set it to False for a stream")
        if isinstance(self.class_weight, str):
            raise ValueError(
                f"class_weight={self.class_weight!r} needs all labels at once; give a dict from label to weight"
            )
        first = not hasattr(self, "_theta_")
        kernel = self._kernel() if first else self.kernel_
        if kernel.accepts == "gram":
            raise ValueError("a precomputed kernel matrix cannot come as a stream: use fit, or another kernel")
        X = self._samples(X, kernel, reset=first)
        labels = known_classes(classes, None if first else self.classes_)
        codes = codes_among(labels, y)
        check_consistent_length(X, codes)
        weight = samples.weights(sample_weight, len(codes))
        if first:
            # Factors are checked against all classes, which the chunk need not show.
            every = np.arange(len(labels))
            factor = class_weights(self.class_weight, labels, every, np.ones(len(labels)))
            self.classes_, self.class_weight_ = freeze(labels), freeze(factor)
            self._seed_, self.n_iter_ = seed_of(self.random_state), 0
        for name in ("objective_", "certificate_", "validation_loss_"):
            self.__dict__.pop(name, None)
        self.stop_reason_, self.converged_ = "all steps", True
        number = self.n_iter_
        self.n_iter_ = number + 1
        if not weight.any():
            weight = weight[:0]
        merged = merge(X, codes, weight, identical=kernel.mergeable, n_threads=effective_n_threads(self.n_jobs))
        self.kernel_, gram = self._bound(kernel, merged)
        older = 0 if first or gram is None else len(self._theta_[0])
        problem, space = self._problem(merged), self._space(merged, gram, older)
        if first:
            iterates = Iterates.zero(len(problem.signs), space.size)
        else:
            arrays = (self._theta_, self._total_, self._marks_, self._norm2_)
            iterates = Iterates(*arrays, self.t_).extended(space.size - len(self._theta_[0]))
        if len(merged.y):
            draws = one_pass(self._seed_, number, problem.weight)
            call = Call(iterates, problem.lam, bool(self.project), None)
            made = advance(space, problem.signs, draws, call, deadline)
            if made < len(draws):
                self.stop_reason_, self.converged_ = "max_time", False
                warnings.warn(
                    f"PegasosSVC visited {made:,} of the {len(draws):,} rows of chunk {number + 1} (max_time); "
                    "raise max_time",
                    ConvergenceWarning,
                    stacklevel=3,
                )
        vectors = None
        if gram is not None:
            new = merged.X
            vectors = new if first else _stack(self._expansion_.vectors, new)
        self._adopt(iterates, iterates.finite_output(problem.lam, self.average), vectors)


def _stack(old: Any, new: Any) -> Any:
    """Vectors of an expansion and those of a chunk, sparse where either is."""
    if not hasattr(new, "shape"):
        return [*old, *new]
    if is_sparse(old) or is_sparse(new):
        return sp.csr_array(sp.vstack([old, new]))
    return np.vstack([old, new])
