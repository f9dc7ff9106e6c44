"""The Gram that docs/add_an_engine.md writes down works, passes the contracts, and is complete to a type checker."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs/add_an_engine.md"
CLAIMS = """
from mercer.gram import Evaluation, Provable

gram: Gram = LowRankGram(np.eye(2))
proof: Provable = gram
evaluation: Evaluation = LowRankEvaluation(np.eye(2), np.eye(2))
"""


def test_the_page_runs_from_top_to_bottom():
    names = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        exec(block, names)
    assert names["certificate"].proves == "optimality"


@pytest.mark.thorough
def test_the_example_is_complete_to_a_type_checker(tmp_path):
    pytest.importorskip("mypy")
    example = PAGE.read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
    (tmp_path / "example.py").write_text(example + CLAIMS, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "example.py"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout
