"""The model that `mercer.easy` returns, and its report."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import mercer
from mercer.estimators.fitting.wrapper_mixin import ModelMethods
from mercer.inspection.easy.figures import ClassFigures, Facts, NumberFigures
from mercer.inspection.easy.held_out import HeldOut
from mercer.inspection.easy.importance import Importance, with_numbers
from mercer.inspection.easy.outliers import Outliers
from mercer.inspection.easy.page import (
    Line,
    certificate_facts,
    certificate_lines,
    column_facts,
    hint_lines,
    page,
    table_lines,
)
from mercer.inspection.explain import Explanation, explain
from mercer.runtime.available import available_if
from mercer.tables.dialect import format_quantity
from mercer.tables.estimator import Tabular, table_in
from mercer.tables.frame import Frame


def _model_has(name: str) -> Callable[[Any], bool]:
    """Return a check that the model inside an `EasyModel` has an attribute; its AttributeError says why not."""

    def check(easy_model: Any) -> bool:
        getattr(easy_model.model, name)
        return True

    return check


@dataclass(frozen=True, eq=False)
class Training:
    """Table that a model was trained on, predictions for held-out rows, and the parameters of `mercer.easy`."""

    frame: Frame
    y: Any
    held_out: HeldOut
    options: dict[str, Any]
    source: str  # path of the table, or "the table"
    command: str = ""  # words of the command line
    path_suffices: bool = True  # False if the command line had options that say how to read the file


@dataclass(eq=False, repr=False)
class EasyModel(ModelMethods):
    """Model trained by `mercer.easy`, with its report.

    It predicts as `model` does and has the methods of an estimator for tables: `explain`, `partial_dependence`,
    `reasons`, `margins`, `insight` and others. It has no `fit`: pass `model` to tools of scikit-learn that need an
    estimator.

    Attributes
    ----------
    model : CalibratedClassifier or CalibratedRegressor
        Calibrated `Tabular` estimator, trained on all rows. `save` writes it and `mercer.load` returns it.
    target : str
        Name of the target column.
    training : Training
        Table that the model was trained on, and predictions for held-out rows; `save` does not write them.
    figures : ClassFigures or NumberFigures
        Scores on rows that neither training nor the search has seen.
    search : str
        Chosen parameters and extent of the search, in words.
    kind_reason : str
        Reason for a regression, if that was guessed.
    guesses : dict
        Guesses about columns that you may want to check, by column name.
    hints : list of str
        Suggestions for what to try next.
    matters : Importance or None
        Importance of the columns; its `explanation` holds the Shapley values of a sample of rows.
    outliers : Outliers or None
        Rows of a regression that are more than 20 times as far off as the median of the rest.

    Examples
    --------
    See `easy`.
    """

    model: Any
    target: str
    training: Training
    figures: ClassFigures | NumberFigures
    search: str
    kind_reason: str = ""
    guesses: dict[str, str] = field(default_factory=dict)
    hints: list[str] = field(default_factory=list)
    matters: Importance | None = None
    outliers: Outliers | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows, and number of columns without the target."""
        return self.training.frame.shape

    @property
    def judged_by(self) -> str:
        """Evaluation method, in words."""
        return self.training.held_out.method

    @property
    def table(self) -> Tabular:
        """`Tabular` estimator inside the model."""
        table = table_in(self.model)
        assert table is not None  # easy builds every model around one
        return table

    def predict(self, X: Any) -> Any:
        """Predict the class or the number of each row."""
        return self.model.predict(X)

    @available_if(_model_has("predict_proba"))
    def predict_proba(self, X: Any) -> Any:
        """Predict the probability of each class."""
        return self.model.predict_proba(X)

    @available_if(_model_has("predict_log_proba"))
    def predict_log_proba(self, X: Any) -> Any:
        """Predict the logarithm of the probability of each class."""
        return self.model.predict_log_proba(X)

    @available_if(_model_has("predict_set"))
    def predict_set(self, X: Any, alpha: float = 0.1) -> Any:
        """Predict a set of classes for each row that contains the true class with probability about 1 − alpha."""
        return self.model.predict_set(X, alpha)

    @available_if(_model_has("p_values"))
    def p_values(self, X: Any) -> Any:
        """Conformal p-value of each class, for each row."""
        return self.model.p_values(X)

    def predict_interval(self, X: Any, *alpha: float) -> Any:
        """Predict the ends of an interval that contains the number with probability about 1 − alpha, by default 0.9."""
        return self.model.predict_interval(X, *alpha)

    def explain(
        self, X: Any, background: Any = None, *, background_weight: Any = None, verbose: bool = False
    ) -> Explanation:
        """Compute Shapley values of rows relative to `background`, by default rows of the training table."""
        if background is None and self.matters is not None:
            background = self.matters.background
        return explain(self.model, X, background, background_weight=background_weight, verbose=verbose)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy, or R² of a regression."""
        return float(self.model.score(X, y, sample_weight))

    @property
    def estimator_(self) -> Any:
        """`Tabular` estimator inside the model, trained on all rows."""
        return self.model.estimator_

    @property
    def classes_(self) -> Any:
        """Class labels."""
        return self.model.classes_

    @property
    def guarantee_(self) -> str:
        """Guarantee of the probabilities or intervals, in words."""
        return str(self.model.guarantee_)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        return self.model.__sklearn_tags__()

    def _inner_model(self) -> Any:
        return self.model

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save `model` as `mercer.save` does: as a .mercer file, unless the suffix of `path` says otherwise."""
        from mercer.files.save_and_load import save

        save(self.model, path)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write the report with its pictures as a single HTML file that needs no network.

        Parameters
        ----------
        path : str or path
            The file, such as "report.html".
        """
        from mercer.files.atomic_write import replacing
        from mercer.inspection.easy.html_page import html_page

        with replacing(path) as file:
            file.write(html_page(self).encode())

    def plot(self, kind: str = "bar", **options: Any) -> Any:
        """Plot the importance of the columns as "bar" or "beeswarm"; needs matplotlib."""
        from mercer.inspection.displays.drawing import show_unit

        if self.matters is None:
            raise ValueError("this model has no exact Shapley values to plot")
        explanation = self.matters.explanation
        if kind == "beeswarm":
            explanation = with_numbers(explanation, self.table.columns_)
        display = explanation.plot(kind, **options)
        if isinstance(self.figures, NumberFigures) and self.figures.unit:
            show_unit(display.ax_.xaxis, self.figures.unit)
        return display

    @property
    def importance(self) -> dict[str, float]:
        """Share of each column in the mean |Shapley value|, the largest first."""
        return {} if self.matters is None else self.matters.shares

    def to_dict(self) -> Facts:
        """Return the report as plain values."""
        return {
            "mercer": mercer.__version__,
            "target": self.target,
            "rows": self.shape[0],
            "columns": column_facts(self.table),
            "judged_by": self.judged_by,
            "score": {"held_out": getattr(self.figures, "accuracy", getattr(self.figures, "r2", None))},
            **self.figures.to_dict(),
            "importance": self.importance,
            "search": self.search,
            **({} if self.outliers is None else {"outlying_rows": (self.outliers.rows + 1).tolist()}),
            "guesses": self.guesses,
            "hints": self.hints,
            "certificate": certificate_facts(self.table.estimator_),
        }

    def lines(self, saved: str = "", all_of_it: bool = False) -> list[Line]:
        """Return the report as pairs of a name and a text; `all_of_it` adds every column and how the search chose."""
        return [
            *(("in short" if not k else "", f"{k + 1}  {line}") for k, line in enumerate(self._short_report())),
            None,
            *self.figures.lines(),
            *([("outliers", self.outliers.describe())] if self.outliers else []),
            ("judged by", f"{self.judged_by}; ± is a 95% interval"),
            None,
            *([] if self.matters is None else self.matters.lines()),
            None,
            *table_lines(self.table, self.guesses, all_of_it),
            None,
            *([("kind", self.kind_reason)] if self.kind_reason else []),
            ("machine", self.search if all_of_it else self.search.partition(";")[0]),
            *certificate_lines(self.table.estimator_),
            *([("saved", saved)] if saved else []),
            *hint_lines(self.hints[1:]),
        ]

    def _short_report(self) -> list[str]:
        """Return the report in five lines: accuracy, weakness, columns that matter, certificate, next step."""
        best = [(name, share) for name, share in self.importance.items() if share > 0][:3]
        matters = ", ".join(f"{name} ({share:.0%})" for name, share in best)
        if not matters:
            matters = "no column" if self.matters else "not available, as this model has no exact Shapley values"
        rows = f"{self.shape[0]:,} rows"
        trained_text = self.table.n_rows_dropped_ and f"{self.shape[0] - self.table.n_rows_dropped_:,} of {rows}"
        proof = self.table.estimator_.certificate_
        return [
            self.figures.headline,
            self._weakness_text(),
            f"what matters most: {matters}",
            f"the final model is trained on {trained_text or f'all {rows}'}; its fit is {proof.verdict}",
            f"next: {self.next_step}",
        ]

    @property
    def next_step(self) -> str:
        """The most helpful suggestion; without one, how to predict new rows."""
        if self.hints:
            return self.hints[0]
        uncertainty = "predict_proba" if isinstance(self.figures, ClassFigures) else "predict_interval"
        return f"predict new rows with predict or {uncertainty}; explain says why"

    def _weakness_text(self) -> str:
        """Return the class with the lowest F1 score, or quantiles of the errors of a regression, in one sentence."""
        if isinstance(self.figures, ClassFigures):
            recall, precision = self.figures.recall, self.figures.precision
            k = self.figures.hardest
            name = repr(self.figures.classes[k])
            precision_text = "" if np.isnan(precision[k]) else f"; {precision[k]:.0%} of {name} predictions are right"
            return f"hardest class: {name} ({recall[k]:.0%} of its rows are found{precision_text})"
        low, high = np.quantile(np.abs(self.figures.truth - self.figures.answers), (0.5, 0.9))
        half_width, nine_tenths = format_quantity(low, self.figures.unit), format_quantity(high, self.figures.unit)
        return f"half of the predictions are within {half_width} of the true value, nine in ten within {nine_tenths}"

    def text(self, saved: str = "", all_of_it: bool = False, say: Callable[[str], str] = str) -> str:
        """Return the report as text; `say` translates its sentences, such as Python parameters into CLI options."""
        title = f"mercer {mercer.__version__}: {self.target!r} from {self.shape[1]} columns of {self.shape[0]:,} rows"
        facts = [fact and (fact[0], say(fact[1])) for fact in self.lines(saved, all_of_it)]
        return "\n".join([title, "", *page(facts)])

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"EasyModel({self.target!r}, {self.figures.headline})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))  # in a notebook, and at IPython's prompt
