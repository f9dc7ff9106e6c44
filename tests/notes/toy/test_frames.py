"""Frames with the toy on pages of the site, as docs/conf.py writes them."""

import re
import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"
for needed in ("sphinx", "docutils", "matplotlib", "pandas"):
    pytest.importorskip(needed)


@pytest.fixture(scope="module")
def embed():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DOCS))
        return runpy.run_path(str(DOCS / "conf.py"))["show_the_page"]


def test_no_frame_has_an_empty_fragment(embed):
    """A browser scrolls to the top of a frame that has one, and the page around it too."""
    addresses = []
    for path in sorted(DOCS.glob("*.md")):
        text = [path.read_text(encoding="utf-8")]
        embed(None, path.stem, text)
        addresses += re.findall(r'(?:src|href)="(_static/toy\.html[^"]*)"', text[0])
    assert len(addresses) > 20
    assert "_static/toy.html" in addresses
    assert not [address for address in addresses if address.endswith("#")]


@pytest.mark.parametrize(("state", "kind"), [("#set=rings", "toy"), ("#set=location&open=path", "toy opened")])
def test_an_open_panel_has_a_higher_frame(embed, state, kind):
    text = [f"<!-- toy: {state} -->"]
    embed(None, "page", text)
    assert f'<iframe class="{kind}"' in text[0]
    assert f'src="_static/toy.html{state}"' in text[0]
    height = re.compile(rf"iframe\.{kind.replace(' ', '.')} {{[^}}]*height: (\d+)rem")
    assert len(height.findall((DOCS / "_static/site.css").read_text())) == 2  # narrow and wide windows
