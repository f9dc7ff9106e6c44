"""What every λ would have given."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from sklearn.base import clone

from mercer.arrays import Floats, Indices, freeze, take
from mercer.fitting.pipeline.attached import RidgePathMethods, attach_named
from mercer.solvers.least_squares.spectrum import best_of


@dataclass(frozen=True, eq=False)
class PathSource:
    """What a path makes machines of: one that is not fitted, and the training samples, where those are kept.

    `member`, `y` and `weight` are of each training row the sample in X that it is, its target, and its weight with that
    of its class; `names` are those of the features.
    """

    machine: Any
    X: Any
    member: Indices
    y: Any
    weight: Floats
    names: Any = None

    def fitted(self, lam: float, X: Any, y: Any, sample_weight: Any) -> Any:
        """The machine at one λ, on these samples, or on those that are kept."""
        model = clone(self.machine).set_params(lam=lam)
        if X is not None:
            return model.fit(X, y, sample_weight=sample_weight)
        if "class_weight" in model.get_params(deep=False):  # which the weights hold already
            model.set_params(class_weight=None)
        model.fit(take(self.X, self.member), self.y, sample_weight=self.weight)
        if self.names is not None:
            model.feature_names_in_ = self.names
        return model


@dataclass(frozen=True, eq=False, repr=False)
class RidgePath(RidgePathMethods):
    """Least squares for a whole grid of λ, from one decomposition.

    Attributes
    ----------
    lams : array of shape (n_lams,)
        The values of λ.
    loo_errors, gcv, norms : arrays of shape (n_lams, n_outputs)
        Mean squared leave-one-out residual, generalised cross-validation, and ‖f‖ in the kernel's space.
    dof : array of shape (n_lams,)
        Effective degrees of freedom: the trace of the matrix that maps y to f.
    scores : array of shape (n_lams,)
        What was minimised to choose λ.
    criterion : str
        "loo", "gcv" or, for classifiers, "mistakes".
    params : dict
        The kernel's parameters, where a grid of them was searched.
    """

    lams: Floats
    loo_errors: Floats
    gcv: Floats
    norms: Floats
    dof: Floats
    scores: Floats
    criterion: str
    params: dict[str, Any] = field(default_factory=dict)
    _source: PathSource | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        for part in fields(self):
            freeze(getattr(self, part.name))

    def __repr__(self) -> str:
        ends = f"{self.lams.min():.3g} to {self.lams.max():.3g}"
        return f"RidgePath({len(self.lams)} λ from {ends}, best {self.lam:.3g} by {self.criterion!r})"

    @property
    def best(self) -> int:
        """The index of the chosen λ; of equally good ones the largest, which gives the simplest f."""
        return best_of(self.scores)

    @property
    def lam(self) -> float:
        """The chosen λ."""
        return float(self.lams[self.best])

    def made_of(self, source: PathSource) -> RidgePath:
        """This path, which from now on can make machines."""
        object.__setattr__(self, "_source", source)
        return self

    def at(self, lam: float, X: Any = None, y: Any = None, sample_weight: Any = None) -> Any:
        """The machine at any λ, fitted and certified: `dual_coef_`, `coef_` and `intercept_` are its coefficients.

        Parameters
        ----------
        lam : float
            λ, on the grid or not.
        X : array, CSR matrix or list, optional
            The training samples. A machine with a linear kernel keeps none, nor does a file; the path of any other
            machine knows them.
        y : array, optional
            Their targets, if X is given.
        sample_weight : array, optional
            Their weights, if X is given.

        Returns
        -------
        RLSRegressor or RLSClassifier
        """
        if self._source is None:
            raise ValueError(
                "this path comes from a file, which says nothing of the training samples: fit RLSRegressor(lam=...) or "
                "RLSClassifier(lam=...) on them"
            )
        if X is None and self._source.X is None:
            raise ValueError(
                "a machine with a linear or a precomputed kernel keeps no training samples: call at(lam, X, y)"
            )
        return self._source.fitted(lam, X, y, sample_weight)


attach_named(RidgePath)
