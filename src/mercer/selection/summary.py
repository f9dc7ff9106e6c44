"""What a search found, in a few lines of text."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from mercer.selection.result import TuningResult

# Cells that are listed, and characters of a line, of a name in front of it, and of a parameter's value.
_CELLS, _WIDTH, _INDENT, _VALUE = 4, 110, 12, 40
# Lines of a text that is longer than one.
_LINES = 2


def summary(result: TuningResult) -> str:
    """At most 15 lines: the best cell, why it was chosen, what became of the others, and the best of them."""
    results, best = result.cv_results_, result.best_index_
    means = np.asarray(results["mean_test_score"], dtype=np.float64)
    scored, skipped = int(np.isfinite(means).sum()), int(np.sum(results["skipped"]))
    rows = []
    if best is None:
        rows.append(("best", "none: no cell has a score"))
        rows.append(("why", next((why for why in results["why"] if why), "nothing was fitted")))
    else:
        rows.append(("best", params_told(results["params"][best])))
        rows.append(("score", _score(result, best)))
        rows.append(("choice", result.choice_))
    failed = len(means) - scored - skipped
    others = [f"{skipped} skipped"] * bool(skipped) + [f"{failed} without a score"] * bool(failed)
    told = "" if result.complete_ else "; not complete" + ", interrupted" * result.interrupted_
    rows.append(("cells", f"{len(means)}: {', '.join([f'{scored} scored', *others])}{told}"))
    gap = result.search_gap_
    known = (
        f"no C within the range gains more than {gap:.3g}"
        if gap is not None
        else f"not known: {result.search_gap_reason_}"
    )
    rows.append(("search gap", known))
    rows.append(("shared", result.shared_))
    order = np.argsort(np.where(np.isnan(means), np.inf, -means), kind="stable")[:scored]
    for place, k in enumerate(order[order != best][:_CELLS].tolist()):
        rows.append(("other cells" if place == 0 else "", f"{means[k]:.4f}  {params_told(results['params'][k])}"))
    return "\n".join(line for name, text in rows if text for line in _lines(name, text))


def params_told(params: dict[str, Any]) -> str:
    """Parameters and their values, in a line."""
    return ", ".join(f"{name}={short(value)}" for name, value in params.items())


def short(value: Any) -> str:
    """A value of a parameter in a few characters."""
    text = f"{value:.4g}" if isinstance(value, float) else " ".join(str(value).split())
    return textwrap.shorten(text, _VALUE, placeholder="…") if len(text) > _VALUE else text


def _score(result: TuningResult, best: int) -> str:
    if result.n_splits_ < 2:
        return f"{result.best_score_:.4f}"
    scores = [float(result.cv_results_[f"split{k}_test_score"][best]) for k in range(result.n_splits_)]
    error = float(np.std(scores, ddof=1)) / np.sqrt(len(scores))
    return f"{result.best_score_:.4f} ± {error:.4f}, mean and standard error of {len(scores)} folds"


def _lines(name: str, text: str) -> list[str]:
    wrapped = textwrap.wrap(text, _WIDTH - _INDENT, max_lines=_LINES, placeholder=" …")
    return [f"{name if k == 0 else '':<{_INDENT}}{line}" for k, line in enumerate(wrapped)]
