"""Early stopping as regularisation: least squares by t gradient steps in feature space.

Both methods minimise ½ Σ w_i (y_i − f(x_i) − b)² from f = 0, where b is the best constant for each f, or 0:

    landweber            f ← f + η Σ w_i r_i k(x_i, ·),  r = y − f − b            steepest descent, η ≤ 1/Λ_max
    conjugate gradients  the best f in span{Ks, K²s, …, Kᵗs}, s = W(y − ȳ)        one more dimension in each step

Let W^½KW^½ = QΛQ', centred if there is a bias. Then t steps of Landweber multiply component j of the solution by
1 − (1 − ηΛ_j)ᵗ, where a ridge λ multiplies it by Λ_j/(Λ_j + λ): 1/(ηt) plays the role of λ (Yao, Rosasco and
Caponnetto 2007; for conjugate gradients Blanchard and Krämer 2010). One decomposition gives the solution for every t.
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
from mercer.notes.theory.bound import read_numbers
from mercer.runtime.long_calls import call_interruptibly
from mercer.runtime.parameters import integer, not_negative, one_of, positive
from mercer.runtime.shared_docs import shared_docs
from mercer.samples.arrays import Floats, Indices, freeze, gamma, host, n_samples
from mercer.samples.engine import on_host, to_engine
from mercer.samples.matrices import as_matrix
from mercer.solvers.early_stopping import SmoothedRule

# Memory for K, its eigenvectors and LAPACK's work space: 24 bytes for each of n² entries, 600 MB.
_MOST_SAMPLES = 5000
# Number of roundings in an entry of S, from the kernel value and from centring.
_VALUE_ROUNDINGS = 32


@dataclass(frozen=True, eq=False)
class IterationPath:
    """Solutions of least squares after every number of gradient steps.

    Attributes
    ----------
    method : str
        "landweber" or "cg".
    kernel : Kernel
        Kernel with all parameters as numbers.
    step_size : float
        Step size η of "landweber"; NaN for "cg", which chooses its own.
    steps : array of int
        Numbers of steps t to which the other arrays belong; `at` takes any t up to the last.
    errors : array of shape (n_steps, n_outputs)
        Weighted mean squared error on the training samples.
    norms : array of shape (n_steps, n_outputs)
        Norm ‖f‖ in feature space.
    dof : array of shape (n_steps,)
        Effective degrees of freedom: the trace of the matrix that maps y to f + b. Conjugate gradients are not linear
        in y; their dof is the dimension, t plus 1 for the bias.
    validation_errors : array
        Mean squared error on the samples in `validation`; empty if there are none.
    kept : int or None
        Number of steps after which the validation error is smallest; None without validation samples.
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
        """Return the coefficients c of f = Σ c_j k(x_j, ·) + b after t steps, a column per output if there are several.

        Parameters
        ----------
        t : int
            Number of steps.
        """
        C = self._engine.coefficients(self._check_step(t))
        return np.asarray(C[:, 0] if self._one_output else C)

    def at(self, t: int) -> Function | list[Function]:
        """Return the function after t steps; a list if there are several outputs.

        Parameters
        ----------
        t : int
            Number of steps.

        Returns
        -------
        mercer.rkhs.Function or list of Function
            The function f + b.
        """
        C = self._engine.coefficients(self._check_step(t))
        b = self._engine.data.best_biases(self._engine.data.K @ C)
        functions = [Function(self._vectors, c, kernel=self.kernel, b=float(b[k])) for k, c in enumerate(C.T)]
        return functions[0] if self._one_output else functions

    def ridge(self, t: int) -> float:
        """Return the ridge λ = 1/(ηt), which damps small components as much as t steps of Landweber do."""
        if self.method != "landweber":
            raise ValueError(
                "conjugate gradients do not damp components separately, so that no ridge corresponds to t steps"
            )
        return math.inf if self._check_step(t) == 0 else 1.0 / (self.step_size * t)

    @shared_docs
    def errors_on(self, X: Any, y: ArrayLike) -> Floats:
        """Compute the mean squared error over all outputs on other samples, for each of `steps`.

        Parameters
        ----------
        %(new samples with targets)s
        """
        K, Y = _other_samples(self.kernel, self._vectors, X, y, self.errors.shape[1])
        out = np.empty(len(self.steps))
        for k, t in enumerate(self.steps.tolist()):
            C = self._engine.coefficients(t)
            b = self._engine.data.best_biases(self._engine.data.K @ C)
            out[k] = np.mean((Y - K @ C - b) ** 2)
        return out

    @shared_docs
    def best(self, X: Any, y: ArrayLike) -> int:
        """Return the number of steps with the smallest error on other samples; the smallest number if there is a tie.

        Parameters
        ----------
        %(new samples with targets)s
        """
        return int(self.steps[int(np.argmin(self.errors_on(X, y)))])

    def _check_step(self, t: int) -> int:
        """Return t; raise if it is not a number of steps of the path."""
        integer("t", t, 0, "the number of steps")
        if t > self.steps[-1]:
            raise ValueError(
                f"t={t} is beyond the path, which ends after {self.steps[-1]} steps; use a larger max_iter"
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
    """Compute least squares with early stopping, for every number of gradient steps at once.

    Stopping gradient descent early regularises like a ridge (Yao, Rosasco and Caponnetto 2007).

    Parameters
    ----------
    X : array, CSR matrix or list
        Samples, at most 5,000; the kernel matrix for kernel="precomputed".
    y : array of shape (n_samples,) or (n_samples, n_outputs)
        Targets.
    %(kernel)s
    method : {"landweber", "cg"}, default="landweber"
        Gradient descent (Landweber iteration), or conjugate gradients, which take far fewer steps.
    max_iter : int, default=100
        Largest number of steps. Conjugate gradients end earlier if they reach rounding.
    step_size : float, optional
        Step size η of "landweber", below 2/Λ_max; by default 1/Λ_max.
    bias : bool, default=True
        Whether f has a constant b, which is not penalised.
    %(given twice)s
    validation : (X, y), optional
        Validation samples. The path ends when their mean squared error, averaged over `window` steps, exceeds its
        minimum by the share `rise` (see `stopping_step`), or after `max_iter` steps.
    window : int, default=5
        Number of steps to average over.
    rise : float, default=0.05
        Relative rise above the smallest average at which the path ends.

    Returns
    -------
    IterationPath
        Path of solutions. `at(t)` returns the function after t steps, `coefficients(t)` its coefficients, and
        `ridge(t)` the corresponding λ. `steps` has the numbers of steps; `errors`, `norms`, `dof` and
        `validation_errors` belong to them, and `kept` is the step with the smallest validation error. `errors_on(X, y)`
        and `best(X, y)` use other samples.

    See Also
    --------
    stopping_step : Choose a number of steps from validation errors.

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
    integer("window", window, 1, "the number of steps to average over")
    not_negative("rise", rise)
    bound = as_kernel(kernel, degree=degree, gamma=gamma, coef0=coef0).bind(X)
    vectors = as_matrix(X) if bound.accepts == "vectors" else to_engine(X)
    n = n_samples(vectors)
    Y = np.array(on_host(y), dtype=np.float64)
    w = np.ones(n) if sample_weight is None else np.array(sample_weight, dtype=np.float64)
    if n > _MOST_SAMPLES or n == 0 or Y.shape[:1] != (n,) or Y.ndim > 2 or not np.isfinite(Y).all():
        raise ValueError(
            f"a path needs a finite target for each of 1 to {_MOST_SAMPLES} samples; X has {n} samples and y has the "
            f"shape {Y.shape}"
        )
    if w.shape != (n,) or not (np.isfinite(w) & (w >= 0)).all() or not w.any():
        raise ValueError(f"sample_weight must be a finite number ≥ 0 for each of the {n} samples, not all 0")
    K = np.asarray(host(X) if bound.accepts == "gram" else bound(vectors), dtype=np.float64)
    if K.shape != (n, n) or not np.isfinite(K).all():
        raise ValueError(f"the kernel values of {n} samples must be finite and {n} × {n}, not of shape {K.shape}")
    table = Y.reshape(n, -1)
    data = _Data(K, table, w, bool(bias))
    engine = _Landweber(data, step_size, max_iter) if method == "landweber" else _ConjugateGradients(data, max_iter)
    path_vectors = np.empty((n, 0)) if bound.accepts == "gram" else vectors
    validation_data = None if validation is None else _other_samples(bound, path_vectors, *validation, table.shape[1])
    rule, best_t = SmoothedRule(window, rise), None
    errors, norms, dof = [], [], []
    for t in range(engine.n_steps + 1):  # one step at a time: all together need memory for steps × samples
        C = engine.coefficients(t)
        u = K @ C
        b = data.best_biases(u)
        errors.append(w @ (table - u - b) ** 2 / w.sum())
        norms.append(np.sqrt(np.maximum(np.sum(C * u, axis=0), 0.0)))
        dof.append(engine.dof(t))
        if validation_data is not None:
            stops, least = rule.record(float(np.mean((validation_data[1] - validation_data[0] @ C - b) ** 2)))
            best_t = t if least else best_t
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
        best_t,
        engine,
        path_vectors,
        Y.ndim == 1,
    )


def _other_samples(kernel: Kernel, vectors: Any, X: Any, y: ArrayLike, n_outputs: int) -> tuple[Floats, Floats]:
    """Return kernel values between other samples and those of the path, and the targets of the other samples."""
    X = to_engine(X)
    Y = np.asarray(on_host(y), dtype=np.float64).reshape(n_samples(X), -1)
    if Y.shape[1] != n_outputs:
        raise ValueError(f"y has {Y.shape[1]} outputs, but the path has {n_outputs}")
    return np.asarray(host(X) if kernel.accepts == "gram" else kernel(X, vectors), dtype=np.float64), Y


class _Data:
    """Training data as S = PW^½KW^½P and PW^½Y, where P centres if there is a bias."""

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

    def best_biases(self, U: Floats) -> Floats:
        """Return the best b for each output if f has the values U at the samples."""
        if not self.bias:
            return np.zeros(self.Y.shape[1])
        return np.asarray(self.weight @ (self.Y - U) / self.weight.sum())


class _Landweber:
    """Landweber iteration, every t from one decomposition: z = Q diag((1 − (1 − ηΛ)ᵗ)/Λ) Q' PW^½Y."""

    def __init__(self, data: _Data, step_size: float | None, n_steps: int) -> None:
        self.data, self.n_steps = data, n_steps
        values, self.basis = call_interruptibly(np.linalg.eigh, data.S)
        self.values = np.maximum(values, 0.0)
        largest = float(self.values[-1])
        if values[0] < -1e-8 * max(largest, np.finfo(float).tiny):
            raise ValueError("the kernel is not positive definite on these samples: gradient steps would not converge")
        self.step_size = 1.0 / (largest or 1.0) if step_size is None else positive("step_size", step_size)
        if self.step_size * largest >= 2:
            raise ValueError(
                f"step_size={self.step_size:g} makes the steps diverge: it must be below 2/Λ_max = {2 / largest:.6g}"
            )
        self.components = self.basis.T @ data.target

    def _filter(self, t: int) -> Floats:
        """Return the filter factors 1 − (1 − ηΛ)ᵗ, without cancellation for small ηΛ."""
        step = self.step_size * self.values
        is_small = step < 0.5
        for_small = -np.expm1(t * np.log1p(-np.where(is_small, step, 0.0)))
        return np.asarray(np.where(is_small, for_small, 1.0 - (1.0 - step) ** t))

    def coefficients(self, t: int) -> Floats:
        """Return the coefficients of f after t steps."""
        is_tiny = self.values <= np.finfo(float).tiny
        factors = np.where(is_tiny, self.step_size * t, self._filter(t) / np.where(is_tiny, 1.0, self.values))
        return np.asarray(self.data.root[:, None] * (self.basis @ (factors[:, None] * self.components)))

    def dof(self, t: int) -> float:
        """Return the effective degrees of freedom after t steps."""
        return float(self._filter(t).sum()) + self.data.bias


class _ConjugateGradients:
    """Conjugate gradients (CGLS): z_t is the best combination of s, Ss, …, S^(t−1)s, s = PW^½Y, for each output."""

    step_size = math.nan

    def __init__(self, data: _Data, n_steps: int) -> None:
        self.data = data
        z, r = np.zeros_like(data.target), data.target.copy()
        gradient = data.S @ r  # values of the gradient, whose coefficients are r
        p, q = r.copy(), gradient.copy()
        square = np.sum(r * gradient, axis=0)
        active, sizes = np.ones(z.shape[1], dtype=bool), np.abs(data.S)
        self.iterates = [z]
        for _ in range(n_steps):
            # If rounding can explain the gradient, further directions would be noise.
            noise = gamma(len(r) + _VALUE_ROUNDINGS) * (sizes @ np.abs(r))
            active = active & (square > 0) & (np.sum(gradient**2, axis=0) > np.sum(noise**2, axis=0))
            if not active.any():
                break
            size = np.divide(square, np.sum(q * q, axis=0), out=np.zeros_like(square), where=active)
            z, r = z + size * p, r - size * q
            gradient = data.S @ r
            new_square = np.sum(r * gradient, axis=0)
            share = np.divide(new_square, square, out=np.zeros_like(square), where=active)
            p, q, square = r + share * p, gradient + share * q, new_square
            self.iterates.append(z)
        self.n_steps = len(self.iterates) - 1

    def coefficients(self, t: int) -> Floats:
        """Return the coefficients of f after t steps."""
        return np.asarray(self.data.root[:, None] * self.iterates[t])

    def dof(self, t: int) -> float:
        """Return the dimension of the solutions after t steps, 1 more with a bias."""
        return float(t + self.data.bias)


def stopping_step(errors: ArrayLike, *, window: int = 5, rise: float = 0.05) -> tuple[int, int]:
    """Choose when training stops: when the smoothed validation error has risen clearly above its minimum.

    Single rises are noise, so the error is averaged over a window, and the average must exceed its minimum by a share
    (Igel, section 2.2).

    Parameters
    ----------
    errors : array
        Validation error after each step.
    window : int, default=5
        Number of steps to average over.
    rise : float, default=0.05
        Relative rise above the smallest average at which training stops.

    Returns
    -------
    (int, int)
        The step with the smallest error so far, whose function is kept, and the step at which training stops: the last
        one if the error never rises enough.

    Examples
    --------
    >>> from mercer.notes.theory import stopping_step
    >>> stopping_step([5.0, 3.0, 2.0, 2.2, 1.9, 2.0, 2.6, 3.0], window=1, rise=0.2)
    (4, 6)
    """
    values = read_numbers(errors, "errors must be one finite number per step, at least one")
    integer("window", window, 1, "the number of steps to average over")
    not_negative("rise", rise)
    rule, best = SmoothedRule(window, rise), 0
    for t, error in enumerate(values.tolist()):
        stops, least = rule.record(error)
        best = t if least else best
        if stops:
            return best, t
    return best, len(values) - 1
