"""Parts of a model for C and ONNX files: scalers, vectors, kernel recipe, and the rule from outputs to labels."""

from __future__ import annotations

import math
import re
import warnings
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils.validation import check_array, check_is_fitted

from mercer.estimators.fitting.pipeline.state import has_function_per_class
from mercer.estimators.unsupervised.learner import UnsupervisedMachine
from mercer.files.model import Estimator
from mercer.kernels.recipe import ArrayArithmetic, Recipe, apply_ending
from mercer.places.expansion import Expansion
from mercer.places.host.rows import weight_vectors
from mercer.samples.arrays import Floats
from mercer.samples.labels import scores, winner, wins
from mercer.samples.matrices import dense
from mercer.tables.encodings import DroppedColumn, Numbers
from mercer.tables.estimator import Tabular, used_columns
from mercer.tables.frame import Frame, part_of
from mercer.tables.unwrap import Unwrapped, unwrap

_KEYWORDS = frozenset(
    [
        *("auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum", "extern"),
        *("float", "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return", "short", "signed"),
        *("sizeof", "static", "struct", "switch", "typedef", "union", "unsigned", "void", "volatile", "while"),
    ]
)

# Number of rows at which a file's arithmetic is tested.
_MOST_EXAMPLES = 64
# Largest permitted difference between the file's outputs and the model's, relative to the largest output.
LARGEST_DIFFERENCE = 0.01


Samples = Any  # an array or a CSR matrix
Coefficients = Any  # dense, or CSR if most are zero


@dataclass(frozen=True, eq=False)
class Scaling:
    """Scaling x → (x − shift) / divisor, then clipped to [low, high] if these are given."""

    shift: Floats
    divisor: Floats
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, eq=False)
class PublicPredictions:
    """Predictions of a model's public method, in a column for each output of a file."""

    model: Estimator
    by_pairs: Estimator  # the model, or a copy whose `decision_function` has a column per pair of classes
    method: str  # "decision_function" or "predict"
    table: Tabular | None  # the table model that reads the rows, if any

    @classmethod
    def of(cls, unwrapped: Unwrapped, table: Tabular | None) -> PublicPredictions:
        """Return the public method of a model, with outputs for pairs of classes if the machine has them."""
        machine = unwrapped.machine
        if getattr(machine, "decision_function_shape", "ovo") != "ovo" and not has_function_per_class(machine):
            machine = copy(machine)
            machine.decision_function_shape, machine.break_ties = "ovo", False
        has_labels = hasattr(machine, "classes_") or isinstance(machine, OutlierMixin)
        by_pairs = unwrapped.model if machine is unwrapped.machine else unwrapped.rewrap(machine)
        return cls(unwrapped.model, by_pairs, "decision_function" if has_labels else "predict", table)

    def values(self, rows: Floats) -> Floats:
        """Return the outputs that the file computes, a column for each."""
        return np.asarray(self._call(self.by_pairs, self.method, rows), dtype=np.float64).reshape(len(rows), -1)

    def labels(self, rows: Floats) -> Any:
        """Return the result of `predict`."""
        return self._call(self.model, "predict", rows)

    def _call(self, model: Estimator, method: str, rows: Floats) -> Any:
        """Call a method of a model for rows; a table gets them as a frame with the training columns."""
        X: Any = rows
        if self.table is not None:
            columns, empty = iter(rows.T), np.full(len(rows), None, dtype=object)
            encodings = self.table.columns_
            cells = [empty if isinstance(encoding, DroppedColumn) else next(columns) for encoding in encodings]
            X = Frame([encoding.name for encoding in encodings], cells)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            return getattr(model, method)(X)

    def difference(self, rows: Floats, outputs: Floats) -> float:
        """Return the largest difference between a file's outputs and the model's, relative to the largest output."""
        if not len(rows):
            return 0.0
        model_outputs = self.values(rows)
        size = np.abs(model_outputs).max(axis=0)
        with np.errstate(invalid="ignore"):
            difference = np.abs(outputs - model_outputs).max(axis=0) / np.where(size > 0, size, 1.0)
        return float(difference.max()) if np.isfinite(difference).all() else math.inf


