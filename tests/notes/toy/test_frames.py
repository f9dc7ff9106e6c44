"""Frames with the toy on pages of the site, as docs/conf.py writes them."""

import re
import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"
for needed in ("sphinx", "docutils", "matplotlib", "pandas"):
    pytest.importorskip(needed)


@pytest.fixture(scope="module")
def settings():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DOCS))
        return runpy.run_path(str(DOCS / "conf.py"))


@pytest.fixture(scope="module")
def embed(settings):
    return settings["show_the_page"]


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


def test_every_comment_that_asks_for_the_page_is_replaced(embed):
    """Their states are long, so that a comment may go over several lines."""
    asked = shown = 0
    for path in sorted(DOCS.glob("*.md")):
        text = [path.read_text(encoding="utf-8")]
        asked += len(re.findall(r"<!--\s+(?:toy|live|toy-link):", text[0]))
        embed(None, path.stem, text)
        shown += len(re.findall(r'<iframe class="toy|<a href="_static/toy\.html[^"]*">(?!In a window)', text[0]))
        assert not re.search(r"<!--\s+(?:toy|live|toy-link):", text[0]), path
    assert asked == shown > 20


def test_a_class_shows_its_parameters_and_not_those_of_new(settings):
    """scikit-learn's signature of the same class is the truth for the names that both have."""
    from sklearn.svm import SVC as Theirs

    import mercer

    shown, _ = settings["show_signatures"](None, "class", "mercer.SVC", mercer.SVC, None, "(*values, **keywords)", None)
    assert "values" not in shown
    assert "float" not in shown  # types are in the docstring
    assert shown.startswith("(C=1.0, *, ")
    assert set(Theirs().get_params()) <= set(re.findall(r"(\w+)=", shown))


def test_the_sidebar_stays_short_inside_a_long_branch(settings):
    def sidebar(n, current):
        pages = "".join(
            f'<li class="toctree-l2{" current current-page" if i == current else ""}"><a href="{i}.html">{i}</a></li>'
            for i in range(n)
        )
        own = " current-page" if current is None else ""
        context = {
            "furo_navigation_tree": f'<ul><li class="toctree-l1 current{own} has-children"><a href="up.html">up</a>'
            f'<input checked="" type="checkbox"/><ul>{pages}</ul></li></ul>'
        }
        settings["shorten_branches"](None, "page", "page.html", context, None)
        tree = context["furo_navigation_tree"]
        return re.findall(r'href="(\w+)\.html"', tree), "checked" in tree

    assert sidebar(190, 7) == (["up", "7"], True)
    assert sidebar(190, None) == (["up", *map(str, range(190))], False)  # folded, and complete
    assert sidebar(7, 3) == (["up", *map(str, range(7))], True)


def test_words_of_a_type_are_no_links(settings):
    """In "array of shape (n,)" the word shape is no attribute of a class."""
    from docutils import nodes
    from docutils.utils import new_document
    from sphinx import addnodes

    page = new_document("page")
    for target in ("shape", "Kernel", "mercer.tune"):
        page += addnodes.pending_xref("", nodes.Text(target), reftarget=target, refspecific=True)
    page += addnodes.pending_xref("", nodes.Text("fit"), reftarget="fit")  # a reference that somebody wrote
    settings["link_no_words"](None, page)
    assert [node["reftarget"] for node in page.findall(addnodes.pending_xref)] == ["Kernel", "mercer.tune", "fit"]
    assert page.astext().split() == ["shape", "Kernel", "mercer.tune", "fit"]


@pytest.mark.parametrize(("state", "kind"), [("#set=rings", "toy"), ("#set=location&open=path", "toy opened")])
def test_an_open_panel_has_a_higher_frame(embed, state, kind):
    text = [f"<!-- toy: {state} -->"]
    embed(None, "page", text)
    assert f'<iframe class="{kind}"' in text[0]
    assert f'src="_static/toy.html{state}"' in text[0]
    height = re.compile(rf"iframe\.{kind.replace(' ', '.')} {{[^}}]*height: (\d+)rem")
    assert len(height.findall((DOCS / "_static/site.css").read_text())) == 2  # narrow and wide windows
