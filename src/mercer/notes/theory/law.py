"""A known distribution of samples and labels on finitely many points: Bayes rule, risks and complexities as sums.

A law has points x_j with probabilities p_j, and η_j = P(y = 1 | x_j). Densities become a law on the nodes of a
quadrature rule, with its weights times the density as probabilities. Then

    Bayes risk    Σ p_j min(η_j, 1 − η_j)
    risk of f     Σ p_j (η_j ℓ(1, f(x_j)) + (1 − η_j) ℓ(−1, f(x_j)))
    R_n           E max_f |2/n Σ_j s_j f(x_j)|, where s_j is the sum of the signs of the samples drawn at x_j
"""

from __future__ import annotations

import itertools
import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, stats
from sklearn.exceptions import ConvergenceWarning

from mercer.estimators import SVC
from mercer.kernels.names import KernelLike, as_kernel
from mercer.notes.theory.complexity import Complexity, trace_bound
from mercer.notes.theory.finite_sets import Rules, dichotomies_of
from mercer.notes.theory.risks import LossName, sample_losses
from mercer.problems.losses import Loss
from mercer.runtime.parameters import Seed, integer, positive
from mercer.samples.arrays import Floats, freeze

# log of the largest C in the search of `best_in_ball`, in units of the smallest; largest C·max k(x, x), above which
# rounding in the coefficients hides f; and the largest error of its risk.
_LARGEST_LOG_C, _LARGEST_VALUE, _LARGEST_ERROR = 15.0, 1e10, 1e-5


