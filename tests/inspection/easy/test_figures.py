"""Figures against scikit-learn's, their standard errors against draws; hints, and numbers as people write them."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, balanced_accuracy_score, mean_absolute_error, r2_score

from mercer.inspection.easy.figures import ClassFigures, NumberFigures
from mercer.inspection.easy.hints import is_ordered, spread_ratio, suggest_next
from mercer.inspection.easy.page import WIDTH, page
from mercer.inspection.easy.target import target_kind
from mercer.tables.dialect import format_quantity
from mercer.tables.encodings import DroppedColumn


def answered(rng, n, shares=(0.8, 0.6)):
    truth = rng.choice(["a", "b"], n, p=[0.7, 0.3])
    right = rng.random(n) < np.where(truth == "a", *shares)
    return truth, np.where(right, truth, np.where(truth == "a", "b", "a"))


def test_classes():
    rng = np.random.default_rng(0)
    truth, answers = answered(rng, 400)
    found = ClassFigures(truth, answers, np.array(["a", "b"]))
    assert found.accuracy == pytest.approx(accuracy_score(truth, answers))
    assert found.balanced_accuracy == pytest.approx(balanced_accuracy_score(truth, answers))
    draws = [ClassFigures(*answered(rng, 400), np.array(["a", "b"])) for _ in range(400)]
    spread = np.std([(one.accuracy, one.balanced_accuracy) for one in draws], axis=0)
    assert found.standard_errors == pytest.approx(spread, rel=0.2)


def test_the_interval_of_a_high_accuracy_covers_it():
    """19 of 20 intervals do, also where all rows are right."""
    rng = np.random.default_rng(0)
    truth = np.array(["a", "b"] * 40)
    covered = []
    for _ in range(500):
        answers = np.where(rng.random(80) < 0.97, truth, "a")  # right with probability 0.985
        found = ClassFigures(truth, answers, np.array(["a", "b"]))
        covered.append(abs(found.accuracy - 0.985) < found.half_width)
    assert np.mean(covered) > 0.94


def test_the_hardest_class_has_the_lowest_f1_score():
    truth = np.array(["rare"] * 10 + ["usual"] * 190)
    answers = np.array(["rare"] * 18 + ["usual"] * 182)  # all of the rare rows, and 8 others
    found = ClassFigures(truth, answers, np.array(["never", "rare", "usual"]))
    assert found.recall[1] > found.recall[2]
    assert found.classes[found.hardest] == "rare"


def test_numbers():
    rng = np.random.default_rng(0)

    def draw():
        truth = rng.normal(size=300)
        return NumberFigures(truth, truth + 0.5 * rng.normal(size=300), 0.0, "€")

    found = draw()
    assert found.r2 == pytest.approx(r2_score(found.truth, found.answers))
    assert found.error == pytest.approx(mean_absolute_error(found.truth, found.answers))
    assert found.standard_error == pytest.approx(np.std([draw().r2 for _ in range(400)]), rel=0.25)
    assert NumberFigures([1.0, 1.0], [1.0, 2.0], 1.0).is_useless  # R² of a constant is not a number


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (71312.6, "€", "71,310 €"),
        (1234567.0, "$", "$1,235,000"),
        (0.0421337, "", "0.04213"),
        (999.96, "%", "1000 %"),
        (-5274.4, "", "-5,274"),
        (float("nan"), "", "nan"),
        (12.0, "", "12"),
    ],
)
def test_numbers_are_written_as_people_do(value, unit, text):
    assert format_quantity(value, unit) == text


def test_a_page_is_no_wider_than_a_terminal():
    lines = page([("name", "word " * 60), ("", "column  " + "told " * 40), None, None, ("end", "x")])
    assert max(map(len, lines)) <= WIDTH
    assert lines[1].startswith(" " * 15 + "word")
    assert lines[-2:] == ["", "  end          x"]


CONSTANT = ClassFigures(np.array(["a"] * 90 + ["b"] * 10), np.array(["a"] * 100), np.array(["a", "b"]))
SHUFFLED = np.random.default_rng(0).permutation(np.repeat(["a", "b"], 50))


@pytest.mark.parametrize(
    ("figures", "y", "columns", "options", "told"),
    [
        (CONSTANT, SHUFFLED, [], {"weighed": False}, "'b' is hardly ever predicted; class_weight='balanced'"),
        (CONSTANT, SHUFFLED, [], {"weighed": True}, "these columns hardly predict 'y'"),
        (
            CONSTANT,
            SHUFFLED,
            [DroppedColumn("note", "9 different texts in 9 rows", True)],
            {"weighed": True},
            "'note' is not used; name it in the parameter text to use its words",
        ),
        (CONSTANT, np.repeat(["a", "b"], 50), [], {"weighed": False}, "neighbouring rows have similar values of 'y'"),
        (CONSTANT, SHUFFLED, [], {"weighed": False, "ratio": 1e6}, "1e+06 times that of another"),
    ],
)
def test_hints(figures, y, columns, options, told):
    assert any(told in hint for hint in suggest_next(figures, y, "y", columns, **options))


def test_a_good_model_has_no_hints():
    good = ClassFigures(SHUFFLED, SHUFFLED, np.array(["a", "b"]))
    assert suggest_next(good, SHUFFLED, "y", [], weighed=False) == []


def test_order_and_scale():
    rng = np.random.default_rng(0)
    assert is_ordered(np.sort(rng.normal(size=50)))
    assert not is_ordered(rng.normal(size=50))
    assert not is_ordered(np.arange(50) % 2)
    X = rng.normal(size=(500, 3)) * [1, 1, 1000]
    assert spread_ratio(X) == pytest.approx(1000, rel=0.2)
    assert spread_ratio(np.column_stack([X, np.ones(500)])) == spread_ratio(X)


@pytest.mark.parametrize(
    ("values", "is_regression"),
    [
        ([0.5, 1.0], True),
        (list(range(21)), True),
        (list(range(20)), False),
        (["a", "b"], False),
        ([True, False], False),
    ],
)
def test_what_a_target_asks_for(values, is_regression):
    found = target_kind(np.array(values), "auto")
    assert found.is_regression is is_regression
    assert bool(found.reason) is is_regression
    assert target_kind(np.array(values), "svr").is_regression
