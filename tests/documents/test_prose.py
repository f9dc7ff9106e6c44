"""A few patterns that are never good English: docstrings without a subject, and words that no colleague would say."""

import ast
import re
from pathlib import Path

import pytest

import mercer

SOURCE = Path(mercer.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
DOCS = SOURCE.parents[1] / "docs"

# "Of the active samples." has neither subject nor verb; "The same of other parts." needs the sentence before it.
BEGINNINGS = re.compile(r"(Of|The same|Those|These|Some) ")
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
def test_words_that_no_colleague_would_say(path):
    lines = enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    found = [f"{number}: {line.strip()}" for number, line in lines if WORDS.search(line)]
    assert not found, found


@pytest.mark.skipif(not DOCS.is_dir(), reason="the pages lie beside a checkout only")
@pytest.mark.parametrize("path", sorted(DOCS.glob("*.md")) if DOCS.is_dir() else [], ids=lambda path: path.name)
def test_words_that_no_page_needs(path):
    text = re.sub(r"^```.*?^```$|`[^`\n]*`", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    found = [line.strip()[:120] for line in text.splitlines() if WORDS.search(line)]
    assert not found, found


def test_the_patterns_find_what_they_are_for():
    assert BEGINNINGS.match("Of the active samples.")
    assert not BEGINNINGS.match("Offsets of each group.")
    assert WORDS.search("It starts anew.")
