"""The report of `mercer.easy` as one HTML file with its pictures, to send to somebody: no script, no network."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import mercer
from mercer.inspection.easy.evidence import (
    MOST_OUTLIERS,
    Curve,
    MissedRow,
    dependence_curves,
    missed_rows,
    reliability,
    shades_of,
)
from mercer.inspection.easy.figures import ClassFigures, NumberFigures
from mercer.inspection.easy.html_style import STYLE
from mercer.inspection.easy.importance import with_numbers
from mercer.inspection.easy.page import MOST_COLUMNS, certificate_lines, first_columns, guesses_to_check
from mercer.inspection.easy.svg import (
    Plot,
    dot_strip,
    escape,
    margin_for,
    quantity,
    reliability_plot,
    swarm_strip,
    truth_plot,
)

if TYPE_CHECKING:
    from mercer.inspection.easy.easy_model import EasyModel

_COLUMNS, _CURVES, _CLASSES = 10, 6, 12  # columns in the swarm, pictures of dependence, classes in the matrix
_COVERAGE = np.array([0.5, 0.8, 0.9, 0.95])
# A browser that obeys this policy runs no script and loads nothing, even if an escape were missing.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def html_page(model: EasyModel) -> str:
    """Return the report as HTML."""
    rows, columns = model.shape
    title = f"Predicting {model.target!r}"
    source = "" if model.training.source == "the table" else f" of {Path(model.training.source).name}"
    sections = [
        _scores_section(model),
        _importance_section(model),
        _errors_section(model),
        _confidence_section(model),
        _next_steps_section(model),
        _certificate(model),
        _call_section(model),
        _columns(model),
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>\n<body><main>\n"
        f"<header><h1>{escape(title)}</h1>"
        f"<p>from {columns:,} column{'s' * (columns > 1)} of {rows:,} rows{escape(source)}</p></header>\n"
        f"{_tiles(model.figures)}\n" + "\n".join(filter(None, sections)) + "\n"
        f"<footer>mercer {escape(mercer.__version__)}</footer>\n</main></body></html>\n"
    )


# --- parts of the page -----------------------------------------------------------------------------------------------


def _section(title: str, *parts: str) -> str:
    body = "\n".join(part for part in parts if part)
    return f"<section><h2>{escape(title)}</h2>\n{body}\n</section>" if body else ""


def _paragraph(text: str, kind: str = "") -> str:
    return f'<p class="{kind}">{escape(text)}</p>' if kind else f"<p>{escape(text)}</p>"


def _figure(picture: str, caption: str) -> str:
    return f"<figure>{picture}<figcaption>{escape(caption)}</figcaption></figure>"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], kind: str = "") -> str:
    """Return an HTML table; the cells are HTML already."""
    top = "".join(f"<th>{cell}</th>" for cell in head)
    body = "".join("<tr>" + "".join(row) + "</tr>" for row in rows)
    return f'<div class="wide"><table class="{kind}"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(text: str, kind: str = "") -> str:
    return f'<td class="{kind}">{escape(text)}</td>' if kind else f"<td>{escape(text)}</td>"


def _tiles(figures: ClassFigures | NumberFigures) -> str:
    """Return the two or three most important numbers in large letters."""
    if isinstance(figures, ClassFigures):
        has_class_weights = figures.weighed
        score = figures.balanced_accuracy if has_class_weights else figures.accuracy
        constant = figures.constant if has_class_weights else figures.majority[1]
        always = "always predicting one class" if has_class_weights else f"always predicting {figures.majority[0]!r}"
        k = figures.hardest
        name, recall, precision = figures.classes[k], figures.recall[k], figures.precision[k]
        tiles = [
            (f"{score:.1%}", f"{'balanced ' * has_class_weights}accuracy (± {100 * figures.half_width:.1f})"),
            (f"{constant:.1%}", always),
            (
                f"{np.fmin(recall, precision):.0%}",
                f"of the predictions of {name!r}, the hardest class, are right"
                if precision < recall
                else f"of the rows of {name!r}, the hardest class, are found",
            ),
        ]
    else:
        clean = figures.without_outliers
        tiles = [
            (quantity(clean.error, figures.unit), "mean absolute error"),
            (quantity(clean.usual_error, figures.unit), "always predicting the median"),
            (f"{clean.r2:.3f}", f"R² (± {clean.half_width:.3f})"),
        ]
    return '<div class="tiles">' + "".join(f"<div><b>{escape(n)}</b>{escape(t)}</div>" for n, t in tiles) + "</div>"


def _scores_section(model: EasyModel) -> str:
    figures = model.figures
    evaluation_note = _paragraph(f"Judged by {model.judged_by}. ± is a 95% interval.", "note")
    if isinstance(figures, ClassFigures):
        return _section("How good", _paragraph(f"{_capital(figures.headline)}."), _confusion(figures), evaluation_note)
    unit, tick = figures.unit, _number_label(figures.unit)
    residuals = model.model.residuals_
    half_width = float(np.quantile(residuals, 0.9))
    low, high = np.quantile(np.abs(figures.truth - figures.answers), (0.5, 0.9))
    half_within, most_within = quantity(low, unit), quantity(high, unit)
    quantiles = f"Half of the predictions are within {half_within} of the true value, nine in ten within {most_within}."
    picture = truth_plot(figures.truth, figures.answers, half_width, figures.outlying, tick, unit).svg()
    n_hidden = int(figures.outlying.sum())
    remark = f" {n_hidden} outlying row{'s are' if n_hidden > 1 else ' is'} not shown." if n_hidden else ""
    caption = (
        "Each dot is a held-out row: its prediction to the right, its true value upwards. The band is "
        f"±\N{NO-BREAK SPACE}{quantity(half_width, unit)}.{remark}"
    )
    outliers = _paragraph(f"{model.outliers.describe()}.", "warn") if model.outliers else ""
    return _section(
        "How good",
        _paragraph(_keep_units(f"{_capital(figures.headline)}.", unit)),
        _paragraph(quantiles),
        outliers,
        _figure(picture, caption),
        evaluation_note,
    )


def _confusion(figures: ClassFigures) -> str:
    """Return the confusion matrix as a table; of many classes, the twelve with the lowest recall."""
    if len(figures.classes) <= _CLASSES:
        shares = figures.matrix / np.maximum(figures.matrix.sum(axis=1, keepdims=True), 1)
        head = ["truth", *(f"<span>{escape(name)}</span>" for name in figures.classes), "found"]
        rows: list[list[str]] = []
        for name, counts, part, recall in zip(figures.classes, figures.matrix, shares, figures.recall, strict=True):
            cells = [
                f'<td class="{"right" if k == len(rows) else "false"}" style="--share:{share:.2f}">{count:,}</td>'
                for k, (count, share) in enumerate(zip(counts.tolist(), part.tolist(), strict=True))
            ]
            rows.append(
                [f"<th>{escape(name)}</th>", *cells, _cell("–" if np.isnan(recall) else f"{recall:.0%}", "end")]
            )
        caption = (
            "Rows are true classes, columns predicted ones; “found” is the share of a class that is predicted "
            "correctly."
        )
        if figures.weighed:
            caption += " The balanced accuracy is the mean of these shares."
        return f"{_table(head, rows, 'matrix')}{_paragraph(caption, 'note')}"
    rows = []
    order = np.argsort(np.where(np.isnan(figures.recall), 2, figures.recall), kind="stable")[:_CLASSES]
    for k in order:
        confusions = np.where(np.arange(len(figures.classes)) == k, 0, figures.matrix[k])
        confused = f"{figures.classes[int(confusions.argmax())]} ({confusions.max()}×)" if confusions.any() else ""
        recall_text = "–" if np.isnan(figures.recall[k]) else f"{figures.recall[k]:.0%}"
        counts = _cell(f"{figures.matrix[k].sum():,}", "end")
        rows.append([f"<th>{escape(figures.classes[k])}</th>", counts, _cell(recall_text, "end"), _cell(confused)])
    caption = (
        f"The {_CLASSES} hardest of {len(figures.classes)} classes; “found” is the share of a class that is predicted "
        "correctly."
    )
    return f"{_table(['class', 'rows', 'found', 'mostly confused with'], rows)}{_paragraph(caption, 'note')}"


def _importance_section(model: EasyModel) -> str:
    if model.matters is None:
        return ""
    shares = [(name, share) for name, share in model.importance.items() if share > 0]
    if not shares:
        return _section("What matters", _paragraph("No column: the model predicts the same for all rows."))
    explanation = model.matters.explanation
    swarm, note = [], f"Shares of the mean |Shapley value| of {len(explanation)} rows."
    if not explanation.several:
        numeric = with_numbers(explanation, model.table.columns_)
        span = min(0.0, float(numeric.values.min())), max(0.0, float(numeric.values.max()))
        places = {name: j for j, name in enumerate(numeric.feature_names)}
        raises, lowers = "raises the prediction", "lowers it"
        if explanation.classes is not None:
            lowers, raises = (f"speaks for {str(label)!r}" for label in explanation.classes)
        for name, share in shares[:_COLUMNS]:
            values, shades = numeric.values[:, places[name]], shades_of(numeric.data[:, places[name]])
            strip = swarm_strip(values, shades, span, f"effect of {name} on {len(values)} rows")
            swarm.append(f'<div class="row"><span>{escape(name)}<b>{share:.0%}</b></span>{strip}</div>')
        ends = f"<div class='row ends'><span></span><div><i>← {escape(lowers)}</i><i>{escape(raises)} →</i></div></div>"
        if isinstance(model.figures, NumberFigures):
            lowest, highest = (quantity(abs(value), model.figures.unit) for value in span)
            sides = f"<i>−{escape(lowest)}</i><i>+{escape(highest)}</i>"
            ends = f"<div class='row ends'><span></span><div>{sides}</div></div>{ends}"
        swarm.append(ends)
        note += (
            " Each dot is a row, and shows what the column adds to its prediction: blue for small values of the "
            "column, red for large ones, grey for texts, categories and missing values."
        )
    else:
        largest = shares[0][1]
        swarm += [
            f'<div class="row"><span>{escape(name)}<b>{share:.0%}</b></span>'
            f'<div class="bar" style="--share:{share / largest:.3f}"></div></div>'
            for name, share in shares[:_COLUMNS]
        ]
    n_others = len(shares) - _COLUMNS
    note += f" {n_others} more column{'s' * (n_others > 1)} not shown." if n_others > 0 else ""
    pictures = [_dependence(curve) for curve in dependence_curves(model, [name for name, _ in shares[:_CURVES]])]
    grid = f'<div class="grid">{"".join(pictures)}</div>' if pictures else ""
    caution = ""
    if model.figures.is_useless:
        caution = f"The model hardly predicts {model.target!r}: what it uses need not be what matters."
    parts = [_paragraph(caution, "warn") if caution else "", f'<div class="swarm">{"".join(swarm)}</div>']
    return _section("What matters", *parts, _paragraph(note, "note"), grid)


def _dependence(curve: Curve) -> str:
    """Return the picture of how the mean prediction depends on one column."""
    if curve.categories:
        kinds = [f"curve{k % 6}" for k in range(len(curve.lines))]
        rows = []
        for k, category in enumerate(curve.categories):
            values = [float(line[k]) for _, line in curve.lines]
            label = f"{category}: {', '.join(map(curve.show, values))}"
            strip = dot_strip(values, curve.span, label, kinds if len(kinds) > 1 else ["dot"])
            text = curve.show(values[0]) if len(values) == 1 else ""
            rows.append(f'<div class="row"><span>{escape(category)}<b>{escape(text)}</b></span>{strip}</div>')
        scale = "".join(f"<i>{escape(curve.show(end))}</i>" for end in curve.span)
        rows.append(f'<div class="row ends"><span></span><div>{scale}</div></div>')
        more_text = f"<p class='note'>and {curve.hidden} more</p>" if curve.hidden else ""
        levels = f'<div class="levels">{"".join(rows)}</div>'
        return f"<figure><h3>{escape(curve.name)}</h3>{levels}{more_text}{_caption(curve)}</figure>"
    ends = float(curve.x[0]), float(curve.x[-1])
    left = margin_for(map(curve.tick, curve.ticks))
    plot = Plot(ends, curve.span, f"mean prediction against {curve.name}", left=left)
    plot.y_ticks(curve.ticks, curve.tick)
    plot.x_ticks(curve.x_ticks, curve.x_label)
    plot.rug(curve.seen)
    for k, (_, line) in enumerate(curve.lines):
        plot.line(curve.x, line, f"curve curve{k % 6}" if len(curve.lines) > 1 else "curve")
    return f"<figure><h3>{escape(curve.name)}</h3>{plot.svg()}{_caption(curve)}</figure>"


def _caption(curve: Curve) -> str:
    """Return the caption of a picture of dependence, with a legend if it has several lines."""
    if len(curve.lines) == 1:
        return f"<figcaption>{escape(curve.caption)}</figcaption>"
    keys = (
        f'<span class="nowrap"><i class="key key{k % 6}"></i>{escape(name)}</span>'
        for k, (name, _) in enumerate(curve.lines)
    )
    return f"<figcaption>{escape(curve.caption)}: {' '.join(keys)}</figcaption>"


def _errors_section(model: EasyModel) -> str:
    rows = missed_rows(model)
    if not rows:
        return _section("Where it is wrong", _paragraph("Nowhere: all held-out rows are predicted correctly."))
    text = (
        "The held-out rows that it misses most, and the columns that moved these predictions most. Each prediction "
        "is that of a model that had not seen the row."
    )
    n_hidden = 0 if isinstance(model.figures, ClassFigures) else int(model.figures.outlying.sum()) - MOST_OUTLIERS
    if n_hidden > 0:
        text += f" Of the outliers only the {MOST_OUTLIERS} largest are shown."
    if isinstance(model.figures, ClassFigures) and model.figures.weighed:
        text += (
            " In training all classes have the same weight, so that the predicted class may be the less probable one."
        )
    return _section("Where it is wrong", _paragraph(text), *map(_missed_row, rows))


def _missed_row(row: MissedRow) -> str:
    reasons = "".join(
        f"<li>{escape(name)} = {escape(cell)}: <b>{escape(contribution)}</b></li>"
        for name, cell, contribution in row.reasons
    )
    mark = ' <em class="warn">outlier</em>' if row.is_outlier else ""
    return (
        f'<div class="miss"><p><b>row {row.number:,}</b>{mark}<br>truth <b>{escape(row.truth)}</b>, predicted '
        f"<b>{escape(row.answer)}</b>{escape(row.detail)}</p><ul>{reasons}</ul></div>"
    )


def _confidence_section(model: EasyModel) -> str:
    seed = model.training.options["random_state"]
    if isinstance(model.figures, NumberFigures):
        if len(model.figures.truth) < 20:
            return ""
        shares = model.training.held_out.coverage(_COVERAGE, seed)
        widths = np.quantile(model.model.residuals_, _COVERAGE)
        rows = [
            [
                _cell(f"{level:.0%}"),
                _cell(f"± {quantity(width, model.figures.unit)}", "end"),
                _cell(f"{share:.0%}", "end"),
            ]
            for level, width, share in zip(_COVERAGE.tolist(), widths.tolist(), shares.tolist(), strict=True)
        ]
        text = (
            "predict_interval gives an interval for each row. The table shows how wide it is, and how many held-out "
            "rows lie in an interval of this kind that was made without them."
        )
        return _section("How sure", _paragraph(text), _table(["interval", "width", "held-out rows inside"], rows))
    calibration = reliability(model)
    if calibration is None:
        return ""
    confidence = ""
    if calibration.n_sure:
        sure_text = f"{calibration.n_sure:,} held-out row" + ("s have" if calibration.n_sure > 1 else " has")
        confidence = (
            f"{sure_text} a class with a probability of at least 80%; in {calibration.right_when_sure:.0%} of them "
            "it is the true class."
        )
    caption = (
        f"To the right, the predicted probability of {calibration.of}; upwards, how often it was right, with its 95% "
        "interval. On the dashed line the two are equal."
    )
    picture = reliability_plot(calibration.predicted, calibration.happened, calibration.low, calibration.high).svg()
    text = "predict_proba gives a probability for each class. These come from held-out rows only."
    return _section(
        "How sure", _paragraph(text), _paragraph(confidence) if confidence else "", _figure(picture, caption)
    )


def _next_steps_section(model: EasyModel) -> str:
    checks = guesses_to_check(model.table, model.guesses)
    sentences = [f"{_capital(hint)}{'.' * (hint[-1] not in '?!.')}" for hint in model.hints]
    sentences += [f"Please check: {guess}." for guess in checks]
    items = [f"<li>{_keep_options(escape(sentence))}</li>" for sentence in sentences]
    return _section("What next", f"<ul>{''.join(items)}</ul>" if items else _paragraph(f"{_capital(model.next_step)}."))


def _certificate(model: EasyModel) -> str:
    lines = [line[1] for line in certificate_lines(model.table.estimator_) if line is not None]
    return _section("Certificate", f"<p class='proof'>{'<br>'.join(map(escape, lines))}</p>")


def _call_section(model: EasyModel) -> str:
    training = model.training
    has_path = training.source != "the table" and training.path_suffices
    table = repr(training.source) if has_path else "table"
    lines = ["import mercer", ""]
    lines.append(f"model = mercer.easy({table}, target={model.target!r}{_given_options(training.options)})")
    lines += ["print(model)", "model.predict(new_table)"]
    parts = [f"<pre>{escape(chr(10).join(lines))}</pre>"]
    if training.command:
        parts.append(_paragraph("or in the terminal"))
        parts.append(f"<pre>{_keep_options(escape(training.command))}</pre>")
    searched = _paragraph(f"{model.search.partition(';')[0]}.", "note")
    return _section("To do it again", *parts, searched)


def _given_options(options: dict[str, Any]) -> str:
    """Return the parameters of `mercer.easy` that differ from their defaults, as Python writes them."""
    defaults = {"missing": "impute", "standardise": True, "machine": "auto", "class_weight": "auto", "random_state": 0}
    texts = []
    for name, value in options.items():
        value = list(value) if isinstance(value, tuple) else value
        if value != defaults.get(name) and (name in defaults or value):
            texts.append(f", {name}={value!r}")
    return "".join(texts)


def _columns(model: EasyModel) -> str:
    """Return how each column was read."""
    columns = [(encoding.name, encoding.description) for encoding in model.table.columns_]
    n_hidden = 0
    if len(columns) > MOST_COLUMNS:
        kept = set(first_columns([description for _, description in columns]))
        shown_rows = [row for row in columns if row[1] in kept][:MOST_COLUMNS]
        n_hidden, columns = len(columns) - len(shown_rows), shown_rows
    rows = [[f"<th>{escape(name)}</th>", _cell(description)] for name, description in columns]
    more_text = _paragraph(f"and {n_hidden} more columns", "note") if n_hidden else ""
    return _section("How each column was read", _table(["column", "read as"], rows, "columns"), more_text)


def _number_label(unit: str) -> Any:
    """Return the function that labels ticks of the target, without a unit longer than a character."""
    short_unit = unit if len(unit) <= 1 else ""
    return lambda value: "0" if value == 0 else quantity(value, short_unit)


def _keep_units(text: str, unit: str) -> str:
    """Return a text in which no line breaks between a number and its unit."""
    return re.sub(rf"(?<=\d) (?={re.escape(unit)}(?!\w))", "\N{NO-BREAK SPACE}", text) if unit else text


def _keep_options(html: str) -> str:
    """Return HTML in which no line breaks behind the hyphens of an option such as --html."""
    return re.sub(r"(?<![\w-])--[a-z][a-z-]*", r'<span class="nowrap">\g<0></span>', html)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
