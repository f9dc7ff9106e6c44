"""Parts of a model as C and ONNX files need them: scalers, vectors, a recipe, and how outputs become labels."""

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
from mercer.estimators.unsupervised.learner import Learner
from mercer.files.model import Estimator
from mercer.kernels.recipe import ArrayArithmetic, Recipe, ended
from mercer.places.expansion import Expansion
from mercer.places.host.rows import weight_vectors
from mercer.samples.arrays import Floats
from mercer.samples.labels import scores, winner, wins
from mercer.samples.matrices import dense
from mercer.tables.encodings import LeftOut, Numbers
from mercer.tables.estimator import Tabular, used_columns
from mercer.tables.frame import Frame, part_of
from mercer.tables.unwrap import Asked, ask

_KEYWORDS = frozenset(
    [
        *("auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum", "extern"),
        *("float", "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return", "short", "signed"),
        *("sizeof", "static", "struct", "switch", "typedef", "union", "unsigned", "void", "volatile", "while"),
    ]
)

# Rows at which a file's arithmetic is tried.
_MOST_EXAMPLES = 64
# The largest difference from the model's answers that is written, as a share of the largest of them.
LARGEST_DIFFERENCE = 0.01


Samples = Any  # an array or a CSR matrix
Coefficients = Any  # dense, or CSR where most are zero


@dataclass(frozen=True, eq=False)
class Scaling:
    """x becomes (x − shift) / divisor, then stays between `low` and `high` if there are such."""

    shift: Floats
    divisor: Floats
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, eq=False)
class Public:
    """Answers of a model's public method, a column for each output of a file."""

    model: Estimator
    by_pairs: Estimator  # the model, or a copy whose `decision_function` answers of pairs of classes
    method: str  # "decision_function" or "predict"
    table: Tabular | None  # what reads the rows, if the model takes tables

    @classmethod
    def of(cls, asked: Asked, table: Tabular | None) -> Public:
        machine = asked.machine
        if getattr(machine, "decision_function_shape", "ovo") != "ovo" and not has_function_per_class(machine):
            machine = copy(machine)
            machine.decision_function_shape, machine.break_ties = "ovo", False
        labelled = hasattr(machine, "classes_") or isinstance(machine, OutlierMixin)
        by_pairs = asked.model if machine is asked.machine else asked.around(machine)
        return cls(asked.model, by_pairs, "decision_function" if labelled else "predict", table)

    def values(self, rows: Floats) -> Floats:
        """Answers of the method that a file computes, a column for each output."""
        return np.asarray(self._ask(self.by_pairs, self.method, rows), dtype=np.float64).reshape(len(rows), -1)

    def labels(self, rows: Floats) -> Any:
        """Answers of `predict`."""
        return self._ask(self.model, "predict", rows)

    def _ask(self, model: Estimator, method: str, rows: Floats) -> Any:
        X: Any = rows
        if self.table is not None:
            columns, nothing = iter(rows.T), np.full(len(rows), None, dtype=object)
            cells = [nothing if isinstance(one, LeftOut) else next(columns) for one in self.table.columns_]
            X = Frame([one.name for one in self.table.columns_], cells)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            return getattr(model, method)(X)

    def difference(self, rows: Floats, found: Floats) -> float:
        """Largest difference between a file's outputs and the answers, as a share of the largest answer."""
        if not len(rows):
            return 0.0
        wanted = self.values(rows)
        size = np.abs(wanted).max(axis=0)
        with np.errstate(invalid="ignore"):
            off = np.abs(found - wanted).max(axis=0) / np.where(size > 0, size, 1.0)
        return float(off.max()) if np.isfinite(off).all() else math.inf


