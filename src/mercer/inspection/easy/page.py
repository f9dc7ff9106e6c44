"""Report lines that `mercer.easy` and ``mercer train`` share, and the page layout that wraps them at 100 columns.

A line is a name and a text. Functions that end in `_facts` return the same information as plain values, for JSON.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from mercer.tables.encodings import DroppedColumn
from mercer.tables.estimator import Tabular

Line = tuple[str, str] | None  # name and text; None is an empty line
WIDTH, _INDENT = 100, 15
MOST_COLUMNS = 20  # lines about columns in a report


def page(facts: Iterable[Line]) -> list[str]:
    """Lay out lines below one another, each wrapped and indented under its own text."""
    lines: list[str] = []
    for fact in facts:
        if fact is None:
            lines += [""] if lines and lines[-1] else []
            continue
        name, text = fact
        text_indent = len(text) - len(text.lstrip())
        margin = " " * (_INDENT + text_indent + _second_part_offset(text.lstrip()))
        wrapped_lines = textwrap.wrap(
            text,
            WIDTH,
            initial_indent=f"  {name:<{_INDENT - 2}}",
            subsequent_indent=margin,
            break_long_words=False,
            break_on_hyphens=False,
            replace_whitespace=False,
            drop_whitespace=True,
        )
        lines += [line.rstrip() for line in wrapped_lines] or [f"  {name}"]
    return lines


def _second_part_offset(text: str) -> int:
    """Return the offset of the second part of a text "NAME  DESCRIPTION"; 0 for a text of one part."""
    first, gap, rest = text.partition("  ")
    return len(first) + len(gap) + len(rest) - len(rest.lstrip()) if gap and len(first) <= 40 else 0


def column_lines(columns: list[tuple[str, str]], all_of_it: bool = False) -> list[Line]:
    """Return a line for each column and its description; a wide table has one line for columns described alike.

    At most twenty of these are shown unless `all_of_it`: dropped columns first, then the others in order.
    """
    n_hidden = 0
    if len(columns) > MOST_COLUMNS:
        names_by_description: dict[str, list[str]] = {}
        for name, description in columns:
            names_by_description.setdefault(description, []).append(name)
        shown_descriptions = [*names_by_description] if all_of_it else first_columns([*names_by_description])
        n_hidden = sum(
            len(names) for description, names in names_by_description.items() if description not in shown_descriptions
        )
        columns = [(_name_range(names_by_description[description]), description) for description in shown_descriptions]
    columns = [(name or "(no name)", description) for name, description in columns]
    width = max(len(name) for name, _ in columns)
    lines: list[Line] = [
        ("" if i else "columns", f"{name:<{width}}  {description}") for i, (name, description) in enumerate(columns)
    ]
    return [*lines, ("", f"and {n_hidden} more columns; model.table.columns_told() lists all")] if n_hidden else lines


def first_columns(descriptions: list[str]) -> list[str]:
    """Select up to twenty descriptions, in their order; those of dropped columns take precedence."""
    order = sorted(range(len(descriptions)), key=lambda k: (not descriptions[k].startswith("dropped"), k))
    return [descriptions[k] for k in sorted(order[:MOST_COLUMNS])]


def _name_range(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} … {names[-1]} ({len(names)})"


def table_lines(table: Tabular, guesses: dict[str, str], all_of_it: bool = False) -> list[Line]:
    """Return lines on the encoding of each column, and on the guesses about columns that are not dropped."""
    to_check = guesses_to_check(table, guesses)
    return [
        *column_lines([(encoding.name, encoding.description) for encoding in table.columns_], all_of_it),
        *(("please check" if not k else "", guess) for k, guess in enumerate(to_check)),
    ]


def guesses_to_check(table: Tabular, guesses: dict[str, str]) -> list[str]:
    """Return the guesses about columns that are used, or that are dropped though they look like numbers.

    The descriptions of other dropped columns say why they are dropped.
    """
    dropped_columns = {
        encoding.name
        for encoding in table.columns_
        if isinstance(encoding, DroppedColumn) and not encoding.may_be_numbers
    }
    return [guess for name, guess in guesses.items() if name not in dropped_columns]


def hint_lines(hints: Sequence[str]) -> list[Line]:
    """Return lines with what to try next."""
    return [("next" if not k else "", hint) for k, hint in enumerate(hints)]


def column_facts(table: Tabular) -> dict[str, str]:
    """Description of each column's encoding, by column name."""
    return {encoding.name: encoding.description for encoding in table.columns_}


def certificate_facts(machine: Any) -> dict[str, Any]:
    """Numbers of a machine's certificate, and what they prove in words."""
    certificate = machine.certificate_
    return {**certificate.to_dict(), "proves": certificate.proves, "verdict": certificate.verdict}


def certificate_lines(machine: Any) -> list[Line]:
    """Return three lines: what is proven, the duality gap, and the KKT violation with the reason for stopping."""
    certificate = machine.certificate_
    state = "converged" if machine.converged_ else f"NOT converged: {machine.stop_reason_}"
    parts, their = (
        (f" summed over {len(certificate.parts)} sub-problems", "their") if certificate.parts else ("", "the")
    )
    tol = f" (tol = {machine.tol:g})" if hasattr(machine, "tol") else ""
    gap, share = f"{certificate.gap:.2e}{parts}", f"{certificate.relative_gap:.1e} of {their} dual value"
    return [
        ("certificate", certificate.verdict),
        ("", f"gap {gap} ({share} {certificate.dual:.6g}): at most this far from the optimum"),
        ("", f"violation {certificate.violation:.2e}{tol}: {state}"),
    ]
