"""What to try next, each suggestion after a test on the table itself: it names what it measured, or is not given.

Tests that train again change one thing in the models of the held-out rows, and compare the losses of the same rows: a
difference counts if it is more than 2.5 standard errors: several tests are made, and chance alone passes one in 160.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold

from mercer.inspection.easy.figures import ClassFigures, NumberFigures
from mercer.inspection.easy.outliers import FAR, Outliers
from mercer.samples.arrays import Flags, Floats, Indices
from mercer.tables.cells import is_missing, level_name
from mercer.tables.dialect import format_quantity
from mercer.tables.encodings import CYCLES, Dates, DroppedColumn
from mercer.tables.frame import Frame

if TYPE_CHECKING:
    from mercer.inspection.easy.easy_model import EasyModel

_MOST_ROWS = 3000  # training rows of a test; larger tables are sampled
_LEAST_ROWS = 40  # held-out rows without which a comparison of losses says nothing
_LEAST_FOR_DOUBT = 100  # held-out rows without which columns are not called useless
_LOST_RECALL = 0.5  # recall below which a class counts as lost
_REVEALING_SCORE = 0.99  # accuracy or R² of a column that may be the target in another form
_USELESS_SHARE = 0.3  # share of the way to a perfect score that must be out of reach before columns are called useless
_IMPORTANT_SHARE = 0.2  # share of the importance from which a missing cell may explain a wrong prediction
_MOST_TEXTS = 2  # text columns that are tried
_MOST_DATES = 2  # columns of dates that are tried
_LEAST_DAYS = 28  # days that dates span before their weekdays are tried
_CLEAR_ERRORS = 2.5  # standard errors of a difference that counts
_WORTHWHILE_GAIN = 0.02  # gain by the second half of the rows; as many rows again gain less than that
_POSSIBLE_ERRORS = 3.0  # standard errors by which a score may be better, before columns are called useless
_GAP_RATIO = 4.0  # ratio of an error to the next smaller one, squared for a single row


def advise(model: EasyModel) -> list[str]:
    """Return suggestions in Python's parameter names, the most important first; the command line rewords them."""
    advice = _Advice(model)
    copies, order = advice.repeated_rows(), advice.order()
    columns_to_add = [advice.rare_class(), advice.texts(), advice.weekdays()]
    hints = [advice.outliers(), advice.revealing_column(), copies, order, *columns_to_add]
    if advice.is_useless and not any(columns_to_add):
        hints.append(advice.weak_columns())
    elif not (copies or order):  # else half of the rows are predicted worse since they lack copies or neighbours
        hints.append(advice.more_rows())
    return [hint for hint in hints if hint]