@dataclass(frozen=True, eq=False)
class Parts:
    """A model, ready to be written down."""

    told: str  # in one line
    n_features: int
    scalings: list[Scaling]
    recipe: Recipe
    vectors: Floats
    coefficients: Coefficients
    b: Floats
    decides: str  # "values", "sign", "largest", "votes" or "scores"
    labels: Any  # of the classes; −1 and 1 for novelty; None for numbers
    examples: Floats  # rows like those to come, before any scaling, at which the file's arithmetic is tried
    around: Floats  # rows mixed from the vectors, where the machine was not trained, to try it at as well
    public: Public  # the model's own answers, which the file is to give
    rank: Any = None  # of quantiles: the place of each output in rising order
    ball: bool = False  # f is R² − ‖φ(x) − a‖² = 2f − k(x, x)

    @property
    def width(self) -> int:
        """Features of a row as the kernel sees it."""
        return self.n_features if self.recipe.factor is None else int(self.recipe.factor.shape[1])

    @property
    def table(self) -> Coefficients:
        """Coefficients with the kernel's scale in them, dense or CSR."""
        return self.coefficients * self.recipe.scale

    @property
    def offset(self) -> Floats:
        """b with the kernel's constant in it."""
        return _offset(self.b, self.recipe.constant, self.coefficients)

    @classmethod
    def of(cls, model: Estimator, X: Samples | None = None, *, medium: str = "a C file") -> Parts:
        """TypeError for what such a file cannot hold; X are rows like those to come."""
        asked = _checked(model, medium)
        machine, expansion = asked.machine, getattr(asked.machine, "_expansion_", None)
        table = asked.steps[0] if asked.steps and isinstance(asked.steps[0], Tabular) else None
        scalings = [] if table is None else [_columns_scaling(table, medium)]
        scalings += [_scaling(step, medium) for step in asked.steps[len(scalings) :]]
        labels, decides = _decision(machine)
        recipe = None if expansion is None else _recipe(machine, medium)
        n_features = len(used_columns(table)) if table is not None else len(asked.names)
        if expansion is not None and recipe is not None:
            vectors = np.asarray(dense(expansion.vectors), dtype=np.float64)
            coefficients, b = expansion.coefficients, expansion.b
            examples, around = (before(scalings, rows) for rows in (_some(vectors), _mixed_rows(_some(vectors))))
        else:
            # ⟨w, x⟩ + b: each output has its own w for a vector.
            recipe, vectors = Recipe("dot", "identity"), np.atleast_2d(np.asarray(machine.coef_, dtype=np.float64))
            coefficients, b = sp.identity(len(vectors), format="csr"), np.atleast_1d(machine.intercept_)
            shape = (_MOST_EXAMPLES, vectors.shape[1]) if scalings else (0, 0)
            examples = before(scalings, np.random.default_rng(0).standard_normal(shape))
            around = np.zeros((0, n_features))
        mean, scale = asked.unit
        if np.ndim(scale):
            coefficients = coefficients @ sp.diags_array(scale, format="csr")
        elif scale != 1.0:
            coefficients = coefficients * scale
        b = b * scale + mean
        if X is not None:
            if hasattr(X, "columns"):
                machine._decision(asked.rows(part_of(X, np.arange(1))))  # raises if its columns have other names
            if table is not None:
                X = np.column_stack([asked.column(X, asked.names.index(name)) for name in used_columns(table)])
            examples = _some(_rows(X, n_features))
            around = np.zeros((0, n_features))
        ball = machine._SUBTRACTS_DIAGONAL
        line = _straight(recipe)
        if line is not None and not ball:
            vectors, b = _weights(recipe.factor, *line, vectors, coefficients, b)
            recipe, coefficients = Recipe("dot", "identity"), sp.identity(len(vectors), format="csr")
        elif recipe.inner != "dot":
            scalings, vectors = _centred(scalings, vectors)
        rank = None
        if hasattr(machine, "quantiles_") and len(b) > 1:
            rank = np.argsort(np.argsort(machine.quantiles_, kind="stable"), kind="stable")
        if not len(vectors):  # f is b alone; C has no empty tables
            vectors, coefficients = np.zeros((1, vectors.shape[1])), np.zeros((1, len(b)))
        words = f"{machine.kernel_}, {len(vectors)} vectors" if hasattr(machine, "kernel_") else "linear"
        parts = cls(
            told=f"{type(machine).__name__}, {words}",
            n_features=n_features,
            scalings=scalings,
            recipe=recipe,
            vectors=vectors,
            coefficients=coefficients,
            b=np.asarray(b, dtype=np.float64),
            decides=decides,
            labels=labels,
            examples=examples,
            around=around,
            public=Public.of(asked, table),
            rank=rank,
            ball=ball,
        )
        parts.check(medium)
        return parts

    def rows_to_try(self, dtype: str, medium: str) -> Floats:
        """The examples, or, of a machine that has none, rows of standard normal numbers; then the mixed rows."""
        rows = self.examples
        if not len(rows):
            rows = np.random.default_rng(0).standard_normal((_MOST_EXAMPLES, self.n_features))
        rows = np.vstack([rows, self.around])
        with np.errstate(over="ignore", under="ignore"):
            held = rows.astype(dtype)
        if not np.isfinite(held).all():
            raise ValueError(
                f"{medium} cannot take the rows of {self.told}: they have entries up to {np.abs(rows).max():.3g}, and "
                f"the largest {dtype} is {np.finfo(dtype).max:.3g}; use dtype='float64', or train on features of "
                "another unit"
            )
        return held

    def difference(self, rows: Floats, found: Floats) -> float:
        """The larger share by which outputs are off: at the examples beside their largest, or at all rows tried."""
        n = len(rows) - len(self.around)
        return max(self.public.difference(rows[:n], found[:n]), self.public.difference(rows, found))

    def check(self, medium: str) -> None:
        """Refuse a model whose public method answers other values than these parts make, in float64."""
        rows = self.rows_to_try("float64", medium)
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            off = self.difference(rows, self.outputs(rows, np.float64))
        name = type(self.public.model).__name__
        if not off <= LARGEST_DIFFERENCE:
            raise TypeError(
                f"{medium} would not compute what {name}.{self.public.method} answers: its values would be off by "
                f"{off:.2g} of the largest. Kernel values of this size leave float64 no digits, or {name} computes "
                "more than sums of kernel values; scale the features, or use mercer.save"
            )
        if self.labels is not None and (self._decide(self.public.values(rows)) != self.public.labels(rows)).any():
            raise TypeError(f"{medium} would give other labels than {name}.predict, which decides by a rule of its own")

    def _decide(self, outputs: Floats) -> Any:
        """The labels that a file gives to rows of these outputs."""
        if self.decides in ("votes", "scores"):
            outputs = (wins if self.decides == "votes" else scores)(outputs, len(self.labels))
        return self.labels[winner(outputs)]

    def outputs(self, rows: Floats, kind: Any) -> Floats:
        """Outputs with every number and every kernel value in a type; the sums of a C file lose next to nothing."""
        recipe, seen = self.recipe, prepared_rows(self.recipe, scaled_rows(self, rows.astype(kind)))
        vectors = prepared_rows(recipe, self.vectors).astype(kind)
        K = np.array([_values(recipe, vectors, x) for x in seen], dtype=np.float64).reshape(len(seen), len(vectors))
        out = K @ dense(self.table).astype(kind) + self.offset.astype(kind)
        if self.ball:
            own = np.array([_values(recipe, x[None], x)[0] for x in seen], dtype=np.float64)
            out = 2 * out - (recipe.scale * own + recipe.constant)[:, None]
        return self.in_order(np.asarray(out))

    def in_order(self, outputs: Floats) -> Floats:
        """Outputs of quantiles in rising order, those that cross changing places; of others as they are."""
        return outputs if self.rank is None else np.sort(outputs, axis=1)[:, self.rank]


