"""Regular expressions of a file: those that are accepted take time in proportion to a text, whatever the text is."""

import random
import re
import time

import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

import mercer
from mercer.files.scikit.checks import check_pattern
from mercer.runtime.errors import ModelFormatError

TEXTS = ["ab cd", "cd ef"] * 4

ORDINARY = [
    *(
        r"(?u)\b\w\w+\b",
        r"(?u)\b\w+\b",
        r"\w+",
        r"\S+",
        r"[^,]+",
        r".",
        r"\d{4}",
        r"[A-Z][a-z]+",
        r"#\w*",
        r"(?i)[a-z]+",
    ),
    *(
        r"^num_",
        r"_id$",
        r"^x\d+$",
        r"^.*$",
        r"\.\d{1,3}$",
        r"\b[^~]{3,}\b",
        r"[]a]+",
        r"[^]a]+",
        r"[\]\\]+",
        r"\w{2,5}\b",
    ),
]
HOSTILE = [
    r"\w?" * 40 + "~",
    r"[^~]*[^~]*[^~]*[^~]*~",
    *(
        r"(a+)+b",
        r"(?:a|a)+b",
        r"(\w+)@",
        r"\w+~",
        r"[a-z]+\b",
        r"\b\w+$",
        r".+$",
        r"\s+$",
        r"a|b",
        r"\w+\w+",
        r"\w+?b",
    ),
    *(r"(?=a+)b", r"(?x)a +b", r"x{2}y{2}", r"(?P<n>a)(?P=n)", r"x{100}", r"(?m)^a+$", r"[a]+[]b]+c", "x" * 201),
]
# Runs that end in what makes a match fail, with and without boundaries in them.
RUNS = ["a", "a ", "aB", ".", "a.", "x1", " ", "é", "~a"]


@pytest.mark.parametrize("pattern", HOSTILE)
def test_what_may_take_longer_is_refused_in_words(pattern, tmp_path):
    with pytest.raises(ModelFormatError, match=r"more than linear time.*choose such a pattern|at most 200 characters"):
        check_pattern("token_pattern", pattern)
    model = make_pipeline(CountVectorizer(), mercer.LinearSVC()).fit(TEXTS, [0, 1] * 4)
    model[0].token_pattern = pattern
    with pytest.raises(TypeError, match=r"more than linear time|at most 200 characters"):
        mercer.save(model, tmp_path / "m.mercer")


@pytest.mark.parametrize("pattern", ORDINARY)
def test_ten_times_the_text_take_about_ten_times_the_time(pattern):
    check_pattern("token_pattern", pattern)
    assert slowest(pattern, 100_000) < 100 * max(slowest(pattern, 10_000), 1e-3)  # a quadratic one takes a minute


def slowest(pattern, length):
    taken = []
    for run in RUNS:
        for end in ("", "~", "Z", "!", "\n", " "):
            text = run * (length // len(run)) + end
            begun = time.process_time()
            re.findall(pattern, text)
            taken.append(time.process_time() - begun)
    return max(taken)


def test_drawn_patterns_are_refused_or_linear():
    """Patterns drawn from pieces, of which some dozens are accepted: each reads each of the texts in a moment."""
    rng = random.Random(0)
    pieces = [r"\b", "^", "$", r"\w", "a", ".", r"[^~]", r"\s", "+", "*", "?", "{2,}", "{1,3}", "(?i)", r"[]a]", r"\W"]
    accepted = 0
    for _ in range(1500):
        pattern = "".join(rng.choices(pieces, k=rng.randint(1, 6)))
        try:
            check_pattern("token_pattern", pattern)
        except ModelFormatError:
            continue
        accepted += 1
        for run in ("a", "a ", "aB"):
            begun = time.process_time()
            re.findall(pattern, run * (40_000 // len(run)) + "~")
            assert time.process_time() - begun < 0.5, pattern
    assert accepted > 50
