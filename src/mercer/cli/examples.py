"""Help texts that end with examples: argparse would pour them into one paragraph."""

from __future__ import annotations

import argparse

EXIT_CODES = "exit codes: 0 done, 1 failed (one line on standard error says why), 2 wrong usage, 130 interrupted"
_LONG = 56


class WithExamples(argparse.HelpFormatter):
    """Wraps paragraphs as usual, and leaves texts that have lines of their own as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "\n" in text else super()._fill_text(text, width, indent)


def examples(*lines: tuple[str, str], after: str = "") -> str:
    """Commands, each with what it is for: beside it, or below one that is long."""
    width = max((len(command) for command, _ in lines if len(command) <= _LONG), default=_LONG)
    shown = []
    for command, purpose in lines:
        gap = " " * (width - len(command)) if len(command) <= width else f"\n  {'':{width}}"
        shown.append(f"  {command}{gap}  {purpose}" if purpose else f"  {command}")
    return "\n".join(["examples:", *shown, *(["", after] if after else [])])