def _checked(model: Estimator, medium: str) -> Asked:
    """The machine in a model and what is around it; TypeError, with what to do, for what no file computes."""
    model = model if isinstance(model, BaseEstimator) else getattr(model, "model", model)  # of `easy` and `ask`
    check_is_fitted(model)
    asked = ask(model)
    machine, name = asked.machine, type(asked.machine).__name__
    known = [type(layer).__name__ for layer in asked.layers if hasattr(layer, "predict_interval")]
    if known:
        raise TypeError(
            f"{medium} predicts labels and numbers, and knows no probabilities or intervals of {known[0]}; export "
            "the model that it was made of, its estimator_"
        )
    if isinstance(machine, Learner):
        raise TypeError(f"{medium} predicts a target, and {name} has none; use mercer.save")
    weights = "coef_" in vars(machine) and "intercept_" in vars(machine)
    ours = type(machine).__module__.startswith("mercer.")
    if not ours or not (isinstance(getattr(machine, "_expansion_", None), Expansion) or weights):
        told = " ".join(repr(model).split())
        raise TypeError(f"{medium} cannot hold {told}: it is no machine of mercer's, nor a Pipeline of scalers and one")
    if machine._DECISION_NAME:
        raise TypeError(
            f"{medium} holds sums of kernel values, and {name} also needs the variance of its process to decide; use "
            "mercer.save, or export KernelMachine('logistic', lam=0.5, bias=False, kernel=model.kernel_) fitted to the "
            f"same samples, whose f is the {machine._DECISION_NAME} of this one: with two classes it gives the same "
            "labels"
        )
    return asked


