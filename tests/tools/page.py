"""docs/what_works_where.md, made from the declaration: `python tests/tools/page.py` writes it."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the tests import from

from tools.declaration import SECTIONS, expected
from tools.rows import ROWS

PAGE = Path(__file__).parents[2] / "docs" / "what_works_where.md"
INTRODUCTION = """# What works where

Every public estimator and every tool: look up what you can do with the model that you have. The tables are made from
the declaration that the tests check in both directions (`tests/tools`). Each **yes** was compared with an independent
result, such as refits, sums over all subsets of features, onnxruntime, a C compiler or LIBSVM itself. Each **no** is
an exception that names the tool and what prevents it.

| in a cell | it means |
|---|---|
| yes | it works |
| yes ¹ | it works except for some variants, which the note names |
| no ¹ | it is refused, and the note says why |
| – | there is no such method, function or parameter |

The variants are two and three classes (one against one, one against the rest, joint), slacks and biases, a hard margin,
linear, precomputed and string kernels, sums of kernels, CSR samples, several outputs and quantiles. A model around a
machine (`Tuned…`, `Calibrated…`, `Tabular`, a Pipeline) is used through its own methods, or through
[`mercer.unwrap`](tables.md#methods-of-a-fitted-model).
"""
TEXTS = {
    "Files": "Which files can hold a model and predict as it does; [files](files.md) has the calls.",
    "Explanations": "Methods of a model; [explaining predictions](explanations.md) describes them.",
    "Judging a model": "Margins, bounds and certificates; see [understanding a model](understanding_a_model.md).",
    "Remaking a model": "A smaller model, or one with [probabilities and intervals](probabilities.md).",
    "Choosing parameters": "Searches and [paths](paths.md); [tuning](tuning.md) has the calls.",
    "Training": "Ways to train, and what training promises.",
    "Engines": "Where the samples live: [a GPU](gpu.md), here torch's own processor, or [a cluster](cluster.md).",
}
GROUPS = {
    "classification": (
        *("SVC", "NuSVC", "LinearSVC", "PegasosSVC", "MKLClassifier", "RLSClassifier", "RLSClassifierCV"),
        *("NystromRLSClassifier", "KernelMachineClassifier", "GaussianProcessClassifier"),
    ),
    "regression": (
        *("SVR", "NuSVR", "QuantileSVR", "LinearSVR", "MKLRegressor", "RLSRegressor", "RLSRegressorCV", "NystromRLS"),
        *("KernelMachineRegressor", "RankSVM", "GaussianProcessRegressor", "RelevanceVectorRegressor"),
    ),
    "novelty": ("OneClassSVM", "SVDD"),
    "without targets": (
        *("KernelPCA", "KernelKMeans", "SpectralClustering", "KernelCCA"),
        *("Nystrom", "RandomFourier", "Monomials", "GaussianSeries"),
    ),
    "around a machine": (
        *("TunedSVC", "TunedSVR", "TunedOneClassSVM", "CalibratedClassifier", "CalibratedRegressor"),
        *("Tabular", "Pipeline", "GridSearchCV"),
    ),
}
DIGITS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def cell(tool, estimator, notes):
    """The words of one cell; `notes` are the notes of the section so far, by their text, and may become more."""
    rows = [row for row in ROWS if row.estimator == estimator]
    refused = [(row, expected(tool, row)) for row in rows if expected(tool, row) is not None]
    if not refused:
        return "yes"
    whole = len(refused) == len(rows)
    if whole and all(one.absent for _, one in refused):
        return "–"
    numbers, reasons = [], {one.why: one for _, one in refused}
    for refusal in reasons.values():
        names = [row.name for row, one in refused if one.why == refusal.why]
        alone = whole and len(reasons) == 1
        whom = "" if alone else refusal.who.words or ("" if whole else f"for {'; '.join(names)}")
        note = notes.setdefault((refusal.why, whom), [])
        note += [title_of(tool)] if title_of(tool) not in note else []
        numbers.append(list(notes).index((refusal.why, whom)) + 1)
    marks = "˒".join(str(number).translate(DIGITS) for number in sorted(numbers))
    return f"{'no' if whole else 'yes'} {marks}"


def title_of(tool):
    """The title without the blank that lets a narrow column break it."""
    return tool.title.replace("_ ", "_")


def section(title, tools):
    notes = {}
    lines = [f"## {title}", "", TEXTS[title], "", "| | " + " | ".join(tool.title for tool in tools) + " |"]
    lines.append("|---|" + "---|" * len(tools))
    for group, names in GROUPS.items():
        lines.append(f"| *{group}* |" + " |" * len(tools))
        lines += [f"| `{name}` | " + " | ".join(cell(tool, name, notes) for tool in tools) + " |" for name in names]
    lines.append("")
    for number, ((why, whom), titles) in enumerate(notes.items(), start=1):
        several, names = len(titles) > 1, [f"**{name}**" for name in titles]
        subject = f"{', '.join(names[:-1])} and {names[-1]}" if several else names[0]
        predicate = f" {'do' if several else 'does'} not work {whom}" if whom else ""
        lines.append(f"{number}. {subject}{predicate}: {why}.")
    lines += ["", "What is checked:", "", *(f"- **{title_of(tool)}**: {tool.text}" for tool in tools), ""]
    return "\n".join(lines)


def text():
    """The whole page."""
    listed = {name for names in GROUPS.values() for name in names}
    missing = {row.estimator for row in ROWS} - listed
    assert not missing, f"the page has no line for {sorted(missing)}: add them to GROUPS in tests/tools/page.py"
    parts = [section(title, tools) for title, tools in SECTIONS.items()]
    return INTRODUCTION + "\n" + "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
