"""The list of seeded faults follows the code: every text is there once, and so is every test beside it."""

import ast
from collections import Counter
from pathlib import Path

import pytest

from mutants import MUTANTS, ROOT


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: one.name)
def test_a_seeded_fault_can_be_made_and_tried(mutant):
    """If this fails after a change of the code: bring tests/faults/ up to date, and try `python tests/mutants.py`."""
    assert (ROOT / mutant.file).read_text().count(mutant.old) == 1
    assert mutant.new != mutant.old
    for test in mutant.tests:
        path, _, function = test.partition("::")
        assert (ROOT / path).exists(), test
        if function:
            tree = ast.parse(Path(ROOT / path).read_text())
            assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, test


def test_they_are_forty_different_ones():
    assert len(MUTANTS) >= 40
    assert max(Counter(mutant.name for mutant in MUTANTS).values()) == 1
    assert max(Counter((mutant.file, mutant.old) for mutant in MUTANTS).values()) == 1
