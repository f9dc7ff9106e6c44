"""Cells with a currency or a percent sign are numbers, and the unit is remembered."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import mercer
from mercer.cli.main import main
from mercer.tables.dialect import UNKNOWN, units_from_text, units_to_text
from mercer.tables.reading import read_csv

N = 60
AMOUNTS = np.random.default_rng(0).lognormal(6, 1, N).round(2)


def column(text: str) -> tuple[list[object], dict[str, str]]:
    """What becomes of one column of cells, and the units."""
    cells = text.split("|")
    body = "".join(f'"{cell}";k{row}\n' for row, cell in enumerate(cells))
    table = read_csv(f"a;b\n{body}".encode(), "t.csv", UNKNOWN, UNKNOWN)
    column = table.frame.number_column("a")
    values = column.values if column.problem is None else np.full(len(cells), np.nan)
    found = zip(table.frame["a"], values, strict=True)
    return [cell if np.isnan(value) else value for cell, value in found], units_from_text(table.dialect.units)


@pytest.mark.parametrize(
    ("text", "values", "unit"),
    [
        ("$1,200.50|$3|-$4.25|$ -5", [1200.5, 3, -4.25, -5], "$"),
        ("12 %|7%|  0.5 % ||NA", [12, 7, 0.5], "%"),
        ("1.234,50 €|0,99 €", [1234.5, 0.99], "€"),
        ("1 234,50 €|12 345 678,9 €", [1234.5, 12345678.9], "€"),
        ("CHF 1'200.50|CHF 3", [1200.5, 3], "CHF"),
        ("1.5 USD|+2 USD", [1.5, 2], "USD"),
        ("−3 kr|4 kr", [-3, 4], "kr"),
        ("5.3 km|12 km|k.A.|7 km", [5.3, 12, 7], "km"),
        ("8°C|-2°C|0.5 °C", [8, -2, 0.5], "°C"),
        ("10 km/h|1 200 km/h", [10, 1200], "km/h"),
        ("5:32|07:30|1:05:32|", [332, 450, 3932], ":"),
    ],
)
def test_a_column_in_one_unit_is_numbers(text: str, values: list[float], unit: str) -> None:
    found, units = column(text)
    assert [cell for cell in found if cell not in (None, "k.A.")] == values
    assert units == {"a": unit}


@pytest.mark.parametrize(
    "text",
    ["$3|€4", "12 %|12", "$3|cheap", "$|%", "-$-3|$4", "3 krona|4 kronor", "1 2 €|3 €", "1st|2nd|3rd", "16:9|4:3"],
)
def test_anything_else_stays_as_it_is(text: str) -> None:
    found, units = column(text)
    assert (found, units) == (text.split("|"), {})


def test_units_are_written_as_text_and_read_back() -> None:
    units = {"a b": "$", "": "%"}
    assert units_from_text(units_to_text(units)) == units
    assert (units_to_text({}), units_from_text(None), units_to_text({"two\nlines": "$"})) == (None, {}, None)


def write(path: Path, unit: str, label: str) -> None:
    rows = (f'"{unit}{amount:,.2f}",{label if amount > 400 else "no"} ' for amount in AMOUNTS)
    path.write_text("\n".join(["amount,large", *rows, ""]))


def test_a_table_in_another_unit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "t.csv", "$", "yes")
    write(tmp_path / "pounds.csv", "£", "yes")
    write(tmp_path / "plain.csv", "", "yes")
    main(["train", "t.csv", "--target", "large"])
    printed = capsys.readouterr().out
    assert "amount in $: read as numbers, without the unit" in printed
    assert {*mercer.load("t.mercer").classes_} == {"yes", "no"}  # without the blanks behind them
    main(["predict", "plain.csv", "t.mercer", "out"])
    assert "Accuracy = 9" in capsys.readouterr().out
    assert main(["predict", "pounds.csv", "t.mercer", "out"]) == 1
    assert "the column 'amount' is in £, but the model was trained on $" in capsys.readouterr().err


def test_a_time_is_learnt_in_seconds_and_told_as_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"{k / 4} km,{'4g' if k % 2 else '5g'},{(280 + k) // 60}:{(280 + k) % 60:02d}" for k in range(N)]
    (tmp_path / "t.csv").write_text("\n".join(["distance,net,pace", *rows, ""]))
    assert main(["train", "t.csv", "--target", "pace"]) == 0
    page = " ".join(capsys.readouterr().out.split())
    assert "distance in km, net in g, pace as time: read as numbers, without the unit" in page
    assert "always predicting the median: 0:" in page
    assert main(["predict", "t.csv", "t.mercer"]) == 0
    answers = [line.rpartition(",")[2] for line in capsys.readouterr().out.splitlines()[1:]]
    assert all(re.fullmatch(r"[45]:[0-5]\d", answer) for answer in answers)
    assert main(["train", "t.csv", "--target", "net", "-q", "-o", "t.mercer"]) == 0
    assert mercer.load("t.mercer").classes_.tolist() == ["4g", "5g"]  # names of classes stay whole
