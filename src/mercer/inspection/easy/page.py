"""Facts about a model for people and programs, which `mercer.easy` and ``mercer train`` tell alike.

A fact for a person is a name and a text, wrapped to lines of at most 100 columns; for a program it is a plain value.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from mercer.tables.encodings import LeftOut
from mercer.tables.estimator import Tabular

Line = tuple[str, str] | None  # a name and what is said of it; None is an empty line
WIDTH, _INDENT = 100, 15
MOST_COLUMNS = 20  # lines about columns that a person reads


def page(facts: Iterable[Line]) -> list[str]:
    """The lines; what does not fit goes on under itself."""
    lines: list[str] = []
    for fact in facts:
        if fact is None:
            lines += [""] if lines and lines[-1] else []
            continue
        name, text = fact
        inner = len(text) - len(text.lstrip())
        step = " " * (_INDENT + inner + _hanging(text.lstrip()))
        wrapped = textwrap.wrap(
            text,
            WIDTH,
            initial_indent=f"  {name:<{_INDENT - 2}}",
            subsequent_indent=step,
            break_long_words=False,
            break_on_hyphens=False,
            replace_whitespace=False,
            drop_whitespace=True,
        )
        lines += [line.rstrip() for line in wrapped] or [f"  {name}"]
    return lines


def _hanging(text: str) -> int:
    """Where the second part of a text begins that has two of them, as a column's name and what became of it."""
    first, gap, rest = text.partition("  ")
    return len(first) + len(gap) + len(rest) - len(rest.lstrip()) if gap and len(first) <= 40 else 0


def column_lines(told: list[tuple[str, str]], all_of_it: bool = False) -> list[Line]:
    """Tell what was done to each column, a line for each; in a wide table, one for all to which the same was done.

    Of more than twenty lines those are shown that tell of dropped columns, then the first, with a count of the others.
    """
    hidden = 0
    if len(told) > MOST_COLUMNS:
        alike: dict[str, list[str]] = {}
        for name, what in told:
            alike.setdefault(what, []).append(name)
        shown = [*alike] if all_of_it else first_columns([*alike])
        hidden = sum(len(names) for what, names in alike.items() if what not in shown)
        told = [(_listed(alike[what]), what) for what in shown]
    told = [(name or "(no name)", what) for name, what in told]
    width = max(len(name) for name, _ in told)
    lines: list[Line] = [("" if i else "columns", f"{name:<{width}}  {what}") for i, (name, what) in enumerate(told)]
    return [*lines, ("", f"and {hidden} columns more; model.table.columns_told() lists all")] if hidden else lines


def first_columns(told: list[str]) -> list[str]:
    """Select up to twenty descriptions, in their order; those of dropped columns, which ask for a look, go first."""
    order = sorted(range(len(told)), key=lambda k: (not told[k].startswith("left out"), k))
    return [told[k] for k in sorted(order[:MOST_COLUMNS])]


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} … {names[-1]} ({len(names)})"


def table_lines(table: Tabular, guesses: dict[str, str], all_of_it: bool = False) -> list[Line]:
    """Tell what was done to each column of a table, and what was guessed of those that are not dropped."""
    dropped = {one.name for one in table.columns_ if isinstance(one, LeftOut)}  # told in their own line
    asked = [told for name, told in guesses.items() if name not in dropped]
    return [
        *column_lines([(one.name, one.description) for one in table.columns_], all_of_it),
        *(("asked" if not k else "", told) for k, told in enumerate(asked)),
    ]


def hint_lines(hints: Sequence[str]) -> list[Line]:
    """Tell what to try next."""
    return [("next" if not k else "", hint) for k, hint in enumerate(hints)]


def table_facts(table: Tabular) -> dict[str, str]:
    """What was done to each column, by its name."""
    return {one.name: one.description for one in table.columns_}


def certificate_facts(machine: Any) -> dict[str, Any]:
    """The numbers of a machine's certificate, and what they prove in words."""
    found = machine.certificate_
    return {**found.to_dict(), "proves": found.proves, "verdict": found.verdict}


def certificate_lines(machine: Any) -> list[Line]:
    """Three lines: what is proven, how close the fit is, and whether it reached what was asked."""
    found = machine.certificate_
    state = "converged" if machine.converged_ else f"NOT converged: {machine.stop_reason_}"
    parts = f", in sums over {len(found.parts)} machines" if found.parts else ""
    asked = f" (tol = {machine.tol:g})" if hasattr(machine, "tol") else ""
    return [
        ("certificate", f"{found.verdict}{parts}"),
        ("", f"gap {found.gap:.2e}: the optimum is at most {found.relative_gap:.1e} of {found.dual:.6g} away"),
        ("", f"violation {found.violation:.2e}{asked}: {state}"),
    ]