class _Advice:
    """Tests of one model on its table; each returns a suggestion, or an empty text."""

    def __init__(self, model: EasyModel) -> None:
        self.model, self.figures, self.target = model, model.figures, model.target
        self.frame, self.y, self.held_out = model.training.frame, model.training.y, model.training.held_out
        self.seed = model.training.options["random_state"]
        self.counted: Flags = np.ones(len(self.held_out.rows), dtype=bool)  # outliers would decide every comparison
        if isinstance(self.figures, NumberFigures):
            self.counted = ~self.figures.outlying

    @property
    def is_useless(self) -> bool:
        """True if the model hardly predicts better than a constant."""
        return self.figures.is_useless

    # --- suggestions --------------------------------------------------------------------------------------------------

    def outliers(self) -> str:
        """Suggest to check targets that are far off."""
        if not self.model.outliers:
            return ""
        rows = np.intersect1d(self.model.outliers.rows, self._beyond_gap())
        outliers = Outliers(rows[~self._may_lack_cells(rows)]) if len(rows) else Outliers(rows)
        if not outliers:
            return ""
        verb = "is" if len(outliers) == 1 else "are"
        rows_named = f"{outliers.row_names()}, which {verb} far off"
        return f"check {self.target!r} in {rows_named}: a misplaced decimal point, another unit?"

    def _beyond_gap(self) -> Indices:
        """Return the rows above a gap in the sizes of the errors, which slips leave and heavy tails hardly ever do.

        If errors exceed t with a probability in proportion to 1/t^a, the k-th largest is more than g times the next one
        with probability g^(−ak) (Rényi 1953): g = 16 for one row and 4 for two are as rare.
        """
        errors = np.asarray(self.model.model.residuals_)
        order = np.argsort(errors, kind="stable")
        sizes = errors[order]
        n_above = np.arange(len(sizes) - 1, 0, -1)  # number of errors above each gap
        is_gap = sizes[1:] > np.where(n_above == 1, _GAP_RATIO**2, _GAP_RATIO) * sizes[:-1]
        gaps = np.flatnonzero(is_gap & (sizes[1:] > FAR * np.median(errors)))
        return order[gaps[0] + 1 :] if len(gaps) else order[:0]

    def _may_lack_cells(self, rows: Indices) -> Flags:
        """Return which rows the model may miss for want of a cell of an important column: their targets are usual."""
        important_columns = [name for name, share in self.model.importance.items() if share >= _IMPORTANT_SHARE]
        lacks_cell = np.zeros(len(rows), dtype=bool)
        for name in important_columns:
            lacks_cell |= [is_missing(item) for item in self.frame[name][rows].tolist()]
        others = np.delete(self.y, rows)
        is_usual = (self.y[rows] >= others.min()) & (self.y[rows] <= others.max())
        return np.asarray(lacks_cell & is_usual)

    def revealing_column(self) -> str:
        """Suggest to check a column that alone predicts almost perfectly, while the others together do not."""
        names = [name for name, share in self.model.importance.items() if share > 0]
        if len(names) < 2 or self._score(self.held_out.answers) < _REVEALING_SCORE or self._too_few:
            return ""
        alone_score = self._score(self._retrained_answers({"only": [names[0]], "drop": ()}))
        if alone_score < _REVEALING_SCORE:
            return ""
        others = {"only": None, "drop": [*self._dropped, names[0]]}
        other_score = self._score(self._retrained_answers(others))
        if 1 - other_score < 5 * (1 - alone_score) + 0.05:
            return ""
        return (
            f"{names[0]!r} alone predicts {self.target!r} almost perfectly ({self._named(alone_score)}), and the other "
            f"columns do not ({self._named(other_score)}): check that it is known before {self.target!r} is, and not "
            "another form of it"
        )

    def repeated_rows(self) -> str:
        """Warn that rows which occur twice are predicted better, since their twins were trained on."""
        names = [encoding.name for encoding in self.model.table.columns_ if not isinstance(encoding, DroppedColumn)]
        columns = [[level_name(item) for item in self.frame[name].tolist()] for name in names]
        if max((len(set(column)) for column in columns), default=0) <= len(self.frame) / 2:
            return ""  # rows of few categories are often equal by chance
        rows = list(zip(*columns, strict=True))
        counts: dict[Any, int] = {}
        for row in rows:
            counts[row] = counts.get(row, 0) + 1
        repeated = np.array([counts[row] > 1 for row in rows])
        is_repeated, losses = repeated[self.held_out.rows] & self.counted, self._losses(self.held_out.answers)
        is_unique = ~repeated[self.held_out.rows] & self.counted
        if min(is_repeated.sum(), is_unique.sum()) < _LEAST_ROWS / 2:
            return ""
        score = self._named(self._score(self.held_out.answers, is_unique))
        error = np.sqrt(losses[is_repeated].var() / is_repeated.sum() + losses[is_unique].var() / is_unique.sum())
        if not losses[is_unique].mean() - losses[is_repeated].mean() > _CLEAR_ERRORS * error:
            return ""
        return (
            f"{repeated.sum():,} of {len(rows):,} rows occur more than once, so the model had seen most of them; on "
            f"rows that occur once it reaches {score}: remove the copies"
        )

    def order(self) -> str:
        """Warn if rows are predicted worse when no neighbouring rows of the table are in training."""
        if len(self.y) < 2 * _LEAST_ROWS or not has_similar_neighbours(self.y):
            return ""
        rows = np.arange(min(len(self.y), _MOST_ROWS))
        shuffled_answers, block_answers = (
            self._cross_predicted(rows, KFold(5, shuffle=shuffle, random_state=self.seed if shuffle else None))
            for shuffle in (True, False)
        )
        is_counted = np.ones(len(rows), dtype=bool)
        if self.model.outliers is not None:
            is_counted[self.model.outliers.rows[self.model.outliers.rows < len(rows)]] = False
        gain = (self._losses(block_answers, rows) - self._losses(shuffled_answers, rows))[is_counted]
        shuffled_score, block_score = (
            self._score(answers, is_counted, rows) for answers in (shuffled_answers, block_answers)
        )
        if not (_is_clear(gain) and shuffled_score - block_score > 0.05):
            return ""
        return (
            f"rows near one another are alike: {self._named(shuffled_score)} with such rows in training, "
            f"{self._named(block_score)} without them; if new rows come later, expect the second"
        )

    def rare_class(self) -> str:
        """Suggest balanced class weights if they find clearly more rows of a class with low recall."""
        figures = self.figures
        if not isinstance(figures, ClassFigures) or figures.weighed or self._too_few:
            return ""
        k = int(np.nanargmin(figures.recall))
        if not figures.recall[k] < _LOST_RECALL:
            return ""
        codes = np.unique(self.y, return_inverse=True)[1][self.held_out.rows]
        plain_losses, balanced_losses = (
            self._losses(self._retrained_answers(change)) for change in ({}, {"estimator__class_weight": "balanced"})
        )
        classes = np.unique(codes)
        means, errors = [], []
        for code in classes:
            gain = (plain_losses - balanced_losses)[codes == code]
            means.append(gain.mean())
            errors.append(gain.var() / len(gain))
        in_rare_class = codes == k
        balanced_recall, plain_recall = (1 - losses[in_rare_class].mean() for losses in (balanced_losses, plain_losses))
        gain_is_clear = np.mean(means) > _CLEAR_ERRORS * np.sqrt(np.sum(errors)) / len(classes)
        if not (gain_is_clear and balanced_recall > plain_recall + 0.1):
            return ""
        balanced_score, plain_score = (
            np.mean([1 - losses[codes == code].mean() for code in classes])
            for losses in (balanced_losses, plain_losses)
        )
        return (
            f"class_weight='balanced' finds {balanced_recall:.0%} of the rows of {figures.classes[k]!r} instead of "
            f"{plain_recall:.0%}; the balanced accuracy is then {balanced_score:.1%} instead of {plain_score:.1%}"
        )

    def texts(self) -> str:
        """Suggest columns of text whose words improve the predictions."""
        names = [
            encoding.name
            for encoding in self.model.table.columns_
            if isinstance(encoding, DroppedColumn) and "different texts" in encoding.reason
        ]
        if self._too_few:
            return ""
        losses_without_words = self._losses(self._retrained_answers({}))
        useful_names = []
        for name in names[:_MOST_TEXTS]:
            losses_with_words = self._losses(self._retrained_answers({"text": [*self.model.table.text, name]}))
            if _is_clear((losses_without_words - losses_with_words)[self.counted]):
                useful_names.append(name)
        if not useful_names:
            return ""
        column_names = " and ".join(map(repr, useful_names))
        verb, it, its = ("is", "it", "its") if len(useful_names) == 1 else ("are", "them", "their")
        return (
            f"{column_names} {verb} not used, but {its} words help; name {it} in the parameter text to use {its} words"
        )

    def weekdays(self) -> str:
        """Suggest a column of weekdays if it improves the predictions, for the first date column where it does."""
        if self._too_few:
            return ""
        answers = None
        for encoding in [one for one in self.model.table.columns_ if isinstance(one, Dates)][:_MOST_DATES]:
            days = np.floor(encoding.values(self.frame[encoding.name]) / CYCLES["time of day"])
            known_days = days[~np.isnan(days)]
            if np.ptp(known_days) < _LEAST_DAYS or len(np.unique(known_days % 7)) == 1:
                continue
            weekdays = [None if np.isnan(day) else f"weekday {day % 7:.0f}" for day in days.tolist()]
            answers = self._retrained_answers({}) if answers is None else answers
            better_answers = self._retrained_answers({}, more=weekdays)
            gain = (self._losses(answers) - self._losses(better_answers))[self.counted]
            score, better_score = self._score(answers), self._score(better_answers)
            if _is_clear(gain) and better_score - score > _WORTHWHILE_GAIN:
                return (
                    f"{self.target!r} changes with the weekday of {encoding.name!r}: add a column of weekdays "
                    f"({self._named(better_score)} with it, {self._named(score)} without)"
                )
        return ""

    def weak_columns(self) -> str:
        """Say that the columns hardly predict the target, or that the rows are too few to tell."""
        figures = self.figures
        if isinstance(figures, ClassFigures):
            best, constant = figures.balanced_accuracy + _POSSIBLE_ERRORS * figures.standard_errors[1], figures.constant
            share_of_possible_gain = (best - constant) / (1 - constant) if constant < 1 else 0.0
        else:
            clean = figures.without_outliers
            share_of_possible_gain = clean.r2 + _POSSIBLE_ERRORS * clean.standard_error
        if len(self.held_out.rows) < _LEAST_FOR_DOUBT or not share_of_possible_gain < _USELESS_SHARE:
            return f"{len(self.y):,} rows are too few to tell if these columns predict {self.target!r}; collect more"
        return f"these columns hardly predict {self.target!r}; {other_columns(self.model.table.columns_)}"

    def more_rows(self) -> str:
        """Suggest more rows if half of them give clearly worse predictions."""
        if self._too_few or len(self.y) > _MOST_ROWS:
            return ""
        half_answers = self._retrained_answers({}, share=0.5)
        gain = self._losses(half_answers) - self._losses(self.held_out.answers)
        full_score, half_score = (self._score(answers) for answers in (self.held_out.answers, half_answers))
        if not (_is_clear(gain[self.counted]) and full_score - half_score > _WORTHWHILE_GAIN):
            return ""
        return f"more rows would help: {self._named(half_score)} with half of them, {self._named(full_score)} with all"

    # --- measurements -------------------------------------------------------------------------------------------------

    @property
    def _too_few(self) -> bool:
        return len(self.held_out.rows) < _LEAST_ROWS

    @property
    def _dropped(self) -> list[str]:
        return list(self.model.table.drop)

    def _losses(self, answers: Any, rows: Indices | None = None) -> Floats:
        """Absolute error of each prediction, or 1 for a wrong class."""
        truth = self.y[self.held_out.rows if rows is None else rows]
        if isinstance(self.figures, ClassFigures):
            return np.asarray(answers != truth, dtype=np.float64)
        return np.asarray(np.abs(answers - truth))

    def _score(self, answers: Any, selected: Flags | None = None, rows: Indices | None = None) -> float:
        """Accuracy, balanced if the classes are weighted, or R², of the held-out rows or of others."""
        truth = self.y[self.held_out.rows if rows is None else rows]
        selected = self.counted if selected is None else selected
        if isinstance(self.figures, NumberFigures):
            return NumberFigures(truth[selected], np.asarray(answers)[selected], 0.0).r2
        figures = ClassFigures(truth[selected], np.asarray(answers)[selected], np.unique(self.y))
        return figures.balanced_accuracy if self.figures.weighed else figures.accuracy

    def _named(self, score: float) -> str:
        if isinstance(self.figures, NumberFigures):
            return f"R² {format_quantity(round(score, 3))}"
        return f"{'balanced ' * self.figures.weighed}accuracy {score:.1%}"

    def _retrained_answers(self, change: dict[str, Any], share: float = 1.0, more: list[Any] | None = None) -> Any:
        """Predict the held-out rows by models with other parameters, fewer training rows, or one `more` column.

        C grows as the rows get fewer: with C times the number of rows constant, the balance of errors and ‖w‖² stays.
        """
        answers, frame = self.held_out.answers.copy(), self.frame
        if more is not None:
            name = max(frame.names, key=len) + " more"  # no other column has this name
            frame = frame.with_columns([*frame.names, name], [*frame.columns, more])
            only = self.model.table.only
            change = {"only": None if only is None else [*only, name], **change}
        for k, (model, rows) in enumerate(zip(self.held_out.models, self.held_out.trained_on, strict=True)):
            count, options = min(round(share * len(rows)), _MOST_ROWS), change
            if count < len(rows):
                options = {"estimator__C": model.get_params()["estimator__C"] * len(rows) / count, **change}
                rows = np.sort(np.random.default_rng(self.seed).permutation(rows)[:count])
            elif not change:
                continue
            in_fold = self.held_out.fold == k
            answers[in_fold] = self._predict(
                clone(model).set_params(**options), rows, self.held_out.rows[in_fold], frame
            )
        return answers

    def _cross_predicted(self, rows: Indices, folds: KFold) -> Any:
        """Predict rows of the table by the final model's parameters, trained on the other rows."""
        answers = np.empty(len(rows), dtype=self.held_out.answers.dtype)
        for train, test in folds.split(rows):
            answers[test] = self._predict(clone(self.model.table), rows[train], rows[test])
        return answers

    def _predict(self, model: Any, train: Indices, test: Indices, frame: Frame | None = None) -> Any:
        """Train on some rows of a table and predict others; a single class is predicted everywhere."""
        frame = self.frame if frame is None else frame
        first = self.y[train][0]
        if isinstance(self.figures, ClassFigures) and (self.y[train] == first).all():
            return np.full(len(test), first)
        return model.fit(frame.rows(train), self.y[train]).predict(frame.rows(test))


