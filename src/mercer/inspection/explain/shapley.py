"""Exact Shapley values of machines whose kernel is a product over the features, or a sum of such products.

The game: v(S) is the mean of f over background rows z in which the features S are those of x. For one product term

    φ_j = mean_z Σ_i β_i (k_j(x_j, s_ij) − k_j(z_j, s_ij)) ∫₀¹ Π_{l ≠ j} [t k_l(x_l, s_il) + (1 − t) k_l(z_l, s_il)] dt

because Shapley's weights are Beta integrals. The integrand is a polynomial in t, which Gauss–Legendre quadrature
integrates exactly (src/core/explain/shapley.hpp). Terms and support vectors add up.

The players of the game are the columns of X. If a table or a Pipeline turns a column into several features, its factor
is the product of their k_l. Its Shapley value then differs from the sum of the values that these features would have
as separate players, since their interactions count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from mercer import _core
from mercer.inspection.explain.outputs import Outputs, as_dense, class_signs, outputs_of
from mercer.kernels.terms import Term, Terms
from mercer.runtime import parameters
from mercer.runtime.optional import require
from mercer.runtime.progress import Reporter
from mercer.runtime.threads import effective_n_threads
from mercer.samples.arrays import Floats, Indices
from mercer.samples.labels import Pair
from mercer.tables.unwrap import MixedColumns

if TYPE_CHECKING:
    from mercer.inspection.displays import ExplanationDisplay


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Shapley values of samples; ``base_values + values.sum(axis=1)`` is f at each of them.

    Attributes
    ----------
    values : array of shape (n_samples, n_features), or (n_samples, n_features, n_outputs)
        Shapley value of each feature: how much it adds to f.
    base_values : array of shape (n_samples,), or (n_samples, n_outputs)
        Mean of f over the background.
    data : array of shape (n_samples, n_features)
        The samples; an array of objects if a table has cells that are not numbers.
    feature_names : list of str
        Names of the columns, or x0, x1, …. A column that the model drops has the value 0.
    output_names : tuple of str
        The class that f > 0 predicts, or a name for each output.
    error : float
        Largest difference between base_values + Σ values and f as predicted: rounding error.
    classes : array or None
        Class labels of a classifier.
    pairs : list or None
        The two classes of each output, for a classifier with a function for each pair of classes.
    function : str
        Name of f: "latent mean" for `GaussianProcessClassifier`, whose `decision_function` is another function,
        otherwise "f".

    See Also
    --------
    explain : Compute the Shapley values of a fitted model.
    mercer.displays.ExplanationDisplay : Plot them.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVR
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> model = SVR(C=10.0).fit(X, X[:, 0] * X[:, 1])
    >>> explanation = model.explain(X[:5], background=X)
    >>> explanation.values.shape, bool(explanation.error < 1e-12)
    ((5, 3), True)
    """

    values: Floats
    base_values: Floats
    data: np.ndarray
    feature_names: list[str]
    output_names: tuple[str, ...] = ("f",)
    error: float = 0.0
    classes: np.ndarray | None = field(default=None, repr=False)
    pairs: Sequence[Pair] | None = field(default=None, repr=False)
    function: str = "f"

    @property
    def several(self) -> bool:
        """True if there are several outputs."""
        return self.values.ndim == 3

    @property
    def importance(self) -> Floats:
        """Mean of |values| over the samples: one number per feature, with a column per output if there are several."""
        return np.asarray(np.abs(self.values).mean(axis=0))

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Any) -> Self:
        """Return the explanation of the samples `rows`: a slice, indices, or one index."""
        rows = np.atleast_1d(np.arange(len(self))[rows])
        return replace(self, values=self.values[rows], base_values=self.base_values[rows], data=self.data[rows])

    def output(self, which: int | str) -> Self:
        """Return the explanation of one of several outputs, by index or name."""
        if not self.several:
            raise ValueError(f"there is one output only, {self.output_names[0]!r}")
        k = self._output_index(which)
        return self._for_output(self.values[:, :, k], self.base_values[:, k], self.output_names[k])

    def of_class(self, label: Any) -> Self:
        """Return the explanation of one class, by its label.

        With a function per class, it explains the function of this class. A one-vs-one machine decides by votes, whose
        exact Shapley values are not computed. Instead it explains the sum of the class's decision values over its
        pairs, signed so that larger values favour the class; `predict` breaks ties between votes by this sum.
        """
        if self.classes is None:
            raise ValueError("only classifiers have classes; output(k) returns the explanation of one output")
        labels = self.classes.tolist()
        if label not in labels:
            raise ValueError(f"{label!r} is not one of the classes {labels}")
        signs = class_signs(len(labels), self.pairs)[:, labels.index(label)]
        shape = (*self.values.shape[:2], -1)
        name = str(label) if self.function == "f" else f"{self.function} of {label}"
        base_values = self.base_values.reshape(len(self), -1) @ signs
        return self._for_output(self.values.reshape(shape) @ signs, base_values, name)

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a row per sample and a column per feature, grouped by output if several."""
        pandas = require("pandas", "a frame of Shapley values")
        if not self.several:
            return pandas.DataFrame(self.values, columns=self.feature_names)
        columns = pandas.MultiIndex.from_product([self.output_names, self.feature_names], names=["output", "feature"])
        return pandas.DataFrame(self.values.transpose(0, 2, 1).reshape(len(self), -1), columns=columns)

    def plot(self, kind: str = "bar", **options: Any) -> ExplanationDisplay:
        """Plot the values as "bar" or "beeswarm"; see `mercer.displays.ExplanationDisplay`."""
        from mercer.inspection.displays import ExplanationDisplay

        return ExplanationDisplay.from_explanation(self, kind=kind, **options)

    def to_shap(self) -> Any:
        """Convert to a `shap.Explanation`, for the plots of that package."""
        explanation_class = require("shap", "an explanation for its plots").Explanation
        names = list(self.output_names) if self.several else None
        return explanation_class(
            values=self.values,
            base_values=self.base_values,
            data=self.data,
            feature_names=list(self.feature_names),
            output_names=names,
        )

    def __repr__(self) -> str:
        return f"Explanation({len(self)} samples, {len(self.feature_names)} features, {len(self.output_names)} outputs)"

    def __str__(self) -> str:
        sizes = self.importance if not self.several else self.importance.mean(axis=1)
        largest = np.argsort(-sizes, kind="stable")[:10]
        function = "" if self.function == "f" else f" of the {self.function}"
        parts = ((len(self), "sample"), (len(sizes), "feature"), (len(self.output_names), "output"))
        counts = ", ".join(f"{number} {noun}{'s' * (number != 1)}" for number, noun in parts)
        lines = [f"{counts}; mean |value|{function}"]
        width = max((len(self.feature_names[j]) for j in largest), default=0)
        lines += [f"{self.feature_names[j].ljust(width)}  {sizes[j]:.4g}" for j in largest]
        return "\n".join([*lines, f"and {len(sizes) - 10} more"] if len(sizes) > 10 else lines)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))  # in a notebook, and at IPython's prompt

    def _output_index(self, output: int | str) -> int:
        """Return the index of an output, given by index or name."""
        if isinstance(output, str):
            if output not in self.output_names:
                raise ValueError(f"there is no output {output!r}; the outputs are {', '.join(self.output_names)}")
            return self.output_names.index(output)
        if not -len(self.output_names) <= output < len(self.output_names):
            raise IndexError(f"there is no output {output}; there are {len(self.output_names)}, counted from 0")
        return int(output) % len(self.output_names)

    def _for_output(self, values: Floats, base_values: Floats, name: str) -> Self:
        """Return a copy with the values of one output."""
        return replace(self, values=values, base_values=base_values, output_names=(name,), classes=None, pairs=None)


# Largest and smallest number of support vectors per call of the core, and number of float64 values that a call keeps:
# 8 MB, more only above 65,000 features.
_VECTORS_PER_CALL, _LEAST_VECTORS, _VALUES_PER_CALL = 512, 16, 1 << 20
# Largest rows × background rows × support vectors × features of one call, about half a second on one AVX2 core, so that
# a verbose run can report in between; and the rows that the core processes together, which a call has at least.
_WORK_PER_CALL, _ROWS_AT_ONCE = 250_000_000, 8


def explain(
    model: Any, X: Any, background: Any = None, *, background_weight: ArrayLike | None = None, verbose: bool = False
) -> Explanation:
    """Compute exact Shapley values of f at the rows of X; see the method `explain` of the estimators.

    The model may be a machine, or a Pipeline, a Tabular, a search or a calibration of one; the players are the columns
    of X.
    """
    machine = outputs_of(model)
    terms = _terms(machine)
    players = _players(machine)
    if background is None:
        raise TypeError(
            "background is missing: Shapley values compare a sample with background rows, whose values replace those "
            "of an absent feature. Pass rows, such as 100 training samples: "
            "model.explain(X, background=X_train[:: max(1, len(X_train) // 100)])"
        )
    rows = machine.rows(X)
    try:
        background_rows = machine.rows(background)
    except ValueError as error:
        raise ValueError(f"background: {error}") from None
    weights = parameters.weights("background_weight", background_weight, background_rows.shape[0])
    weighted_rows = np.flatnonzero(weights)
    background_rows, weights = background_rows[weighted_rows], weights[weighted_rows]
    f, base = machine.f(rows), weights @ machine.f(background_rows)
    data = as_dense(rows)
    n_columns = len(machine.unwrapped.names)
    values = np.zeros((len(data), len(machine.names), n_columns))
    with np.errstate(over="ignore", invalid="ignore"):
        for term in terms:
            if term.only_polynomial and len(term.polynomial) == 2:
                _add_linear(values, players, term, machine, data, np.asarray(weights @ background_rows))
    product_terms = [term for term in terms if not (term.only_polynomial and len(term.polynomial) <= 2)]
    if product_terms and machine.vectors.shape[0]:
        _add_products(values, players, product_terms, machine, data, as_dense(background_rows), weights, verbose)
    values *= np.reshape(machine.factor, (-1, 1))
    if not np.isfinite(values).all():
        raise FloatingPointError(
            f"the factor of a feature in {machine.kernel!r} overflows float64 for these rows; scale the features"
        )
    total = values.sum(axis=2) + base
    has_several_outputs = len(base) > 1
    return Explanation(
        values=np.ascontiguousarray(values.transpose(0, 2, 1) if has_several_outputs else values[:, 0]),
        base_values=np.tile(base, (len(data), 1)) if has_several_outputs else np.repeat(base, len(data)),
        data=machine.unwrapped.cells(X) if machine.unwrapped.steps else data,
        feature_names=machine.unwrapped.names,
        output_names=machine.names,
        error=float(np.abs(total - f).max(initial=0.0)),
        classes=getattr(machine.model, "classes_", None),
        pairs=machine.pairs,
        function=machine.function,
    )


def _players(machine: Outputs) -> Indices:
    """Return the player of each feature of the machine: the column of X it comes from, or −1 for a constant feature."""
    if not machine.unwrapped.steps:
        return np.arange(len(machine.unwrapped.names))
    try:
        return machine.unwrapped.origins
    except MixedColumns as error:
        raise ValueError(
            f"{error}, so that no Shapley value belongs to one column of X alone; explain the features of the machine, "
            "model[-1].explain(model[:-1].transform(X), model[:-1].transform(background)), or leave that step out"
        ) from None


def _terms(machine: Outputs) -> Terms:
    """Return the kernel as a sum of products over the features; raise ValueError if it is not such a sum."""
    machine.expect_vectors("explain")
    terms = machine.kernel.terms(machine.vectors.shape[1])
    if terms is None or not all(term.only_inner_features for term in terms):
        raise ValueError(
            f"{machine.kernel!r} is no sum of products over the features, so that exact Shapley values would take 2^d "
            "steps. explain supports Gaussian (with gamma, sigma or a diagonal M), Laplacian, Chi2, ANOVA, Linear and "
            "Polynomial kernels and their sums, products, multiples and powers. For this kernel use "
            "gradient_importance or partial_dependence, or a sampling method such as shap.PermutationExplainer"
        )
    return terms


def _add_linear(values: Floats, players: Indices, term: Term, machine: Outputs, data: Floats, mean: Floats) -> None:
    """Add the Shapley values for q·⟨x, z⟩: w_j (x_j − mean of the background), summed over the features of a player."""
    w = np.zeros((values.shape[1], data.shape[1]))
    for vectors, coefficients in machine.vector_blocks(_ranges(machine.vectors.shape[0], data.shape[1])):
        w += coefficients.T @ vectors
    if term.inner_features is not None:
        w *= term.inner_features
    contributions = term.polynomial[1] * w * (data - mean)[:, None, :]
    varying_features = np.flatnonzero(players >= 0)
    player_of_feature = sp.csr_array(
        (np.ones(len(varying_features)), (varying_features, players[varying_features])),
        shape=(len(players), values.shape[2]),
    )
    values += np.reshape(np.asarray(contributions.reshape(-1, len(players)) @ player_of_feature), values.shape)


def _add_products(
    values: Floats,
    players: Indices,
    terms: list[Term],
    machine: Outputs,
    data: Floats,
    background_rows: Floats,
    weights: Floats,
    verbose: bool,
) -> None:
    """Add the Shapley values of the product terms, computed by the core in blocks of samples and vectors."""
    # A feature that is 0 in all samples and background rows, as is common in sparse data, has Shapley value 0 and
    # multiplies k(·, s) by a constant.
    is_used = (data != 0).any(axis=0) | (background_rows != 0).any(axis=0)
    used_features = np.flatnonzero(is_used)
    # Features of a player become adjacent.
    used_features = used_features[np.argsort(players[used_features], kind="stable")]
    active_players, starts = np.unique(players[used_features], return_index=True)
    data, background_rows = (
        np.ascontiguousarray(data[:, used_features]),
        np.ascontiguousarray(background_rows[:, used_features]),
    )
    d, n = data.shape[1], machine.vectors.shape[0]
    if d == 0:
        return
    contributions = np.zeros((*values.shape[:2], len(active_players)))
    # Ranges of features per player; the core needs none if every player has one feature.
    ranges = () if len(active_players) == d else (np.append(starts, d).astype(np.int64),)
    n_threads = effective_n_threads(getattr(machine.model, "n_jobs", None))
    step = max(1, _VALUES_PER_CALL // (d * min(n, _vectors_per_call(d))))
    step = min(step, max(_ROWS_AT_ONCE, _WORK_PER_CALL // (d * n * len(background_rows))))
    reporter = Reporter(verbose)
    for start in range(0, len(data), step):
        block = slice(start, start + step)
        n_done = 0
        for vectors, coefficients in machine.vector_blocks(_ranges(n, len(is_used))):
            used_vectors, unused_vectors = np.ascontiguousarray(vectors[:, used_features]), vectors[:, ~is_used]
            for term in terms:
                rates = term.rates(len(is_used))
                _core.shapley_add(
                    contributions[block],
                    data[block],
                    background_rows,
                    weights,
                    used_vectors
                    if term.inner_features is None
                    else used_vectors * term.inner_features[used_features],  # features of ⟨x, z⟩
                    np.ascontiguousarray(coefficients.T) * _factors_at_zero(rates[:, ~is_used], unused_vectors),
                    np.ascontiguousarray(rates[:, used_features]),
                    np.array(term.polynomial),
                    n_threads,
                    *ranges,
                )
            n_done += len(vectors)
            if reporter.is_due:
                n_samples_done = start + min(step, len(data) - start) * n_done / n
                words = f"{int(n_samples_done):,} of {len(data):,} samples explained"
                reporter.report(words, n_samples_done / len(data))
    values[:, :, active_players[active_players >= 0]] += contributions[:, :, active_players >= 0]


def _factors_at_zero(rates: Floats, vectors: Floats) -> Floats:
    """Return Π_l k_l(0, s_l) for each vector s."""
    square, absolute, chi2, _ = rates
    exponent = vectors**2 @ square + np.abs(vectors) @ absolute + np.maximum(vectors, 0.0) @ chi2
    return np.asarray(np.exp(-exponent))


def _vectors_per_call(d: int) -> int:
    """Return the number of vectors with d features for a call of the core."""
    return min(_VECTORS_PER_CALL, max(_LEAST_VECTORS, _VALUES_PER_CALL // max(1, d)))


def _ranges(n: int, d: int) -> list[slice]:
    """Return the ranges of vectors for each call of the core."""
    step = _vectors_per_call(d)
    return [slice(start, start + step) for start in range(0, n, step)]