@dataclass(frozen=True, eq=False)
class Parts:
    """Parts of a model, ready to be written to a file."""

    description: str  # the model in one line
    n_features: int
    scalings: list[Scaling]
    recipe: Recipe
    vectors: Floats
    coefficients: Coefficients
    b: Floats
    decides: str  # "values", "sign", "largest", "votes" or "scores"
    labels: Any  # classes; −1 and 1 for novelty; None for a regression
    examples: Floats  # typical unscaled rows, at which the file's arithmetic is tested
    mixed_examples: Floats  # further test rows, mixed from the vectors
    public: PublicPredictions  # the model's predictions, which the file must reproduce
    rank: Any = None  # for quantiles: the rank of each output in ascending order
    ball: bool = False  # f is R² − ‖φ(x) − a‖² = 2f − k(x, x)

    @property
    def width(self) -> int:
        """Number of entries of a row that the kernel receives."""
        return self.n_features if self.recipe.factor is None else int(self.recipe.factor.shape[1])

    @property
    def table(self) -> Coefficients:
        """Coefficients times the kernel's scale, dense or CSR."""
        return self.coefficients * self.recipe.scale

    @property
    def offset(self) -> Floats:
        """b plus the contribution of the kernel's constant."""
        return _offset(self.b, self.recipe.constant, self.coefficients)

    @classmethod
    def of(cls, model: Estimator, X: Samples | None = None, *, medium: str = "a C file") -> Parts:
        """Return the parts of a model; raise TypeError if a file cannot hold it.

        The file is tested at typical rows X, by default at some of the machine's vectors.
        """
        # 1. The scalings before the machine, and the rule from outputs to labels.
        unwrapped = _unwrap_checked(model, medium)
        machine, expansion = unwrapped.machine, getattr(unwrapped.machine, "_expansion_", None)
        table = unwrapped.steps[0] if unwrapped.steps and isinstance(unwrapped.steps[0], Tabular) else None
        scalings = [] if table is None else [_columns_scaling(table, medium)]
        scalings += [_scaling(step, medium) for step in unwrapped.steps[len(scalings) :]]
        labels, rule = _decision(machine)
        # 2. Vectors, coefficients and b of the machine, and rows at which the file is tested.
        recipe = None if expansion is None else _recipe(machine, medium)
        n_features = len(used_columns(table)) if table is not None else len(unwrapped.names)
        if expansion is not None and recipe is not None:
            vectors = np.asarray(dense(expansion.vectors), dtype=np.float64)
            coefficients, b = expansion.coefficients, expansion.b
            rows = _spread_rows(vectors)
            examples, mixed_rows = unscaled_rows(scalings, rows), unscaled_rows(scalings, _mixed_rows(rows))
        else:
            # ⟨w, x⟩ + b: the vectors are w, one for each output.
            recipe, vectors = Recipe("dot", "identity"), np.atleast_2d(np.asarray(machine.coef_, dtype=np.float64))
            coefficients, b = sp.identity(len(vectors), format="csr"), np.atleast_1d(machine.intercept_)
            shape = (_MOST_EXAMPLES, vectors.shape[1]) if scalings else (0, 0)
            examples = unscaled_rows(scalings, np.random.default_rng(0).standard_normal(shape))
            mixed_rows = np.zeros((0, n_features))
        # 3. The unit of the targets of a table.
        mean, scale = unwrapped.unit
        if np.ndim(scale):
            coefficients = coefficients @ sp.diags_array(scale, format="csr")
        elif scale != 1.0:
            coefficients = coefficients * scale
        b = b * scale + mean
        # 4. Typical rows of the user in place of the test rows.
        if X is not None:
            if hasattr(X, "columns"):
                machine._decision(unwrapped.rows(part_of(X, np.arange(1))))  # raise if its columns have other names
            if table is not None:
                X = np.column_stack([unwrapped.column(X, unwrapped.names.index(name)) for name in used_columns(table)])
            examples = _spread_rows(_rows(X, n_features))
            mixed_rows = np.zeros((0, n_features))
        # 5. A linear kernel as w for each output; centred vectors for kernels of differences.
        ball = machine._SUBTRACTS_DIAGONAL
        linear = _linear_form(recipe)
        if linear is not None and not ball:
            vectors, b = _weights(recipe.factor, *linear, vectors, coefficients, b)
            recipe, coefficients = Recipe("dot", "identity"), sp.identity(len(vectors), format="csr")
        elif recipe.inner != "dot":
            scalings, vectors = _centre_vectors(scalings, vectors)
        rank = None
        if hasattr(machine, "quantiles_") and len(b) > 1:
            rank = np.argsort(np.argsort(machine.quantiles_, kind="stable"), kind="stable")
        if not len(vectors):  # f is constant; C has no empty arrays
            vectors, coefficients = np.zeros((1, vectors.shape[1])), np.zeros((1, len(b)))
        words = f"{machine.kernel_}, {len(vectors)} vectors" if hasattr(machine, "kernel_") else "linear"
        parts = cls(
            description=f"{type(machine).__name__}, {words}",
            n_features=n_features,
            scalings=scalings,
            recipe=recipe,
            vectors=vectors,
            coefficients=coefficients,
            b=np.asarray(b, dtype=np.float64),
            decides=rule,
            labels=labels,
            examples=examples,
            mixed_examples=mixed_rows,
            public=PublicPredictions.of(unwrapped, table),
            rank=rank,
            ball=ball,
        )
        parts.check(medium)
        return parts

    def rows_to_try(self, dtype: str, medium: str) -> Floats:
        """Return the test rows: the examples, or standard normal rows if there are none, and the mixed rows."""
        rows = self.examples
        if not len(rows):
            rows = np.random.default_rng(0).standard_normal((_MOST_EXAMPLES, self.n_features))
        rows = np.vstack([rows, self.mixed_examples])
        with np.errstate(over="ignore", under="ignore"):
            narrow_rows = rows.astype(dtype)
        if not np.isfinite(narrow_rows).all():
            raise ValueError(
                f"{medium} cannot take the rows of {self.description}: they have entries up to "
                f"{np.abs(rows).max():.3g}, but the largest {dtype} is {np.finfo(dtype).max:.3g}; use "
                "dtype='float64', or train on features in another unit"
            )
        return narrow_rows

    def difference(self, rows: Floats, outputs: Floats) -> float:
        """Return the largest relative difference of the outputs, over the examples and over all test rows."""
        n = len(rows) - len(self.mixed_examples)
        return max(self.public.difference(rows[:n], outputs[:n]), self.public.difference(rows, outputs))

    def check(self, medium: str) -> None:
        """Raise if these parts, in float64, do not reproduce the model's public method."""
        rows = self.rows_to_try("float64", medium)
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            difference = self.difference(rows, self.outputs(rows, np.float64))
        name = type(self.public.model).__name__
        if not difference <= LARGEST_DIFFERENCE:
            raise TypeError(
                f"{medium} would not reproduce {name}.{self.public.method}: its outputs would be off by "
                f"{difference:.2g} of the largest. Either kernel values of this size lose all digits in float64, or "
                f"{name} computes more than sums of kernel values; scale the features, or use mercer.save"
            )
        if self.labels is not None and (self._decide(self.public.values(rows)) != self.public.labels(rows)).any():
            raise TypeError(f"{medium} would give other labels than {name}.predict, which has a rule of its own")

    def _decide(self, outputs: Floats) -> Any:
        """Return the labels that the file derives from these outputs."""
        if self.decides in ("votes", "scores"):
            outputs = (wins if self.decides == "votes" else scores)(outputs, len(self.labels))
        return self.labels[winner(outputs)]

    def outputs(self, rows: Floats, dtype: Any) -> Floats:
        """Return the outputs as a file computes them, with all numbers and kernel values in the type `dtype`.

        The sums are in float64, since those of a C file are compensated.
        """
        recipe, prepared = self.recipe, prepared_rows(self.recipe, scaled_rows(self, rows.astype(dtype)))
        vectors = prepared_rows(recipe, self.vectors).astype(dtype)
        K = np.array([_values(recipe, vectors, x) for x in prepared], dtype=np.float64).reshape(
            len(prepared), len(vectors)
        )
        out = K @ dense(self.table).astype(dtype) + self.offset.astype(dtype)
        if self.ball:
            diagonal = np.array([_values(recipe, x[None], x)[0] for x in prepared], dtype=np.float64)
            out = 2 * out - (recipe.scale * diagonal + recipe.constant)[:, None]
        return self.sort_quantiles(np.asarray(out))

    def sort_quantiles(self, outputs: Floats) -> Floats:
        """Return outputs of quantiles sorted, so that they do not cross; other outputs unchanged."""
        return outputs if self.rank is None else np.sort(outputs, axis=1)[:, self.rank]


