"""Print pins of every dependency and every extra to the oldest release series that pyproject.toml allows.

    python release/floors.py > floors.txt && python -m pip install --constraint floors.txt '.[test]'

"numpy>=2.0" becomes "numpy==2.0.*": the newest repair of the oldest series.
"""

import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
TOOLS = {"all", "test", "lint", "docs", "bench"}  # extras for developers, and the one that only names the others


def floors(project):
    """Return one pin for each requirement of mercer and of its extras."""
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(need for name in sorted(extras.keys() - TOOLS) for need in extras[name])]
    return [f"{need.replace('>=', '==')}.*" for need in wanted]


if __name__ == "__main__":
    print(*floors(tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]), sep="\n")
