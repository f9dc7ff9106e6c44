"""A few patterns that are never good English: docstrings without a subject, and words that no colleague would say."""

import ast
import re
import tokenize
from pathlib import Path

import pytest

import mercer

SOURCE = Path(mercer.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
DOCS = Path(__file__).parents[2] / "docs"

# "Of the active samples." has neither subject nor verb; "The same of other parts." needs the sentence before it;
# "Whether K is stored." is half a sentence ("Return whether …", "True if …").
BEGINNINGS = re.compile(r"(Of|The same|Those|These|Some|Whether) ")
# "x = 3  # of the active samples" and "# it may be shared" need a noun.
COMMENTS = re.compile(r"# (of|whose|it|its|they|their|these|those) ")
# "anew" is "again", "but for" is "except for", a missing value is no hole.
WORDS = re.compile(r"\b(anew|but for|holes)\b")


def docstrings(path):
    """Yield the line and the text of every docstring."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "lineno", 1), text


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_docstrings_begin_with_a_verb_or_a_noun(path):
    found = [f"{line}: {text.splitlines()[0]}" for line, text in docstrings(path) if BEGINNINGS.match(text)]
    assert not found, found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_comments_beside_code_name_what_they_describe(path):
    with path.open("rb") as file:
        tokens = [token for token in tokenize.tokenize(file.readline) if token.type == tokenize.COMMENT]
    beside_code = [token for token in tokens if not token.line.lstrip().startswith("#")]
    found = [f"{token.start[0]}: {token.string}" for token in beside_code if COMMENTS.match(token.string)]
    assert not found, found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_words_that_no_colleague_would_say(path):
    lines = enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    found = [f"{number}: {line.strip()}" for number, line in lines if WORDS.search(line)]
    assert not found, found


@pytest.mark.parametrize("path", sorted(DOCS.glob("*.md")), ids=lambda path: path.name)
def test_words_that_no_page_needs(path):
    text = re.sub(r"^```.*?^```$|`[^`\n]*`", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    found = [line.strip()[:120] for line in text.splitlines() if WORDS.search(line)]
    assert not found, found


def test_the_patterns_find_what_they_are_for():
    assert BEGINNINGS.match("Of the active samples.")
    assert BEGINNINGS.match("Whether K is stored.")
    assert not BEGINNINGS.match("Offsets of each group.")
    assert COMMENTS.match("# of the active samples")
    assert not COMMENTS.match("# offsets of each group")
    assert WORDS.search("It starts anew.")