def _unwrap_checked(model: Estimator, medium: str) -> Unwrapped:
    """Return the unwrapped model; raise TypeError if no file can compute its predictions."""
    if not isinstance(model, BaseEstimator):
        model = getattr(model, "model", model)  # the results of `easy` and `unwrap` hold the estimator
    check_is_fitted(model)
    unwrapped = unwrap(model)
    machine, name = unwrapped.machine, type(unwrapped.machine).__name__
    calibrations = [type(layer).__name__ for layer in unwrapped.layers if hasattr(layer, "predict_interval")]
    if calibrations:
        raise TypeError(
            f"{medium} predicts labels and numbers, but not the probabilities or intervals of {calibrations[0]}; "
            "export the model inside it: mercer.save(model.estimator_, path)"
        )
    if isinstance(machine, UnsupervisedMachine):
        raise TypeError(f"{medium} predicts a target, but {name} has none; use mercer.save")
    has_weights = "coef_" in vars(machine) and "intercept_" in vars(machine)
    is_mercer = type(machine).__module__.startswith("mercer.")
    if not is_mercer or not (isinstance(getattr(machine, "_expansion_", None), Expansion) or has_weights):
        text = " ".join(repr(model).split())
        raise TypeError(
            f"{medium} cannot hold {text}: it is not a machine of mercer, nor a Pipeline of scalers and one"
        )
    if machine._DECISION_NAME:  # a Gaussian process, whose decision is not the f of a sum over vectors
        raise TypeError(
            f"{medium} computes sums of kernel values, but {name} also needs the variance of its process to decide; "
            "use mercer.save, or export KernelMachine('logistic', lam=0.5, bias=False, kernel=model.kernel_) fitted "
            f"to the same samples, whose f is the {machine._DECISION_NAME} of this one: with two classes it gives the "
            "same labels"
        )
    return unwrapped


