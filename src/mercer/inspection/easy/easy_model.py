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
from mercer.inspection.easy.importance import Importance, with_numbers
from mercer.inspection.easy.page import (
    Line,
    certificate_facts,
    certificate_lines,
    hint_lines,
    page,
    table_facts,
    table_lines,
)
from mercer.inspection.explain import Explanation, explain
from mercer.runtime.available import available_if
from mercer.tables.dialect import quantity
from mercer.tables.estimator import Tabular, table_in


def _model_has(name: str) -> Callable[[Any], bool]:
    """Check that the model inside an `EasyModel` has an attribute; its AttributeError says why not."""

    def check(easy_model: Any) -> bool:
        getattr(easy_model.model, name)
        return True

    return check


@dataclass(eq=False, repr=False)
class EasyModel(ModelMethods):
    """The model that `mercer.easy` has trained, and its report.

    It predicts as `model` does, and has the methods of a table's machine: `explain`, `partial_dependence`, `reasons`,
    `margins`, `insight` and so on. It has no `fit`: give `model` to tools of scikit-learn that ask for an estimator.

    Attributes
    ----------
    model : CalibratedClassifier or CalibratedRegressor
        Around a `Tabular`, trained on all rows: what `save` saves and `mercer.load` gives back.
    target : str
        The column that was learnt.
    shape : (int, int)
        Rows, and columns beside the target.
    figures : ClassFigures or NumberFigures
        Of rows that were held out of training and of the search.
    judged_by : str
        How, in words.
    search : str
        What was searched and chosen, in words.
    kind_told : str
        Why it is a regression or not, where that was guessed.
    guesses : dict
        By column, what was guessed of it.
    hints : list of str
        What to try next.
    matters : Importance or None
        The columns by their Shapley values, with those of some rows as `explanation`.

    Examples
    --------
    See `easy`.
    """

    model: Any
    target: str
    shape: tuple[int, int]
    figures: ClassFigures | NumberFigures
    judged_by: str
    search: str
    kind_told: str = ""
    guesses: dict[str, str] = field(default_factory=dict)
    hints: list[str] = field(default_factory=list)
    matters: Importance | None = None

    @property
    def table(self) -> Tabular:
        """What reads the table, with the machine inside."""
        found = table_in(self.model)
        assert found is not None  # the model was made around it
        return found

    def predict(self, X: Any) -> Any:
        """The class or number of each row."""
        return self.model.predict(X)

    @available_if(_model_has("predict_proba"))
    def predict_proba(self, X: Any) -> Any:
        """The probability of each class."""
        return self.model.predict_proba(X)

    @available_if(_model_has("predict_log_proba"))
    def predict_log_proba(self, X: Any) -> Any:
        """The logarithm of the probability of each class."""
        return self.model.predict_log_proba(X)

    @available_if(_model_has("predict_set"))
    def predict_set(self, X: Any, alpha: float = 0.1) -> Any:
        """Mark for each row the classes that hold the true one with probability of about 1 − alpha."""
        return self.model.predict_set(X, alpha)

    @available_if(_model_has("p_values"))
    def p_values(self, X: Any) -> Any:
        """The conformal p-value of each class."""
        return self.model.p_values(X)

    def predict_interval(self, X: Any, *alpha: float) -> Any:
        """The ends of an interval that holds the number with probability of about 1 − alpha, by default 0.9."""
        return self.model.predict_interval(X, *alpha)

    def explain(
        self, X: Any, background: Any = None, *, background_weight: Any = None, verbose: bool = False
    ) -> Explanation:
        """Shapley values of rows, compared with `background`, by default rows of the training table."""
        if background is None and self.matters is not None:
            background = self.matters.background
        return explain(self.model, X, background, background_weight=background_weight, verbose=verbose)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The accuracy, or R² of a regression."""
        return float(self.model.score(X, y, sample_weight))

    @property
    def estimator_(self) -> Any:
        """The table with the machine inside, trained on all rows."""
        return self.model.estimator_

    @property
    def classes_(self) -> Any:
        """The class labels."""
        return self.model.classes_

    @property
    def guarantee_(self) -> str:
        """The guarantee of the probabilities or intervals, in words."""
        return str(self.model.guarantee_)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        return self.model.__sklearn_tags__()

    def _inside(self) -> Any:
        return self.model

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save `model` as `mercer.save` does, as a .mercer file unless the ending says otherwise."""
        from mercer.files.save_and_load import save

        save(self.model, path)

    def plot(self, kind: str = "bar", **options: Any) -> Any:
        """What matters, as "bar" or "beeswarm"; needs matplotlib."""
        if self.matters is None:
            raise ValueError("this machine has no exact Shapley values to draw")
        found = self.matters.explanation
        return (with_numbers(found, self.table.columns_) if kind == "beeswarm" else found).plot(kind, **options)

    @property
    def importance(self) -> dict[str, float]:
        """Of each column, its share of all Shapley values, the largest first."""
        return {} if self.matters is None else self.matters.shares

    def to_dict(self) -> Facts:
        """For a program."""
        return {
            "mercer": mercer.__version__,
            "target": self.target,
            "rows": self.shape[0],
            "columns": table_facts(self.table),
            "judged_by": self.judged_by,
            "score": {"held_out": getattr(self.figures, "accuracy", getattr(self.figures, "r2", None))},
            **self.figures.to_dict(),
            "importance": self.importance,
            "search": self.search,
            "guesses": self.guesses,
            "hints": self.hints,
            "certificate": certificate_facts(self.table.estimator_),
        }

    def lines(self, saved: str = "", all_of_it: bool = False) -> list[Line]:
        """The report, a name and what is said of it at a time; `all_of_it` also tells why parameters were chosen."""
        return [
            *(("in short" if not k else "", f"{k + 1}  {told}") for k, told in enumerate(self._in_short())),
            None,
            *self.figures.lines(),
            ("judged by", self.judged_by),
            None,
            *([] if self.matters is None else self.matters.lines()),
            None,
            *table_lines(self.table, self.guesses, all_of_it),
            None,
            *([("kind", self.kind_told)] if self.kind_told else []),
            ("machine", self.search if all_of_it else self.search.partition(";")[0]),
            *certificate_lines(self.table.estimator_),
            *([("saved", saved)] if saved else []),
            *hint_lines(self.hints[1:]),
        ]

    def _in_short(self) -> list[str]:
        """Five lines."""
        best = [(name, share) for name, share in self.importance.items() if share > 0][:3]
        matters = ", ".join(f"{name} ({share:.0%})" for name, share in best)
        rows = f"{self.shape[0]:,} rows"
        trained = self.table.n_rows_dropped_ and f"{self.shape[0] - self.table.n_rows_dropped_:,} of {rows}"
        sure = "predict_proba" if isinstance(self.figures, ClassFigures) else "predict_interval"
        proof = self.table.estimator_.certificate_
        nexts = self.hints or [f"predict new rows, and ask why: predict, {sure}, explain"]
        return [
            self.figures.headline,
            self._weakest(),
            f"what matters most: {matters}" if matters else "what matters is not known for this machine",
            f"the model has now seen {trained or f'all {rows}'}; its fit is {proof.verdict}",
            f"next: {nexts[0]}",
        ]

    def _weakest(self) -> str:
        if isinstance(self.figures, ClassFigures):
            recall, precision = self.figures.recall, self.figures.precision
            k = int(np.nanargmin(recall))
            alarms = "" if np.isnan(precision[k]) else f"; where it says so, {precision[k]:.0%} are"
            return f"hardest: of the rows that are {self.figures.classes[k]!r} it finds {recall[k]:.0%}{alarms}"
        low, high = np.quantile(np.abs(self.figures.truth - self.figures.answers), (0.5, 0.9))
        half, most = quantity(low, self.figures.unit), quantity(high, self.figures.unit)
        return f"half of the answers are off by at most {half}, nine of ten by at most {most}"

    def text(self, saved: str = "", all_of_it: bool = False, say: Callable[[str], str] = str) -> str:
        """The report; `say` turns what is told of parameters into other words."""
        title = f"mercer {mercer.__version__}: {self.target!r} from {self.shape[1]} columns of {self.shape[0]:,} rows"
        facts = [fact and (fact[0], say(fact[1])) for fact in self.lines(saved, all_of_it)]
        return "\n".join([title, "", *page(facts)])

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"EasyModel({self.target!r}, {self.figures.headline})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))  # in a notebook, and at IPython's prompt
