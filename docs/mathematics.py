"""Formulas on the site: LaTeX becomes MathML, which browsers draw without scripts; x_i in a sentence gets its index.

The same source is readable on GitHub, which draws LaTeX between dollars by itself, and in `help()`.
"""

import re

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

# A letter, then an index of one or two characters or in braces; a word, then an index that is plainly one; a power.
INDEX_OR_POWER = re.compile(
    r"((?:(?<![A-Za-z0-9_])[A-Za-z]|[α-ωϑΑ-Ω‖])(?=_))_(?:\{([^{}]+)\}|([A-Za-z0-9α-ω]{1,2})(?![A-Za-z0-9_]))"
    r"|((?<![A-Za-z0-9_])[A-Za-z]{2,}(?=_))_(ij|[ijkgf])(?![A-Za-z0-9_])"
    r"|\^(?:\(([^()]+)\)|(½|[0-9]+|[A-Za-z]+|[α-ω]))"
)
# A bar or an angle of \| or \langle; those of \left and \right begin or end a row, and grow with it.
FENCE = re.compile(r'(<mrow>\s*)?<mo(?: class="mathopen")?(?: stretchy="false")?>([‖|⟨⟩])</mo>(\s*</mrow>)?')
VERBATIM = {"literal", "literal_block", "doctest_block", "math", "math_block", "desc_signature", "comment", "raw"}


def mathml(latex, as_block):
    whole = re.sub(r"\\([td]?frac)(\d)(\d)", r"\\\1{\2}{\3}", latex)  # docutils reads \frac12 as a fraction of 12
    whole = whole.replace(r"\operatorname*", r"\operatorname")  # docutils would draw the star
    return FENCE.sub(keep_short, tex2mathml(whole, as_block=as_block))


def keep_short(fence):
    """Return a bar that is as high as a letter and has no space beside it, unless it begins or ends a row."""
    first, bar, last = fence.groups()
    return fence[0] if first or last else f'<mo stretchy="false" lspace="0" rspace="0">{bar}</mo>'


def draw_inline(writer, node):
    writer.body.append(mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def parts(latex):
    r"""Divide a formula at each \quad outside braces; there a narrow window may begin a line."""
    if r"\begin" in latex or r"\\" in latex:
        return [latex]
    found, depth = [""], 0
    for piece in re.split(r"(\\[{}]|\\left\b|\\right\b|\\q?quad\b|[{}])", latex):
        depth += (piece in ("{", r"\left")) - (piece in ("}", r"\right"))
        if piece in (r"\quad", r"\qquad") and depth == 0:
            found.append("")
        else:
            found[-1] += piece
    return [part for part in found if part.strip()]


def draw_block(writer, node):
    divided = parts(node.astext())
    if len(divided) == 1:
        drawn = mathml(node.astext(), as_block=True)
    else:
        drawn = " ".join(mathml(part, False).replace("<math", '<math displaystyle="true"', 1) for part in divided)
    writer.body.append(f'<div class="math">{drawn}</div>')
    raise nodes.SkipNode


def with_indices(text):
    """The text as nodes, what follows _ and ^ lowered and raised."""
    at = 0
    for match in INDEX_OR_POWER.finditer(text):
        letter, braced, short, word, index, *powers = match.groups(default="")
        yield nodes.Text(text[at : match.start()] + letter + word)
        kind = nodes.subscript if letter or word else nodes.superscript
        yield kind("", "", *with_indices("".join([braced, short, index, *powers])))
        at = match.end()
    yield nodes.Text(text[at:])


def lower_and_raise(app, doctree, name):
    for text in list(doctree.findall(nodes.Text)):
        parents = set()
        node = text.parent
        while node is not None:
            parents.add(type(node).__name__)
            node = node.parent
        verbatim = {
            "literal",
            "literal_block",
            "doctest_block",
            "math",
            "math_block",
            "desc_signature",
            "comment",
            "raw",
        }
        if not parents & verbatim and INDEX_OR_POWER.search(text):
            text.parent.replace(text, list(with_indices(text.astext())))


def setup(app):
    app.add_html_math_renderer("mathml", (draw_inline, None), (draw_block, None))
    app.connect("doctree-resolved", lower_and_raise)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
