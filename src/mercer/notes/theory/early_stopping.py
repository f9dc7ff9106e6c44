"""Early stopping as regularisation: least squares by gradient steps in the kernel's space, ended after t of them.

Both methods lower ½ Σ w_i (y_i − f(x_i) − b)² from f = 0, where b is the best constant for each f, or 0:

    landweber            f ← f + η Σ w_i r_i k(x_i, ·),  r = y − f − b            steepest descent, η ≤ 1/Λ_max
    conjugate gradients  the best f of span{Ks, K²s, …, Kᵗs}, s = W(y − ȳ)        one dimension more in each step

With W^½KW^½ = QΛQ' (centred, where there is a bias), t steps of the first multiply component j of the solution by
1 − (1 − ηΛ_j)ᵗ, where a ridge λ multiplies it by Λ_j/(Λ_j + λ): 1/(ηt) plays the part of λ (Yao, Rosasco and
Caponnetto 2007; for conjugate gradients Blanchard and Krämer 2010). No further iteration is needed for another t.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from mercer.inspection.rkhs import Function
from mercer.kernels import Kernel
from mercer.kernels.names import KernelLike, as_kernel
from mercer.notes.theory.bound import numbers
from mercer.runtime.long_calls import abandonable
from mercer.runtime.parameters import integer, not_negative, one_of, positive
from mercer.runtime.shared_docs import shared_docs
from mercer.samples.arrays import Floats, Indices, freeze, gamma, host, n_samples
from mercer.samples.engine import on_host, placed
from mercer.samples.matrices import as_matrix
from mercer.solvers.early_stopping import SmoothedRule

# K, its eigenvectors and the work of LAPACK: 24 bytes for each of n² entries, 600 MB.
_MOST_SAMPLES = 5000
# Roundings of an element of S, beside those of a sum of n products with it: of the kernel's value and of centring.
_VALUE_ROUNDINGS = 32


@dataclass(frozen=True, eq=False)
class IterationPath:
    """Least squares after every number of steps.

    Attributes
    ----------
    method : str
        "landweber" or "cg".
    kernel : Kernel
        With all its parameters as numbers.
    step_size : float
        η of "landweber"; nan for "cg", which finds its own.
    steps : array of integers
        The numbers of steps t for which the other arrays hold something; `at` takes any t up to the last.
    errors : array of shape (n_steps, n_outputs)
        The mean squared error on the training samples, by weight.
    norms : array of shape (n_steps, n_outputs)
        ‖f‖ in the kernel's space.
    dof : array of shape (n_steps,)
        Effective degrees of freedom: the trace of the matrix that maps y to f + b. Conjugate gradients have no such
        matrix; theirs is the dimension, t and one for the bias.
    validation_errors : array
        The mean squared error on the samples given as `validation`; empty without any.
    kept : int or None
        The step with the least of these.
    """

    method: str
    kernel: Kernel
    step_size: float
    steps: Indices = field(repr=False)
    errors: Floats = field(repr=False)
    norms: Floats = field(repr=False)
    dof: Floats = field(repr=False)
    validation_errors: Floats = field(repr=False)
    kept: int | None
    _engine: _Landweber | _ConjugateGradients = field(repr=False)
    _vectors: Any = field(repr=False)
    _one_output: bool = field(repr=False)

    def coefficients(self, t: int) -> Floats:
        """c of f = Σ c_j k(x_j, ·) + b after t steps, a column per output if there are several.

        Parameters
        ----------
        t : int
            The number of steps.
        """
        C = self._engine.coefficients(self._checked(t))
        return np.asarray(C[:, 0] if self._one_output else C)

    def at(self, t: int) -> Function | list[Function]:
        """The function after t steps, with its coefficients and b; a list where there are several outputs.

        Parameters
        ----------
        t : int
            The number of steps.
        """
        C = self._engine.coefficients(self._checked(t))
        b = self._engine.data.biases_of(self._engine.data.K @ C)
        found = [Function(self._vectors, column, kernel=self.kernel, b=float(b[k])) for k, column in enumerate(C.T)]
        return found[0] if self._one_output else found

    def ridge(self, t: int) -> float:
        """λ = 1/(ηt), the ridge that damps small components as much as t steps of Landweber do."""
        if self.method != "landweber":
            raise ValueError("conjugate gradients damp no component by itself, so that no ridge corresponds to t steps")
        return math.inf if self._checked(t) == 0 else 1.0 / (self.step_size * t)

    @shared_docs
    def errors_on(self, X: Any, y: ArrayLike) -> Floats:
        """The mean squared error on other samples for each of `steps`, over all outputs.

        Parameters
        ----------
        %(new samples with targets)s
        """
        K, Y = _other(self.kernel, self._vectors, X, y, self.errors.shape[1])
        out = np.empty(len(self.steps))
        for k, t in enumerate(self.steps.tolist()):
            C = self._engine.coefficients(t)
            b = self._engine.data.biases_of(self._engine.data.K @ C)
            out[k] = np.mean((Y - K @ C - b) ** 2)
        return out

    @shared_docs
    def best(self, X: Any, y: ArrayLike) -> int:
        """The number of steps with the least error on other samples; of equally good ones the smallest.

        Parameters
        ----------
        %(new samples with targets)s
        """
        return int(self.steps[int(np.argmin(self.errors_on(X, y)))])

    def _checked(self, t: int) -> int:
        integer("t", t, 0, "the number of steps")
        if t > self.steps[-1]:
            raise ValueError(
                f"t={t} is beyond the path, which ends after {self.steps[-1]} steps; give a larger max_iter"
            )
        return int(t)


@shared_docs
def iteration_path(
    X: Any,
    y: ArrayLike,
    *,
    kernel: KernelLike = "rbf",
    degree: int = 3,
    gamma: float | str = "scale",
    coef0: float = 0.0,
    method: Literal["landweber", "cg"] = "landweber",
    max_iter: int = 100,
    step_size: float | None = None,
    bias: bool = True,
    sample_weight: ArrayLike | None = None,
    validation: tuple[Any, ArrayLike] | None = None,
    window: int = 5,
    rise: float = 0.05,
) -> IterationPath:
    """Least squares by early stopping: every number of steps at once.

    Parameters
    ----------
    X : array, CSR matrix or list
        At most 5,000 samples; the matrix of kernel values for kernel="precomputed".
    y : array of shape (n_samples,) or (n_samples, n_outputs)
        Their targets.
    %(kernel)s
    method : {"landweber", "cg"}, default="landweber"
        Gradient descent, or conjugate gradients, which take far fewer steps.
    max_iter : int, default=100
        The longest run. Conjugate gradients end before where nothing is left to gain.
    step_size : float, optional
        η of "landweber", below 2/Λ_max; by default 1/Λ_max.
    bias : bool, default=True
        Whether f has a constant b, which is not penalised.
    %(given twice)s
    validation : (X, y), optional
        Other samples: the path ends at the step where their mean squared error, averaged over `window` steps, exceeds
        its least by the share `rise` (see `stopping_step`), or after `max_iter`.
    window : int, default=5
        How many steps are averaged.
    rise : float, default=0.05
        The share above the least average at which the path ends.

    Returns
    -------
    IterationPath
        `at(t)` is the function after t steps and `coefficients(t)` its coefficients, `kept` the step with the least
        validation error; `steps`, and for each of them training `errors`, `norms`, `dof` and `validation_errors`;
        `errors_on(X, y)` and `best(X, y)` of other samples; `ridge(t)`, the λ that damps as t steps do.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Gaussian
    >>> from mercer.notes.theory import iteration_path
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(80, 1))
    >>> y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=80)
    >>> path = iteration_path(X[:50], y[:50], kernel=Gaussian(gamma=5.0), max_iter=1000)
    >>> t = path.best(X[50:], y[50:])
    >>> f = path.at(t)
    >>> 0 < t < 1000, bool(abs(f([[1.5]])[0] - 1) < 0.5), bool(path.dof[t] < path.dof[-1])
    (True, True, True)
    """
    one_of("method", method, ("landweber", "cg"))
    integer("max_iter", max_iter, 1, "the number of steps")
    integer("window", window, 1, "how many steps are averaged")
    not_negative("rise", rise)
    bound = as_kernel(kernel, degree=degree, gamma=gamma, coef0=coef0).bind(X)
    vectors = as_matrix(X) if bound.accepts == "vectors" else placed(X)
    n = n_samples(vectors)
    Y = np.array(on_host(y), dtype=np.float64)
    w = np.ones(n) if sample_weight is None else np.array(sample_weight, dtype=np.float64)
    if n > _MOST_SAMPLES or n == 0 or Y.shape[:1] != (n,) or Y.ndim > 2 or not np.isfinite(Y).all():
        raise ValueError(
            f"a path needs a finite target for each of at most {_MOST_SAMPLES} samples, at least one; X has {n} "
            f"samples and y the shape {Y.shape}"
        )
    if w.shape != (n,) or not (np.isfinite(w) & (w >= 0)).all() or not w.any():
        raise ValueError(f"sample_weight must be a finite number ≥ 0 for each of the {n} samples, not all 0")
    K = np.asarray(host(X) if bound.accepts == "gram" else bound(vectors), dtype=np.float64)
    if K.shape != (n, n) or not np.isfinite(K).all():
        raise ValueError(f"the kernel values of {n} samples must be finite and {n} × {n}, not of shape {K.shape}")
    table = Y.reshape(n, -1)
    data = _Data(K, table, w, bool(bias))
    engine = _Landweber(data, step_size, max_iter) if method == "landweber" else _ConjugateGradients(data, max_iter)
    held = np.empty((n, 0)) if bound.accepts == "gram" else vectors
    other = None if validation is None else _other(bound, held, *validation, table.shape[1])
    rule, kept = SmoothedRule(window, rise), None
    errors, norms, dof = [], [], []
    for t in range(engine.most + 1):  # one after the other: all of them would need memory for steps × samples
        C = engine.coefficients(t)
        u = K @ C
        b = data.biases_of(u)
        errors.append(w @ (table - u - b) ** 2 / w.sum())
        norms.append(np.sqrt(np.maximum(np.sum(C * u, axis=0), 0.0)))
        dof.append(engine.dof(t))
        if other is not None:
            stops, least = rule.take(float(np.mean((other[1] - other[0] @ C - b) ** 2)))
            kept = t if least else kept
            if stops:
                break
    return IterationPath(
        method,
        bound,
        engine.step_size,
        freeze(np.arange(len(errors))),
        freeze(np.array(errors)),
        freeze(np.array(norms)),
        freeze(np.array(dof)),
        freeze(np.array(rule.errors)),
        kept,
        engine,
        held,
        Y.ndim == 1,
    )


def _other(kernel: Kernel, vectors: Any, X: Any, y: ArrayLike, n_outputs: int) -> tuple[Floats, Floats]:
    """Kernel values between other samples and those of the path, and their targets."""
    X = placed(X)
    Y = np.asarray(on_host(y), dtype=np.float64).reshape(n_samples(X), -1)
    if Y.shape[1] != n_outputs:
        raise ValueError(f"y has {Y.shape[1]} outputs, but the path {n_outputs}")
    return np.asarray(host(X) if kernel.accepts == "gram" else kernel(X, vectors), dtype=np.float64), Y


class _Data:
    """Samples by their kernel values, centred where there is a bias: S = PW^½KW^½P and PW^½Y."""

    def __init__(self, K: Floats, Y: Floats, weight: Floats, bias: bool) -> None:
        self.K, self.Y, self.weight, self.bias = K, Y, weight, bias
        self.root = np.sqrt(weight)
        unit = self.root / math.sqrt(float(weight.sum()))
        S, target = self.root[:, None] * K * self.root, self.root[:, None] * Y
        if bias:
            S = S - np.outer(unit, unit @ S)
            S = S - np.outer(S @ unit, unit)
            target = target - np.outer(unit, unit @ target)
        self.S, self.target = 0.5 * (S + S.T), target

    def biases_of(self, U: Floats) -> Floats:
        """The best b for each output where f has the values U."""
        if not self.bias:
            return np.zeros(self.Y.shape[1])
        return np.asarray(self.weight @ (self.Y - U) / self.weight.sum())


class _Landweber:
    """Every t from one decomposition: z = Q diag((1 − (1 − ηΛ)ᵗ)/Λ) Q' PW^½Y."""

    def __init__(self, data: _Data, step_size: float | None, n_steps: int) -> None:
        self.data, self.most = data, n_steps
        values, self.basis = abandonable(np.linalg.eigh, data.S)
        self.values = np.maximum(values, 0.0)
        largest = float(self.values[-1])
        if values[0] < -1e-8 * max(largest, np.finfo(float).tiny):
            raise ValueError("the kernel is not positive definite on these samples: gradient steps would not converge")
        self.step_size = 1.0 / (largest or 1.0) if step_size is None else positive("step_size", step_size)
        if self.step_size * largest >= 2:
            raise ValueError(
                f"step_size={self.step_size:g} makes the steps diverge: it must be below 2/Λ_max = {2 / largest:.6g}"
            )
        self.inside = self.basis.T @ data.target

    def _reached(self, t: int) -> Floats:
        """1 − (1 − ηΛ)ᵗ, without cancellation where ηΛ is small."""
        step = self.step_size * self.values
        small = step < 0.5
        gentle = -np.expm1(t * np.log1p(-np.where(small, step, 0.0)))
        return np.asarray(np.where(small, gentle, 1.0 - (1.0 - step) ** t))

    def coefficients(self, t: int) -> Floats:
        tiny = self.values <= np.finfo(float).tiny
        filtered = np.where(tiny, self.step_size * t, self._reached(t) / np.where(tiny, 1.0, self.values))
        return np.asarray(self.data.root[:, None] * (self.basis @ (filtered[:, None] * self.inside)))

    def dof(self, t: int) -> float:
        return float(self._reached(t).sum()) + self.data.bias


