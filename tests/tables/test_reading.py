"""The quick ways through a table against the slow ones: cells cut at once, and columns of numbers read at once."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.tables.cells import cells_of, parse_number, plain_numbers
from mercer.tables.dialect import UNKNOWN
from mercer.tables.reading import _quoted_cells, _unquoted_cells, classes_in, read_csv

cell = st.text(st.characters(codec="utf-8", exclude_characters='\r\n,"'), max_size=4)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.lists(cell, min_size=2, max_size=3), min_size=1, max_size=5),
    end=st.sampled_from(["\n", "\r\n"]),
    last=st.booleans(),
)
def test_cells_are_those_of_pythons_reader(rows, end, last):
    text = end.join(",".join(row) for row in rows) + (end if last else "")
    quick = _unquoted_cells(text, ",")
    if len({len(row) for row in rows}) > 1:
        assert quick is None
    elif quick is not None:
        assert quick == _quoted_cells(text, ",", "t") == [list(column) for column in zip(*rows, strict=True)]


@pytest.mark.parametrize("text", ['a,b\n"1",2', "a,b\n\n1,2", "a,b\n1,2,3\n4", "a\n1", "a,b\r1,2", ""])
def test_other_texts_take_the_slow_way(text):
    assert _unquoted_cells(text, ",") is None


spelt = st.sampled_from(
    [
        "1",
        "-2.5",
        "+.5",
        "3.",
        "1e-3",
        "2E5",
        "",
        " 7",
        "NA",
        "nan",
        "?",
        "007",
        "-01.5",
        "1_000",
        "inf",
        "1e999",
        "x",
        "1,5",
        "٣",
        "0",
        "0.5",
    ]
)


@settings(max_examples=300, deadline=None)
@given(texts=st.lists(spelt, min_size=1, max_size=6))
def test_numbers_are_those_that_are_found_one_by_one(texts):
    known = [cell for cell in cells_of(texts) if cell is not None]
    slow = [np.nan if cell is None else parse_number(cell) for cell in cells_of(texts)]
    quick = plain_numbers(texts)
    if not known or None in slow:
        assert quick is None
    else:
        np.testing.assert_array_equal(quick, slow)


def test_cells_stay_as_they_stand_in_the_file():
    content = "x;z;y\n1,5 €;k.A.;a\n2,5 €;3;b\n".encode()
    table = read_csv(content, "t.csv", UNKNOWN, UNKNOWN, texts_of=[], target="y")
    assert table.cells == [["1,5 €", "2,5 €"], ["k.A.", "3"], ["a", "b"]]
    np.testing.assert_array_equal(table.frame.number_column("x").values, [1.5, 2.5])
    assert table.frame["y"].tolist() == ["a", "b"]


def test_a_huge_number_does_not_make_names_of_a_targets_numbers():
    np.testing.assert_array_equal(classes_in(["1.5", "1e250", "2"], "t", "y"), [1.5, 1e250, 2.0])
    assert (
        classes_in(["1.5", "9007199254740993", "9007199254740992"], "t", "y").dtype.kind == "U"
    )  # one float, two names


@pytest.mark.parametrize("quote", ["", '"'])
def test_a_cell_of_a_megabyte_is_refused_with_or_without_quotes(quote):
    with pytest.raises(ValueError, match=r"t:2: field larger than field limit \(131072\)"):
        read_csv(f"a,b\n{quote}{'x' * 1_000_000}{quote},2\n".encode(), "t", UNKNOWN, UNKNOWN)


def test_a_million_columns_are_refused_and_fifty_thousand_read_in_a_moment():
    def table(width):
        return (",".join(f"c{k}" for k in range(width)) + "\n" + ",".join("1" for _ in range(width)) + "\n").encode()

    with pytest.raises(ValueError, match=r"has 1,000,000 columns.*as LIBSVM text"):
        read_csv(table(1_000_000), "t", UNKNOWN, UNKNOWN)
    begun = time.process_time()
    assert len(read_csv(table(50_000), "t", UNKNOWN, UNKNOWN).header) == 50_000
    assert time.process_time() - begun < 30  # comparing every name with every other takes a minute