def _rows(X: Samples, d: int) -> Floats:
    X = check_array(X, accept_sparse="csr", dtype=np.float64)
    if X.shape[1] != d:
        raise ValueError(f"X has {X.shape[1]} columns, but the model was trained on {d}")
    return np.asarray(dense(X))


def _some(rows: Floats) -> Floats:
    """Rows that are evenly spread, and that with the largest entry."""
    if len(rows) <= _MOST_EXAMPLES:
        return rows
    spread = rows[:: math.ceil(len(rows) / (_MOST_EXAMPLES - 1))]
    return np.vstack([spread, rows[[np.abs(rows).max(axis=1).argmax()]]])


def _mixed_rows(rows: Floats) -> Floats:
    """Rows halfway between a row and its nearest, and rows whose every entry comes from another row of its column."""
    if not len(rows):
        return rows
    half = rows[: _MOST_EXAMPLES // 2]
    with np.errstate(over="ignore", invalid="ignore"):
        apart = np.array([((rows - x) ** 2).sum(axis=1) for x in half])
    nearest = np.where(apart > 0, apart, np.inf).argmin(axis=1)
    return np.vstack([0.5 * half + 0.5 * rows[nearest], np.random.default_rng(0).permuted(rows, axis=0)[: len(half)]])


def before(scalings: list[Scaling], rows: Floats) -> Floats:
    """Rows that these scalings turn into the given ones, unless they cut them off."""
    for scaling in scalings[::-1]:
        rows = rows * scaling.divisor + scaling.shift
    return rows


def scaled_rows(parts: Parts, rows: Floats) -> Floats:
    """Rows after all scalings, in their own type."""
    for scaling in parts.scalings:
        for part in in_parts(scaling.shift, rows.dtype.name):
            rows = rows - part.astype(rows.dtype)
        rows = rows / scaling.divisor.astype(rows.dtype)
        if scaling.low is not None and scaling.high is not None:
            rows = np.clip(rows, scaling.low, scaling.high)
    return rows


def in_parts(shift: Floats, dtype: str) -> list[Floats]:
    """Numbers to subtract in turn, so that a float loses nothing of a shift: the shift, and what rounding left."""
    rest = shift - shift.astype(dtype)
    return [shift, rest] if rest.any() else [shift]


def _values(recipe: Recipe, vectors: Floats, x: Floats) -> Floats:
    """k of each vector and x, but for scale and constant, in their own type."""
    if recipe.inner == "dot":
        t = vectors @ x
    else:
        difference = vectors - x
        t = (difference * difference if recipe.inner == "sqdist" else np.abs(difference)).sum(axis=1)
    return np.asarray(ended(recipe.ending, recipe.numbers, t, ArrayArithmetic()))


def prepared_rows(recipe: Recipe, rows: Floats) -> Floats:
    """Rows after the recipe's matrix, and scaled to length 1 where it says so, in their own type."""
    if recipe.factor is not None:
        rows = rows @ recipe.factor.astype(rows.dtype)
    if recipe.normalise:
        for length in (np.abs(rows).max(axis=1, initial=0.0, keepdims=True), None):
            length = np.linalg.norm(rows, axis=1, keepdims=True) if length is None else length
            rows = rows / np.where(length > 0, length, rows.dtype.type(1))
    return rows


def _straight(recipe: Recipe) -> tuple[float, float] | None:
    """A factor and a constant with which k is a multiple of an inner product, plus a number."""
    if recipe.inner != "dot" or recipe.normalise:
        return None
    if recipe.ending == "polynomial" and recipe.numbers[2] == 1:
        gamma, coef0 = recipe.numbers[:2]
        return recipe.scale * gamma, recipe.scale * coef0 + recipe.constant
    return (recipe.scale, recipe.constant) if recipe.ending == "identity" else None


def _weights(
    factor: Floats | None, scale: float, constant: float, vectors: Floats, coefficients: Coefficients, b: Any
) -> tuple[Floats, Floats]:
    """w of each output, and b: sums of vectors may cancel, and do so here, in float64, instead of in the file."""
    W = weight_vectors(vectors, coefficients)
    if factor is not None:
        W = factor @ (factor.T @ W)
    return scale * W.T, _offset(b, constant, coefficients)


def _offset(b: Any, constant: float, coefficients: Coefficients) -> Floats:
    """Σ_j c_j·constant, which is added to b."""
    return np.asarray(b + constant * np.asarray(coefficients.sum(axis=0)).ravel())


def _centred(scalings: list[Scaling], vectors: Floats) -> tuple[list[Scaling], Floats]:
    """Vectors around zero, where they are far from it: what counts is x − z, and 32 bits are then spent on that."""
    if not len(vectors):
        return scalings, vectors
    centre = vectors.mean(axis=0)
    # Only in columns where a vector less the centre is exact: all of them lie between half and twice of it.
    centre = np.where(np.abs(centre) > 2 * np.ptp(vectors, axis=0), centre, 0.0)
    if not centre.any():
        return scalings, vectors
    return [*scalings, Scaling(centre, np.ones(len(centre)))], vectors - centre


def _columns_scaling(table: Tabular, medium: str) -> Scaling:
    """Scaling that a table of numbers without missing values applies to the columns that it uses."""
    used: list[Numbers] = []
    for one in table.columns_:
        if isinstance(one, Numbers) and not one.n_holes:
            used.append(one)
        elif not isinstance(one, LeftOut):
            raise TypeError(
                f"{medium} takes rows of numbers, but the column {one.name!r} is this: {one.description}; export the "
                "machine, ask(model).machine, and give it rows as ask(model).rows(table) makes them"
            )
    return Scaling(np.array([one.centre for one in used]), np.array([one.scale for one in used]))


def _scaling(step: Estimator, medium: str) -> Scaling:
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
        "the rows before they are predicted"
    )


