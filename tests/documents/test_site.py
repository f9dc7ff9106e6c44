"""What the site is made of: the marks, the style, the settings of its host, and no address of another host."""

import re
import tomllib
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import matplotlib as mpl
import pytest
from matplotlib.style import context

from mercer.inspection.displays.drawing import COLOURS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MARKS = sorted((DOCS / "_static").glob("*.svg"))


@pytest.mark.parametrize("path", MARKS, ids=lambda path: path.name)
def test_a_mark_is_one_small_file(path):
    root = ElementTree.fromstring(path.read_text(encoding="utf-8"))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert path.stat().st_size < 2_000
    assert not root.findall(".//{*}image")


def test_the_settings_name_the_marks():
    settings = (DOCS / "conf.py").read_text(encoding="utf-8")
    assert len(MARKS) == 3
    assert all(path.name in settings for path in MARKS)


@pytest.mark.parametrize("name", ["site.css", "site.js"])
def test_style_and_script_ask_no_other_host(name):
    text = (DOCS / "_static" / name).read_text(encoding="utf-8")
    assert not re.search(r"https?:|//[\w-]+\.\w|@import", text)


def test_figures_have_no_background_and_the_colours_of_the_library():
    with context(DOCS / "figures.mplstyle"):
        assert mpl.rcParams["figure.facecolor"] == mpl.rcParams["axes.facecolor"] == "none"
        cycle = mpl.rcParams["axes.prop_cycle"].by_key()["color"]
    assert tuple(f"#{colour.lstrip('#')}" for colour in cycle) == COLOURS


def test_no_figure_of_the_site_names_a_style_of_its_own():
    for path in [DOCS / "figures.py", DOCS / "diagrams.py", *(ROOT / "examples").glob("*.py")]:
        assert not re.search(
            r"font\.size|figsize.*dpi|style\.use\(\"|facecolor=\"#", path.read_text(encoding="utf-8")
        ), path


def test_the_host_of_the_documentation_installs_the_extra_and_a_compiler():
    settings = (ROOT / ".readthedocs.yaml").read_text(encoding="utf-8")
    for line in (
        "version: 2",
        "    - g++",
        "        - docs",
        "  configuration: docs/conf.py",
        "  fail_on_warning: true",
    ):
        assert f"\n{line}\n" in settings
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "docs" in project["optional-dependencies"]
    assert re.search(r'python: "(3\.\d+)"', settings)[1] in re.findall(r"3\.\d+", " ".join(project["classifiers"]))


def test_bars_grow_where_the_formula_says_so(monkeypatch):
    pytest.importorskip("docutils")
    monkeypatch.syspath_prepend(str(DOCS))
    import mathematics

    short, high = mathematics.mathml(r"\|w\|^2 + |b|", True), mathematics.mathml(r"\left| \frac{1}{2} \right|", True)
    assert short.count('stretchy="false"') == len(re.findall("[‖|]", short)) == 4
    assert high.count("<mo>|</mo>") == 2


def test_lines_end_where_a_reader_expects_it(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    import line_breaks

    formula = '<math xmlns="…"><mi>a</mi></math>'
    assert line_breaks.join_punctuation(f"so {formula}, and") == f'so <span class="whole">{formula},</span> and'
    assert line_breaks.join_punctuation(f"“{formula} is") == f'<span class="whole">“{formula}</span> is'
    assert line_breaks.join_punctuation(f"if {formula} is") == f"if {formula} is"

    shell = (
        '<pre><span></span>mercer<span class="w"> </span>toy<span class="w"> </span>--output<span> </span>a.html</pre>'
    )
    assert '<span class="whole">--output</span>' in line_breaks.join_options(shell)
    assert re.sub("<[^>]*>", "", line_breaks.join_options(shell)) == "mercer toy --output a.html"
    word = '<span class="pre">--class-weight</span>'
    assert line_breaks.join_options(word) == '<span class="pre whole">--class-weight</span>'
    assert line_breaks.join_options('<span class="pre">tol</span>') == '<span class="pre">tol</span>'

    call = "mercer.displays.DecisionDisplay.from_estimator(model.table_,"
    words = [call, "y,", "features=['a'],", "positive_share=0.5)"]
    spans = " ".join(f'<span class="pre">{word}</span>' for word in words)
    code = f'<code class="docutils literal notranslate">{spans}</code>'
    cell = line_breaks.split_calls(f"<td><p>{code}</p></td>")
    assert "mercer.<wbr>displays.<wbr>Decision" in cell
    assert "share=<wbr>0.5)" in cell
    assert 'class="docutils literal notranslate long"' in cell
    assert re.sub("<[^>]*>", "", cell) == " ".join(words)
    assert line_breaks.split_calls(code) == code  # which is in a sentence
    assert "<wbr>" not in line_breaks.split_calls(
        '<td><code class="literal"><span class="pre">model.fit(X)</span></code></td>'
    )


def test_numbers_stay_beside_their_units(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    import line_breaks

    assert line_breaks.join_numbers('<td class="text-right"><p>0.0482 s</p></td>').startswith(
        '<td class="text-right whole">'
    )
    sentence = '<td class="text-right"><p>a million rows on an H200 and on 16 cores</p></td>'
    assert line_breaks.join_numbers(sentence) == sentence


def test_a_formula_is_divided_where_it_has_wide_spaces(monkeypatch):
    pytest.importorskip("docutils")
    monkeypatch.syspath_prepend(str(DOCS))
    import mathematics

    assert mathematics.parts(r"\min_w \|w\| \quad\text{with}\quad y_i f(x_i) \ge 1") == [
        r"\min_w \|w\| ",
        r"\text{with}",
        r" y_i f(x_i) \ge 1",
    ]
    for whole in (
        r"\frac{a \quad b}{c}",
        r"\left( a \quad b \right)",
        r"\begin{aligned} a \quad b \end{aligned}",
        "a + b",
    ):
        assert mathematics.parts(whole) == [whole]
    assert mathematics.parts(r"\{a\} \quad \{b\}") == [r"\{a\} ", r" \{b\}"]


@pytest.mark.parametrize("path", sorted(DOCS.glob("*.md")), ids=lambda path: path.name)
def test_no_norm_in_a_table_becomes_an_absolute_value(path):
    r"""In a table \| is how Markdown writes |, so that a norm there needs \Vert."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("|") and path.name != "notes_rows.md":  # written by notes_rows.py, from | in a file
            assert not re.search(r"\$[^$]*\\\|[^$]*\$", line), line
