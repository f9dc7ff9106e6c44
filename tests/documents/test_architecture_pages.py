"""The pages about the code name files that exist, and the tree that the package has."""

import re
from pathlib import Path

import pytest

import mercer
from test_architecture import ORDER

ROOT = Path(__file__).parents[2]
SOURCE = Path(mercer.__file__).parent
PAGES = ("architecture.md", "internals.md", "solvers.md", "add_a_kernel.md", "add_a_machine.md", "add_a_tool.md")

pytestmark = pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="the pages lie beside a checkout only")


def is_there(path, folder):
    """Return whether a path exists: in the repository, the package, the last folder that was named, or fitting/."""
    places = (ROOT, SOURCE, SOURCE / folder, SOURCE / "estimators/fitting", ROOT / "docs")
    return any((place / path).exists() for place in places)


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_a_page_names_exists(page):
    text = re.sub(
        r"^```(python|diff).*?^```$", "", (ROOT / "docs" / page).read_text(encoding="utf-8"), flags=re.M | re.S
    )
    missing, folder = [], ""
    for path in re.findall(r"`((?:[\w-]+/)*[\w-]+\.(?:py|pyi|cpp|toml)|(?:[\w-]+/)+)(?:::\w+)?`", text):
        if "/" in path:
            folder = path if path.endswith("/") else str(Path(path).parent)
        if not is_there(path, folder):
            missing.append(path)
    assert not missing, f"docs/{page} names {missing}, which do not exist"


def test_the_tree_on_the_page_is_the_tree():
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    tree = text[text.index("    src/mercer/\n") : text.index("    src/core/ ")]
    assert re.findall(r"^      (\w+)/ ", tree, flags=re.M) == ORDER


def test_the_page_is_short():
    assert len((ROOT / "docs/architecture.md").read_text(encoding="utf-8").split()) <= 1500