def has_similar_neighbours(y: Any) -> bool:
    """Return whether neighbouring rows have more similar targets than others, in a table not sorted by the target."""
    values = np.asarray(y)
    if values.dtype.kind == "f":
        differences, spread = np.diff(values), float(values.var())
        is_sorted = bool((differences >= 0).all() or (differences <= 0).all())
        return not is_sorted and spread > 0 and float((differences**2).mean()) < 0.8 * 2 * spread
    shares = np.unique(values, return_counts=True)[1] / len(values)
    is_change = values[1:] != values[:-1]
    is_sorted = int(is_change.sum()) <= len(shares) - 1
    return not is_sorted and float(is_change.mean()) < 0.8 * (1 - float((shares**2).sum()))


def other_columns(columns: list[Any]) -> str:
    """Return the advice to look for other columns, naming one that was dropped."""
    dropped_columns = [
        encoding.name
        for encoding in columns
        if isinstance(encoding, DroppedColumn) and encoding.guessed and "identifier" not in encoding.reason
    ]
    return (
        f"others might, such as {dropped_columns[0]!r}, which is left out"
        if dropped_columns
        else "look for others that might"
    )


def _is_clear(gain: Floats) -> bool:
    """Return whether the mean is more than 2.5 standard errors above 0."""
    return len(gain) > 1 and float(gain.mean()) > _CLEAR_ERRORS * float(gain.std(ddof=1)) / np.sqrt(len(gain))