class _ConjugateGradients:
    """CGLS: z_t is the best combination of s, Ss, …, S^(t−1)s, s = PW^½Y, each output on its own."""

    step_size = math.nan

    def __init__(self, data: _Data, n_steps: int) -> None:
        self.data = data
        z, r = np.zeros_like(data.target), data.target.copy()
        gradient = data.S @ r  # of f, as values; r are its coefficients
        p, q = r.copy(), gradient.copy()
        square = np.sum(r * gradient, axis=0)
        live, sizes = np.ones(z.shape[1], dtype=bool), np.abs(data.S)
        self.iterates = [z]
        for _ in range(n_steps):
            # Where rounding can explain the gradient, further directions would be noise.
            noise = gamma(len(r) + _VALUE_ROUNDINGS) * (sizes @ np.abs(r))
            live = live & (square > 0) & (np.sum(gradient**2, axis=0) > np.sum(noise**2, axis=0))
            if not live.any():
                break
            size = np.divide(square, np.sum(q * q, axis=0), out=np.zeros_like(square), where=live)
            z, r = z + size * p, r - size * q
            gradient = data.S @ r
            fresh = np.sum(r * gradient, axis=0)
            share = np.divide(fresh, square, out=np.zeros_like(square), where=live)
            p, q, square = r + share * p, gradient + share * q, fresh
            self.iterates.append(z)
        self.most = len(self.iterates) - 1

    def coefficients(self, t: int) -> Floats:
        return np.asarray(self.data.root[:, None] * self.iterates[t])

    def dof(self, t: int) -> float:
        return float(t + self.data.bias)


def stopping_step(errors: ArrayLike, *, window: int = 5, rise: float = 0.05) -> tuple[int, int]:
    """When training stops: at the step where the smoothed validation error has risen considerably above its least.

    Single rises are noise; so the error is averaged over a window first, and must exceed its least value by a share
    (Igel, section 2.2).

    Parameters
    ----------
    errors : array
        The validation error after each step.
    window : int, default=5
        How many steps are averaged.
    rise : float, default=0.05
        The share above the least average at which training stops.

    Returns
    -------
    (int, int)
        The step with the least error so far, whose function is to be kept, and the step at which training stops; the
        last one, if the error never rises that much.

    Examples
    --------
    >>> from mercer.notes.theory import stopping_step
    >>> stopping_step([5.0, 3.0, 2.0, 2.2, 1.9, 2.0, 2.6, 3.0], window=1, rise=0.2)
    (4, 6)
    """
    values = numbers(errors, "errors must be one finite number per step, at least one")
    integer("window", window, 1, "how many steps are averaged")
    not_negative("rise", rise)
    rule, best = SmoothedRule(window, rise), 0
    for t, error in enumerate(values.tolist()):
        stops, least = rule.take(error)
        best = t if least else best
        if stops:
            return best, t
    return best, len(values) - 1
