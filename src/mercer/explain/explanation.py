"""Explanation: Shapley values with what they add up from, in the form that plots take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mercer.arrays import Floats
from mercer.data.labels import Pair
from mercer.explain.outputs import class_signs
from mercer.on_demand import attribute_of
from mercer.optional import require

if TYPE_CHECKING:
    from mercer.displays import ExplanationDisplay

_LINES = 10


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """The Shapley values of some samples; ``base_values + values.sum(axis=1)`` is f at each of them.

    Attributes
    ----------
    values : array of shape (n_samples, n_features), or (n_samples, n_features, n_outputs)
        How much each feature adds to f.
    base_values : array of shape (n_samples,), or (n_samples, n_outputs)
        The mean of f over the background.
    data : array of shape (n_samples, n_features)
        The samples.
    feature_names : list of str
        The names of the columns, or x0, x1, ….
    output_names : tuple of str
        The class that f > 0 speaks for, or a name for each output.
    error : float
        The largest difference between base_values + Σ values and f, which was computed in the ordinary way: rounding.
    classes : array or None
        Of a classifier.
    pairs : list or None
        The two classes of each output, of a classifier with a function for each pair.

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
    data: Floats
    feature_names: list[str]
    output_names: tuple[str, ...] = ("f",)
    error: float = 0.0
    classes: Any = field(default=None, repr=False)
    pairs: Sequence[Pair] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.values.ndim == 3 and self.values.shape[2] == 1:
            object.__setattr__(self, "values", self.values[:, :, 0])
            object.__setattr__(self, "base_values", self.base_values[:, 0])

    @property
    def several(self) -> bool:
        """Whether there are several outputs."""
        return self.values.ndim == 3

    @property
    def importance(self) -> Floats:
        """The mean of |values| over the samples, one number per feature, or a column per output."""
        return np.asarray(np.abs(self.values).mean(axis=0))

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Any) -> Self:
        """The explanation of some of the samples: a slice, indices, or one number."""
        some = np.atleast_1d(np.arange(len(self))[rows])
        return replace(self, values=self.values[some], base_values=self.base_values[some], data=self.data[some])

    def output(self, which: int | str) -> Self:
        """The explanation of one of several outputs, by its number or name."""
        if not self.several:
            raise ValueError(f"there is one output only, {self.output_names[0]!r}")
        k = self._place(which)
        return self._of(self.values[:, :, k], self.base_values[:, k], self.output_names[k])

    def of_class(self, label: Any) -> Self:
        """What speaks for a class: the values of its function, or the sum of those of its pairs.

        One against one decides by votes, which no features share exactly; the sum of a class's decision values is what
        breaks ties between them.
        """
        if self.classes is None:
            raise ValueError("only classifiers have classes; output(k) gives the explanation of one output")
        labels = self.classes.tolist()
        if label not in labels:
            raise ValueError(f"{label!r} is not one of the classes {labels}")
        signs = class_signs(len(labels), self.pairs)[:, labels.index(label)]
        shape = (*self.values.shape[:2], -1)
        return self._of(self.values.reshape(shape) @ signs, self.base_values.reshape(len(self), -1) @ signs, str(label))

    def to_frame(self) -> Any:
        """A pandas DataFrame: a row per sample and a column per feature, of several outputs under their names."""
        pandas = require("pandas", "a frame of Shapley values")
        if not self.several:
            return pandas.DataFrame(self.values, columns=self.feature_names)
        columns = pandas.MultiIndex.from_product([self.output_names, self.feature_names], names=["output", "feature"])
        return pandas.DataFrame(self.values.transpose(0, 2, 1).reshape(len(self), -1), columns=columns)

    def to_shap(self) -> Any:
        """As a `shap.Explanation`, for the plots of that package."""
        made = require("shap", "an explanation for its plots").Explanation
        names = list(self.output_names) if self.several else None
        return made(
            values=self.values,
            base_values=self.base_values,
            data=self.data,
            feature_names=list(self.feature_names),
            output_names=names,
        )

    def plot(self, kind: str = "bar", **options: Any) -> ExplanationDisplay:
        """The picture: "bar" or "beeswarm"; see `mercer.displays.ExplanationDisplay`."""
        display = attribute_of("mercer.displays", "ExplanationDisplay")
        drawn: ExplanationDisplay = display.from_explanation(self, kind=kind, **options)
        return drawn

    def __repr__(self) -> str:
        return f"Explanation({len(self)} samples, {len(self.feature_names)} features, {len(self.output_names)} outputs)"

    def __str__(self) -> str:
        sizes = self.importance if not self.several else self.importance.mean(axis=1)
        order = np.argsort(-sizes, kind="stable")
        lines = [f"{len(self)} samples, {len(sizes)} features, {len(self.output_names)} outputs; mean |value|"]
        wide = max((len(self.feature_names[j]) for j in order[:_LINES]), default=0)
        lines += [f"{self.feature_names[j].ljust(wide)}  {sizes[j]:.4g}" for j in order[:_LINES]]
        return "\n".join([*lines, f"and {len(order) - _LINES} more"] if len(order) > _LINES else lines)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))  # in a notebook, and at IPython's prompt

    def _place(self, which: int | str) -> int:
        if isinstance(which, str):
            if which not in self.output_names:
                raise ValueError(f"there is no output {which!r}; there are {', '.join(self.output_names)}")
            return self.output_names.index(which)
        if not -len(self.output_names) <= which < len(self.output_names):
            raise IndexError(f"there is no output {which}; there are {len(self.output_names)}, counted from 0")
        return int(which) % len(self.output_names)

    def _of(self, values: Floats, base_values: Floats, name: str) -> Self:
        return replace(self, values=values, base_values=base_values, output_names=(name,), classes=None, pairs=None)