def _recipe(machine: Estimator, medium: str) -> Recipe:
    expansion: Expansion = machine._expansion_
    recipe = expansion.kernel.recipe() if expansion.kernel.accepts == "vectors" else None
    if recipe is None:
        raise TypeError(
            f"{medium} cannot compute the kernel {expansion.kernel} of {type(machine).__name__}: it can if the core "
            "does (linear, polynomial, Gaussian, Laplacian, sigmoid, cosine, and multiples of one of them)"
        )
    return recipe


def _decision(machine: Estimator) -> tuple[Any, str]:
    """The labels, and how outputs become one."""
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
    """Tell whether all labels are strings."""
    return labels.dtype.kind == "U" or (labels.dtype.kind == "O" and all(isinstance(one, str) for one in labels))


def checked_name(name: Any) -> str:
    """A prefix for the names in the file."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,50}", name) or name in _KEYWORDS:
        raise ValueError(
            f"name={name!r:.80} cannot begin the names of a C file: it must be a letter followed by letters, digits "
            "and underscores, at most 51 in all, and no keyword of C"
        )
    return name


def name_from(path: Path) -> str:
    """A prefix from a file's name: what is no letter, digit or underscore in it becomes an underscore."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", path.stem)[:40]
    return name if re.match("[A-Za-z]", name) and name not in _KEYWORDS else f"model_{name}"
