"""How Sphinx builds these pages: sphinx-build -W --keep-going -b html docs docs/_build/html."""

import inspect
import re
import sys
from pathlib import Path

from bs4 import BeautifulSoup
from docutils import nodes
from sphinx import addnodes
from sphinx.util import logging

import mercer
import mercer.notes.toy

sys.path.insert(0, str(Path(__file__).parent))
import figures

# Public namespaces such as mercer.theory are attributes of mercer, and autodoc documents only what it can import. In
# this process their modules can be imported by the public name too, so that the reference shows mercer.theory.risk.
for name in mercer.__all__:
    if inspect.ismodule(namespace := getattr(mercer, name)):
        sys.modules.setdefault(f"mercer.{name}", namespace)

project = "mercer"
author = "The mercer developers"
copyright = "The mercer developers"
version = release = mercer.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
    "mathematics",
    "line_breaks",
]
exclude_patterns = ["_build", "**/sg_execution_times.rst", "sg_execution_times.rst"]
templates_path = ["_templates"]
html_theme = "furo"
html_title = f"mercer {release}"
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"light_logo": "logo-light.svg", "dark_logo": "logo-dark.svg"}
html_favicon = "_static/favicon.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = [("site.js", {"defer": "defer"})]
html_math_renderer = "mathml"
highlight_options = {language: {"stripnl": True} for language in ("default", "python", "pycon", "text")}
myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath"]
myst_fence_as_directive = ["math"]  # GitHub's way to write a formula

autodoc_typehints = "none"  # the docstrings say it in words
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": "plot_",
    "within_subsection_order": "examples_shown.Order",
    "reset_modules": ("examples_shown.use_style",),
    "image_scrapers": ("examples_shown.save_films", "matplotlib"),
    "abort_on_example_error": True,
    "capture_repr": (),  # a picture's last call returns an object that nobody wants to see
    "min_reported_time": 1,
    "remove_config_comments": True,
}


def skip_what_scikit_learn_documents(app, what, name, obj, skip, options):
    """Leave out members that a class of ours merely inherits from scikit-learn."""
    return True if str(getattr(obj, "__module__", "")).startswith("sklearn") or name.endswith("_request") else None


def keep_what_napoleon_takes_apart(app, what, name, obj, options, lines):
    """Restore "x: y" of a property, read as its type and text, and "a, b" of attributes, read as a type and a name."""
    if what == "property" and lines and lines[-1].startswith(":type: "):
        lines[0] = f"{lines.pop().removeprefix(':type: ')}: {lines[0]}"
    for i, line in enumerate(lines):
        if names := re.match(r":ivar ([^:]+):", line):
            joined = names[1].replace(", ", ",\u200b")  # a zero-width space: no word ends here, a line may
            # Another one at the end: Sphinx would link the name to an attribute that another class has under it.
            lines[i] = f":ivar {joined}\u200b:{line[names.end() :]}"


def take_mathematics_literally(app, what, name, obj, options, lines):
    """In a docstring |r| is an absolute value and offset_ an attribute; reStructuredText would look for references."""
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            special = r"``.+?``|`[^`]+`|\||(?<=\w)_(?!\w)"
            lines[i] = re.sub(special, lambda m: m[0] if m[0][0] == "`" else "\\" + m[0], line)


def take_examples_from_the_gallery(app, docname, source):
    """A page links to files that GitHub shows; here the gallery has a page for each example, with its pictures."""
    source[0] = re.sub(r"\]\(\.\./examples/(plot_\w+)\.py\)", r"](gallery/\1.rst)", source[0])
    source[0] = source[0].replace("](../examples)", "](gallery/index.rst)")
    source[0] = re.sub(r"\[([^\]]+)\]\(\.\./README\.md\)", r"\1", source[0])  # which is no page of the site
    # A comment on GitHub, which has no gallery: <!-- picture: plot_name_001, what it shows -->
    picture = r"![\2](gallery/images/sphx_glr_\1.png)"
    source[0] = re.sub(r"<!-- picture: (plot_\w+), (.*?) -->", picture, source[0])
    # One that figures.py draws: <!-- figure: name, what it shows -->
    source[0] = re.sub(r"<!-- figure: (\w+), (.*?) -->", lambda m: f"![{m[2]}]({figures.draw(m[1])})", source[0])