@dataclass(frozen=True, eq=False)
class Law:
    """Distribution of samples and labels ±1 on finitely many points, such as the nodes of a quadrature rule.

    Parameters
    ----------
    X : array of shape (m, d)
        Points.
    eta : array of shape (m,)
        η = P(y = 1 | x) at each point.
    probabilities : array of shape (m,), optional
        Probability of each point; by default all are equal.

    Examples
    --------
    >>> from mercer.notes.theory import Law
    >>> law = Law([[0.0], [1.0], [2.0]], eta=[0.1, 0.5, 0.8], probabilities=[0.5, 0.25, 0.25])
    >>> law.bayes_labels, round(law.bayes_risk, 6)  # 0.5·0.1 + 0.25·0.5 + 0.25·0.2
    (array([-1.,  1.,  1.]), 0.225)
    >>> round(law.risk(lambda X: X[:, 0] - 1.5), 6)
    0.225
    """

    X: ArrayLike
    eta: ArrayLike
    probabilities: ArrayLike | None = None

    def __post_init__(self) -> None:
        X, eta = np.array(self.X, dtype=np.float64), np.array(self.eta, dtype=np.float64)
        m = len(X) if X.ndim == 2 else 0
        if m < 1 or not np.isfinite(X).all() or eta.shape != (m,) or not ((eta >= 0) & (eta <= 1)).all():
            raise ValueError(
                f"X must have a finite row per point, and eta a probability for each; the shapes are {X.shape} and "
                f"{eta.shape}"
            )
        p = np.full(m, 1.0 / m) if self.probabilities is None else np.array(self.probabilities, dtype=np.float64)
        if p.shape != (m,) or not (p >= 0).all() or abs(float(p.sum()) - 1.0) > 1e-9:
            raise ValueError(f"probabilities must be {m} numbers ≥ 0 with the sum 1, not {p!r:.80}")
        for name, values in (("X", X), ("eta", eta), ("probabilities", p / p.sum())):
            object.__setattr__(self, name, freeze(values))

    @property
    def bayes_labels(self) -> Floats:
        """Bayes rule: the more probable label at each point, +1 where both are equally probable."""
        return np.where(np.asarray(self.eta) >= 0.5, 1.0, -1.0)

    @property
    def bayes_risk(self) -> float:
        """Bayes risk: the error probability of the Bayes rule."""
        return self.risk(self.bayes_labels)

    def risk(self, f: Any, *, loss: LossName | Loss = "zero_one") -> float:
        """Compute the risk E ℓ(y, f(x)) of a function.

        Parameters
        ----------
        f : callable or array of shape (m,)
            Function from X to a number for each point, such as `decision_function`, or its values at the points.
        loss : str or object, default="zero_one"
            Loss, as for `risk`.

        Returns
        -------
        float
            The risk.
        """
        if hasattr(loss, "combine"):
            raise ValueError(f"loss={loss!r} is not a sum over samples, and so has no expectation over one sample")
        values = np.asarray(f(self.X) if callable(f) else f, dtype=np.float64)
        m = len(np.asarray(self.eta))
        if values.shape != (m,):
            raise ValueError(f"f must give a number for each of the {m} points, not the shape {values.shape}")
        signs = np.repeat([1.0, -1.0], m)
        losses = sample_losses(signs, np.tile(values, 2), loss=loss)
        return float(losses @ self._joint)

    @property
    def _joint(self) -> Floats:
        """P(x_j, 1) for all points, then P(x_j, −1)."""
        p, eta = np.asarray(self.probabilities), np.asarray(self.eta)
        joint = np.concatenate([p * eta, p * (1.0 - eta)])
        return np.asarray(joint / joint.sum())

    def ball_complexity(
        self,
        n: int,
        *,
        norm: float = 1.0,
        kernel: KernelLike = "linear",
        n_draws: int = 10_000,
        random_state: Seed = 0,
    ) -> Complexity:
        """Compute the Rademacher complexity R_n = E_S R̂ of the ball ‖w‖ ≤ norm (Igel, section 2.2.1).

        Parameters
        ----------
        n : int
            Number of samples.
        norm : float, default=1.0
            Radius B of the ball.
        kernel : Kernel or str, default="linear"
            Kernel with its parameters as numbers, such as Gaussian(gamma=0.5).
        n_draws : int, default=10000
            Number of draws of samples and signs; the result is exact if there are no more different ones.
        random_state : int or Generator, default=0
            Seed of the draws.

        Returns
        -------
        Complexity
            R_n as `value`, its `standard_error`, and `bound`, 2B√(E k(x, x)/n).
        """
        integer("n", n, 1, "the number of samples")
        integer("n_draws", n_draws, 2, "a standard error needs two draws")
        p = np.asarray(self.probabilities)
        K = np.asarray(as_kernel(kernel).bind(self.X)(self.X))
        bound = trace_bound(float(n * (p @ K.diagonal())), n, norm=norm)
        m, probabilities = len(p), np.concatenate([p, p]) / (2.0 * p.sum())
        is_exact = math.comb(2 * m + n - 1, n) <= n_draws  # numbers of samples at each point with each sign
        if is_exact:
            rows = itertools.combinations_with_replacement(range(2 * m), n)
            counts = np.array([np.bincount(row, minlength=2 * m) for row in rows])
            chances = stats.multinomial.pmf(counts, n, probabilities)
        else:
            counts, chances = np.random.default_rng(random_state).multinomial(n, probabilities, size=n_draws), None
        s = (counts[:, :m] - counts[:, m:]).astype(np.float64)
        suprema = 2.0 * norm / n * np.sqrt(np.maximum(np.einsum("ij,ij->i", s @ K, s), 0.0))
        error = 0.0 if is_exact else float(suprema.std(ddof=1) / math.sqrt(n_draws))
        return Complexity(float(np.average(suprema, weights=chances)), error, len(counts), bound)

    def best_in_ball(
        self,
        norm: float,
        *,
        kernel: KernelLike = "linear",
    ) -> SVC:
        """Find the w* with ‖w‖ ≤ norm that has the least hinge risk, without bias.

        Parameters
        ----------
        norm : float
            Largest norm B of w.
        kernel : Kernel or str, default="linear"
            Kernel with its parameters as numbers, such as Gaussian(gamma=0.5).

        Returns
        -------
        SVC
            Machine with w*; its decision function has a hinge risk, `risk` with loss="hinge", and a 0-1 risk. The hinge
            risk is at most 10⁻⁵ above the least, which the dual proves; ValueError is raised if it is not.

        Examples
        --------
        >>> from mercer.notes.theory import Law
        >>> law = Law([[1.0], [-1.0]], eta=[0.9, 0.2])
        >>> f = law.best_in_ball(0.5).decision_function
        >>> round(law.risk(f, loss="hinge"), 6), round(law.risk(f), 6)  # w = 0.5: 1 − 0.5·(0.8 + 0.6)/2
        (0.65, 0.15)
        """
        limit, joint = positive("norm", norm), self._joint
        kept = joint > 0
        if not (joint[: len(joint) // 2].any() and joint[len(joint) // 2 :].any()):
            raise ValueError("eta gives all points the same label with probability 1, and an SVC needs two classes")
        X, signs = np.vstack([self.X, self.X])[kept], np.repeat([1.0, -1.0], len(joint) // 2)[kept]
        bound = as_kernel(kernel).bind(self.X)

        def fit(log_C: float) -> SVC:
            machine = SVC(kernel=bound, C=math.exp(log_C), bias=False, tol=1e-8)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # the error is bounded below
                return machine.fit(X, signs, sample_weight=joint[kept])

        def excess(log_C: float) -> float:
            return float(np.ravel(fit(log_C).rkhs_norm_)[0]) - limit

        # ‖w‖ grows with C. With r = max √k(x, x), ‖w‖ ≤ r·Σα ≤ rC, so that C = norm/r is small enough.
        r = math.sqrt(max(float(bound.diag(X).max()), np.finfo(np.float64).tiny))
        low = math.log(limit) - math.log(r)
        high = max(low, min(low + _LARGEST_LOG_C, math.log(_LARGEST_VALUE) - 2.0 * math.log(r)))
        log_C = high if excess(high) <= 0 else optimize.brentq(excess, low, high, xtol=1e-12, rtol=1e-14)
        machine = fit(log_C)
        # C·risk(v) ≥ Σα − ⟨w, v⟩ for every v, where Σα = dual + ½‖w‖², so that the least risk in the ball is at least:
        w = float(np.ravel(machine.rkhs_norm_)[0])
        least = (machine.certificate_.dual + w * (0.5 * w - limit)) / math.exp(log_C)
        error = self.risk(machine.decision_function, loss="hinge") - least
        if not error <= _LARGEST_ERROR:
            raise ValueError(
                f"norm={limit:g} lets f grow to {limit * r:.2g} at these points, where rounding hides the least hinge "
                f"risk: it is known to {error:.1g} only; pass a smaller norm, or scale the points"
            )
        return machine

    def largest_deviations(self, rules: Rules, n: int, *, n_draws: int = 1000, random_state: Seed = 0) -> Floats:
        """Simulate sup (L − L_emp) over a class of rules: the largest difference of 0-1 risk and share of errors.

        Parameters
        ----------
        rules : SVC or sequence of callables
            Class of rules, as for `shattering`: a machine stands for all hyperplanes, for at most 12 points.
        n : int
            Number of samples.
        n_draws : int, default=1000
            Number of simulated sets of samples.
        random_state : int or Generator, default=0
            Seed of the draws.

        Returns
        -------
        array of shape (n_draws,)
            The supremum of each simulation. With probability 1 − δ it is at most ``finite_rules_bound(0, N, n)``, where
            N counts the rules that differ on the points.
        """
        integer("n", n, 1, "the number of samples")
        integer("n_draws", n_draws, 1, "the number of simulations")
        labels = dichotomies_of(rules, self.X, None)
        errors = np.hstack([labels < 0, labels > 0]).astype(np.float64)
        counts = np.random.default_rng(random_state).multinomial(n, self._joint, size=n_draws)
        return np.array([float((errors @ (self._joint - row / n)).max()) for row in counts])
