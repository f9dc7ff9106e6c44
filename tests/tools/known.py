"""Cells of the table that are not yet as declared, each with the finding it belongs to.

A test fails once such a cell is right, so that its entry here goes; an empty list is the aim.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tools.rows import Row


@dataclass(frozen=True)
class Known:
    """A finding, the tools and the rows that it breaks."""

    finding: str
    tools: str
    who: Callable[[Row], bool]


KNOWN: list[Known] = []