def show_the_page(app, docname, source):
    """<!-- toy: #state --> shows the page, <!-- live: #state, words --> shows it when the words are clicked.

    <!-- toy-link: #state, words --> opens it in a window of its own. On GitHub all of them are comments. They may
    go over several lines.
    """

    def address_of(state):
        # An empty fragment means the top of the frame, to which browsers scroll the page around it too.
        return f"_static/toy.html{state if state != '#' else ''}"

    def frame(found):
        address, title = address_of(found[1]), "A support vector machine to play with"
        kind = "toy opened" if "open=" in address else "toy"  # a panel that is open wants more height: site.css
        return (
            f'<iframe class="{kind}" loading="lazy" src="{address}" title="{title}"></iframe>\n'
            f'<p><a href="{address}">In a window of its own</a></p>'
        )

    def closed(found):
        words = f"<summary><b>Live</b> {found[2]}</summary>"
        return f'<details class="live">{words}\n{frame(found)}\n</details>'

    def link(found):
        return f'<a href="{address_of(found[1])}">{found[2]}</a>'

    for kind, shown in (("toy", frame), ("live", closed), ("toy-link", link)):
        words = "" if kind == "toy" else r",\s+(.*?)"
        source[0] = re.sub(rf"<!--\s+{kind}:\s+(#\S*){words}\s+-->", shown, source[0], flags=re.DOTALL)


def fold_pages_below(app, docname, source):
    """Make <!-- pages: name name --> put these pages below this one in the sidebar; on GitHub it is a comment."""

    def tree(found):
        return "```{toctree}\n:hidden:\n\n" + "\n".join(found[1].split()) + "\n```"

    source[0] = re.sub(r"^<!-- pages: (.*?) -->$", tree, source[0], flags=re.MULTILINE)


MOST_IN_A_BRANCH = 12  # pages that the sidebar lists below the page whose branch is open


def shorten_branches(app, pagename, templatename, context, doctree):
    """List only the shown page of a long branch of the sidebar, such as the reference or the gallery."""
    tree = BeautifulSoup(context.get("furo_navigation_tree") or "", "html.parser")
    for branch in tree.select("li.current > ul"):
        pages = branch.find_all("li", recursive=False)
        others = [page for page in pages if "current" not in page["class"]]
        if len(pages) > len(others) and len(others) >= MOST_IN_A_BRANCH:
            for page in others:
                page.decompose()
        elif len(others) > MOST_IN_A_BRANCH:
            branch.parent.find("input", recursive=False).attrs.pop("checked", None)  # folded
    context["furo_navigation_tree"] = str(tree)


def write_the_page(app, exception):
    """The page itself, beside the style sheet."""
    if exception is None and app.builder.format == "html":
        page = mercer.notes.toy.page(home="../index.html")
        (Path(app.outdir) / "_static/toy.html").write_text(page, encoding="utf-8")


def refuse_addresses(app, pagename, templatename, context, doctree):
    """Where an object was printed that has nothing to say, the build fails."""
    if found := re.search(r"\S+ (?:object )?at 0x[0-9a-f]+", context.get("body") or ""):
        logging.getLogger(__name__).warning("%s shows the address of an object: %s", pagename, found[0])


def show_signatures(app, what, name, obj, options, signature, returned):
    """A class shows its parameters, and a function without a list of them shows their types behind their names."""
    if what == "class" and signature and "*values" in signature:  # __new__, which only suggests names
        own = inspect.signature(obj)
        plain = [parameter.replace(annotation=parameter.empty) for parameter in own.parameters.values()]
        return str(own.replace(parameters=plain, return_annotation=own.empty)), None
    if what == "function" and "Parameters\n" not in (obj.__doc__ or ""):
        return str(inspect.signature(obj)).replace("'", "").partition(" -> ")[0], None
    return None


def call_attributes_so(app, doctree, name):
    """Napoleon hands the section over as instance variables, and so Sphinx calls it Variables."""
    for field in doctree.findall(nodes.field_name):
        if field.astext() == "Variables":
            field.children = [nodes.Text("Attributes")]


def link_no_words(app, doctree):
    """In "array of shape (n,)" Sphinx would link the word shape to an attribute of any class that has one."""
    for reference in list(doctree.findall(addnodes.pending_xref)):
        if reference.get("refspecific") and re.fullmatch("[a-z_]+", reference["reftarget"]):
            reference.replace_self(reference.children)


def setup(app):
    app.connect("autodoc-process-signature", show_signatures)
    app.connect("doctree-read", link_no_words)
    app.connect("doctree-resolved", call_attributes_so)
    app.connect("source-read", take_examples_from_the_gallery)
    app.connect("source-read", show_the_page)
    app.connect("source-read", fold_pages_below)
    app.connect("build-finished", write_the_page)
    app.connect("html-page-context", refuse_addresses)
    app.connect("html-page-context", shorten_branches, priority=900)  # after furo
    app.connect("autodoc-process-docstring", keep_what_napoleon_takes_apart, priority=800)
    app.connect("autodoc-process-docstring", take_mathematics_literally, priority=900)  # after napoleon
    app.connect("autodoc-skip-member", skip_what_scikit_learn_documents)
