"""Where a line may end: not inside an option or before a comma, but inside a long call in a table.

The functions take and return the HTML of a page.
"""

import html
import re

# Browsers end a line between a formula and the comma behind it.
FORMULA = re.compile(r"([(“‘]?)(<math(?:(?!</math>).)*</math>)([,.;:!?)”’%]*)", re.DOTALL)
WORD = re.compile(r'<span class="pre">([^<]*)</span>')
CODE = re.compile(r'<code class="([^"]*)">(.*?)</code>', re.DOTALL)
MOST_WHOLE = 24  # characters of a word with hyphens that stays on one line
MOST_IN_CELL = 44  # characters of code that stays on one line of a table
MOST_IN_NUMBER = 16  # characters of a number with its unit


def join_punctuation(page):
    """Keep formulas together with the brackets, quotes and commas beside them."""
    return FORMULA.sub(lambda m: f'<span class="whole">{m[0]}</span>' if m[1] or m[3] else m[0], page)


def join_options(page):
    """Keep --target and the like on one line, in sentences and in code."""

    def word(found):
        whole = "-" in found[1] and len(html.unescape(found[1])) <= MOST_WHOLE
        return f'<span class="pre whole">{found[1]}</span>' if whole else found[0]

    def block(found):
        return re.sub(r"(?<![\w-])--[a-z][\w-]*", r'<span class="whole">\g<0></span>', found[0])

    return re.sub(r"<pre>.*?</pre>", block, WORD.sub(word, page), flags=re.DOTALL)


def split_calls(page):
    """Let long code in cells of tables end lines behind a dot, a bracket, a comma or an underscore."""

    def word(found):
        ends = r"(?<=\w[._(,=/])(?<!\d\.)(?=[\w'&(\[{])"
        text = found[1] if len(found[1]) <= 16 else re.sub(ends, "<wbr>", found[1])
        return f'<span class="pre">{text}</span>'

    def code(found):
        text = html.unescape(re.sub("<[^>]*>", "", found[2]))
        kind = f"{found[1]} long" if len(text) > MOST_IN_CELL else found[1]
        return f'<code class="{kind}">{WORD.sub(word, found[2])}</code>'

    return re.sub(r"<td.*?</td>", lambda cell: CODE.sub(code, cell[0]), page, flags=re.DOTALL)


def join_numbers(page):
    """Keep a number beside its unit in columns of numbers."""

    def cell(found):
        short = len(html.unescape(re.sub("<[^>]*>", "", found[1]))) <= MOST_IN_NUMBER
        return f'<td class="text-right whole">{found[1]}</td>' if short else found[0]

    return re.sub(r'<td class="text-right">(.*?)</td>', cell, page, flags=re.DOTALL)


def set_line_breaks(app, pagename, templatename, context, doctree):
    if context.get("body"):
        context["body"] = join_punctuation(join_options(join_numbers(split_calls(context["body"]))))


def setup(app):
    app.connect("html-page-context", set_line_breaks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
