"""Every link between pages leads somewhere, in a clone and on GitHub as on the site."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.glob("*.md"))]
MADE = {"gallery", "generated", "_build"}  # by Sphinx, so that a clone lacks them


def prose(page):
    """A page without its code, in which brackets mean something else."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "`code`", text)


def links(page):
    found = re.findall(r"\]\(([^)\s]+)\)", prose(page))
    return [target for target in found if not re.match(r"[a-z]+:", target)]


def anchors(page):
    """As GitHub and MyST make them of headings: lower case, words joined by hyphens, no punctuation."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    heads = re.findall(r"^#{1,3} (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_link_leads_somewhere(page):
    dead = []
    for link in links(page):
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        inside = target == ROOT or ROOT in target.parents
        if not (inside and target.exists()) or MADE & set(target.parts) or (anchor and anchor not in anchors(target)):
            dead.append(link)
    assert not dead


def test_links_are_found():
    assert "notation.md#what-a-certificate-says" in [link.removeprefix("docs/") for link in links(ROOT / "README.md")]
    assert "../examples/plot_margins.py" in links(DOCS / "understanding_a_model.md")


def test_every_command_of_a_benchmark_that_a_page_names_has_its_options():
    """`python benchmarks/x.py --option` is written with options that the script has."""
    for page in PAGES:
        for script, options in re.findall(
            r"python\s+((?:benchmarks|tests)/[\w/]+\.py)([^`\n]*)", page.read_text(encoding="utf-8")
        ):
            source = (ROOT / script).read_text(encoding="utf-8")
            assert not [option for option in re.findall(r"--[\w-]+", options) if f'"{option}"' not in source]