def _rows(X: Samples, d: int) -> Floats:
    """Return rows as a dense float64 array; raise if they do not have d columns."""
    X = check_array(X, accept_sparse="csr", dtype=np.float64)
    if X.shape[1] != d:
        raise ValueError(f"X has {X.shape[1]} columns, but the model was trained on {d}")
    return np.asarray(dense(X))


def _spread_rows(rows: Floats) -> Floats:
    """Return at most 64 evenly spread rows, and the row with the largest entry."""
    if len(rows) <= _MOST_EXAMPLES:
        return rows
    spread_rows = rows[:: math.ceil(len(rows) / (_MOST_EXAMPLES - 1))]
    return np.vstack([spread_rows, rows[[np.abs(rows).max(axis=1).argmax()]]])


def _mixed_rows(rows: Floats) -> Floats:
    """Return midpoints between rows and their nearest neighbours, and rows whose columns are permuted separately."""
    if not len(rows):
        return rows
    head = rows[: _MOST_EXAMPLES // 2]
    with np.errstate(over="ignore", invalid="ignore"):
        squared_distances = np.array([((rows - x) ** 2).sum(axis=1) for x in head])
    nearest = np.where(squared_distances > 0, squared_distances, np.inf).argmin(axis=1)
    return np.vstack([0.5 * head + 0.5 * rows[nearest], np.random.default_rng(0).permuted(rows, axis=0)[: len(head)]])


def unscaled_rows(scalings: list[Scaling], rows: Floats) -> Floats:
    """Undo scalings: return the rows that they turn into the given ones, apart from clipping."""
    for scaling in scalings[::-1]:
        rows = rows * scaling.divisor + scaling.shift
    return rows


def scaled_rows(parts: Parts, rows: Floats) -> Floats:
    """Return the rows after all scalings, in the type of the rows."""
    for scaling in parts.scalings:
        for part in shift_parts(scaling.shift, rows.dtype.name):
            rows = rows - part.astype(rows.dtype)
        rows = rows / scaling.divisor.astype(rows.dtype)
        if scaling.low is not None and scaling.high is not None:
            rows = np.clip(rows, scaling.low, scaling.high)
    return rows


def shift_parts(shift: Floats, dtype: str) -> list[Floats]:
    """Return the numbers to subtract one after another: the shift, and its rounding error in this type if any."""
    rounding_error = shift - shift.astype(dtype)
    return [shift, rounding_error] if rounding_error.any() else [shift]


def _values(recipe: Recipe, vectors: Floats, x: Floats) -> Floats:
    """Return k(z, x) for each vector z, without scale and constant, in the type of the arguments."""
    if recipe.inner == "dot":
        t = vectors @ x
    else:
        difference = vectors - x
        t = (difference * difference if recipe.inner == "sqdist" else np.abs(difference)).sum(axis=1)
    return np.asarray(apply_ending(recipe.ending, recipe.numbers, t, ArrayArithmetic()))


def prepared_rows(recipe: Recipe, rows: Floats) -> Floats:
    """Return rows times the recipe's matrix, and normalised if the recipe says so, in the type of the rows."""
    if recipe.factor is not None:
        rows = rows @ recipe.factor.astype(rows.dtype)
    if recipe.normalise:
        for length in (np.abs(rows).max(axis=1, initial=0.0, keepdims=True), None):
            length = np.linalg.norm(rows, axis=1, keepdims=True) if length is None else length
            rows = rows / np.where(length > 0, length, rows.dtype.type(1))
    return rows


def _linear_form(recipe: Recipe) -> tuple[float, float] | None:
    """Return (factor, constant) if k is factor·⟨x, z⟩ + constant, else None."""
    if recipe.inner != "dot" or recipe.normalise:
        return None
    if recipe.ending == "polynomial" and recipe.numbers[2] == 1:
        gamma, coef0 = recipe.numbers[:2]
        return recipe.scale * gamma, recipe.scale * coef0 + recipe.constant
    return (recipe.scale, recipe.constant) if recipe.ending == "identity" else None


def _weights(
    factor: Floats | None, scale: float, constant: float, vectors: Floats, coefficients: Coefficients, b: Any
) -> tuple[Floats, Floats]:
    """Return w and b of each output in float64, since sums of vectors may cancel."""
    W = weight_vectors(vectors, coefficients)
    if factor is not None:
        W = factor @ (factor.T @ W)
    return scale * W.T, _offset(b, constant, coefficients)


def _offset(b: Any, constant: float, coefficients: Coefficients) -> Floats:
    """Return b + Σ_j c_j·constant."""
    return np.asarray(b + constant * np.asarray(coefficients.sum(axis=0)).ravel())


def _centre_vectors(scalings: list[Scaling], vectors: Floats) -> tuple[list[Scaling], Floats]:
    """Centre vectors that are far from zero, so that float32 represents x − z better; add the shift as a scaling."""
    if not len(vectors):
        return scalings, vectors
    centre = vectors.mean(axis=0)
    # Only in columns where vector − centre is exact: all values lie between half and twice the centre (Sterbenz).
    centre = np.where(np.abs(centre) > 2 * np.ptp(vectors, axis=0), centre, 0.0)
    if not centre.any():
        return scalings, vectors
    return [*scalings, Scaling(centre, np.ones(len(centre)))], vectors - centre


def _columns_scaling(table: Tabular, medium: str) -> Scaling:
    """Return the scaling of a table's columns; raise TypeError unless all are numbers without missing values."""
    used: list[Numbers] = []
    for column in table.columns_:
        if isinstance(column, Numbers) and not column.n_holes:
            used.append(column)
        elif not isinstance(column, DroppedColumn):
            kind = re.split("[,:;]", column.description)[0] + " with missing values" * isinstance(column, Numbers)
            raise TypeError(
                f"{medium} takes rows of numbers without missing values, but the column {column.name!r} is a {kind}; "
                "export the machine, unwrap(model).machine, and give it the rows that unwrap(model).rows(table) returns"
            )
    return Scaling(np.array([column.centre for column in used]), np.array([column.scale for column in used]))


def _scaling(step: Estimator, medium: str) -> Scaling:
    """Return the scaling of a StandardScaler or MinMaxScaler; raise TypeError for another step."""
    if type(step) is StandardScaler:
        n = int(step.n_features_in_)
        shift = np.asarray(step.mean_) if step.with_mean else np.zeros(n)
        return Scaling(shift, np.asarray(step.scale_) if step.with_std else np.ones(n))
    if type(step) is MinMaxScaler:
        scale, low = np.asarray(step.scale_), np.asarray(step.min_)
        ends = step.feature_range if step.clip else (None, None)
        return Scaling(-low / scale, 1.0 / scale, *ends)
    raise TypeError(
        f"{medium} can hold StandardScaler and MinMaxScaler before a machine, not {type(step).__name__}; apply it to "
        "the rows before you predict them"
    )


def _recipe(machine: Estimator, medium: str) -> Recipe:
    """Return the recipe of a machine's kernel; raise TypeError if a file cannot compute the kernel."""
    expansion: Expansion = machine._expansion_
    recipe = expansion.kernel.recipe() if expansion.kernel.accepts == "vectors" else None
    if recipe is None:
        raise TypeError(
            f"{medium} cannot compute the kernel {expansion.kernel} of {type(machine).__name__}, only linear, "
            "polynomial, Gaussian, sigmoid and cosine kernels, in C also Laplacian ones, and multiples of one of them"
        )
    return recipe


def _decision(machine: Estimator) -> tuple[Any, str]:
    """Return the labels, and the rule by which outputs become a label."""
    if isinstance(machine, OutlierMixin):
        return np.array([-1, 1]), "sign"
    if not hasattr(machine, "classes_"):
        return None, "values"
    if len(machine.classes_) == 2:
        return machine.classes_, "sign"
    if not hasattr(machine, "break_ties") or has_function_per_class(machine):
        return machine.classes_, "largest"
    return machine.classes_, "scores" if machine.break_ties else "votes"


def is_text(labels: Any) -> bool:
    """Return True if all labels are strings."""
    return labels.dtype.kind == "U" or (labels.dtype.kind == "O" and all(isinstance(label, str) for label in labels))


def check_c_name(name: Any) -> str:
    """Return `name` if it can be the prefix of names in a C file; raise ValueError otherwise."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,50}", name) or name in _KEYWORDS:
        raise ValueError(
            f"name={name!r:.80} cannot begin the names in a C file: it must be a letter followed by letters, digits "
            "and underscores, at most 51 characters in all, and not a keyword of C"
        )
    return name


def c_name_from(path: Path) -> str:
    """Return a prefix for C names from a file name; characters other than letters and digits become underscores."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", path.stem)[:40]
    return name if re.match("[A-Za-z]", name) and name not in _KEYWORDS else f"model_{name}"
