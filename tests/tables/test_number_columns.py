"""Columns as people write them: numbers with their marks and units, truth values in seven languages, codes, categories.

Sixty tables made afresh from every source: tests/tables/test_torture.py.
"""

import datetime
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest

import mercer
from mercer.cli.main import main
from mercer.cli.terminal import as_options
from mercer.runtime.errors import GuessWarning
from mercer.tables.cells import parse_seconds
from mercer.tables.choice import ColumnOptions, encodings_for, guesses
from mercer.tables.encodings import DroppedColumn, Levels, Numbers
from mercer.tables.frame import distinct_names, frame_of
from mercer.tables.number_column import HOURS, read_column, scan_column
from mercer.tables.reading import read_frame


def read(*cells):
    return read_column(scan_column([None if cell == "" else cell for cell in cells]))


def chosen(cells, name="x", **options):
    """Return the encoding of a column, and what is asked about it."""
    frame = frame_of(pd.DataFrame({name: cells, "z": [["a", "b", "c"][k % 3] for k in range(len(cells))]}))
    options = ColumnOptions(**options)
    encodings = encodings_for(frame, options, np.ones(len(frame)))
    return encodings[0], guesses(frame, encodings, options).get(name)


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["6 095,69", "1\u202f234,5", "7\u00a0000", ""], [6095.69, 1234.5, 7000, np.nan]),
        (["1'707.35", "12’000.5", "3"], [1707.35, 12000.5, 3]),
        (["(1234.5)", "12", "($1,5)"], None),  # a unit in one cell alone
        (["(1,234.5)", "$(3)", "$4"], None),
        (["($1,234.50)", "$ 3.00", "-$4.25"], [-1234.5, 3, -4.25]),
        (["1.234,50-", "2,00"], [-1234.5, 2]),
        (["1.5E+03", "2.5e-2", "3"], [1500, 0.025, 3]),
        (["1,5E+03", "2"], [1500, 2]),
        (["1.5×10³", "2.5 x 10^-2"], [1500, 0.025]),
        (["−5", "+3", "–2"], [-5, 3, -2]),
        (["\u200f-5 €", "\u200e3 €"], [-5, 3]),
        (["12,34,567", "1,234"], [1234567, 1234]),
        ([*(str(k) for k in range(300, 700, 40)), "1.121", "12.343"], [*range(300, 700, 40), 1121, 12343]),
        ([*(str(k) for k in range(300, 700, 40)), "1,121"], [*range(300, 700, 40), 1121]),
        ([*(str(k) for k in range(1, 12)), "2.125"], [*range(1, 12), 2.125]),  # small numbers say nothing
        ([*(str(k) for k in range(300, 700, 40)), "0.121"], [*range(300, 700, 40), 0.121]),
        (["950", "1,200", "12,345"], [950, 1200, 12345]),
        (["1.234.567", "1.234"], [1234567, 1234]),
        (["1:30:05", "0:05", "59:59"], [5405, 5, 3599]),
        (["2 h 15 min", "45 min", "1h30", "3 h"], [8100, 2700, 5400, 10800]),
        (["2 days 03:00:00", "0 days 00:00:01.5"], [183600, 1.5]),
        (["7:30 am", "12:15 pm", "12:05 am"], [27000, 44100, 300]),
        (["07:30", "23:59"], [27000, 86340]),
        (["1 year", "3 years"], [1, 3]),
        ([datetime.time(7, 30), datetime.time(1, 0)], [27000, 3600]),
        ([1.5, "2"], [1.5, 2]),
        (["€ 12,-", "€ 1.250,–", "€ 3,50"], [12, 1250, 3.5]),
        (["CHF 5.-", "CHF 1’200.—", "CHF 7.25"], [5, 1200, 7.25]),
        (["Rs. 500/-", "Rs. 1,23,456/-"], [500, 123456]),
        (["USD $12", "-USD $3.50"], [12, -3.5]),
        (["$12 MXN", "$1,000.50 MXN"], [12, 1000.5]),
        (["€110.5M", "€565K", "€0"], [110.5e6, 565e3, 0]),
        (["1,2 Mrd. €", "3 Mio. €"], [1.2e9, 3e6]),
        (["1.2K", "3.4M", "950"], [1200, 3.4e6, 950]),
        (["12,50 €/m²", "9 €/m²"], [12.5, 9]),
        (["85,5 m2", "1.250 m2"], [85.5, 1250]),
        (["9.81 m/s^2", "5 m/s^2"], [9.81, 5]),
        (["1,2 W/(m²K)", "0,9 W/(m²K)"], [1.2, 0.9]),
        (["6,5 l/100 km", "7 l/100km"], [6.5, 7]),
        (["5 µg/m³", "7 μg/m³"], [5, 7]),  # U+00B5 and U+03BC
        (["2½", "½", "3,5"], [2.5, 0.5, 3.5]),
        (["2 1/2 cups", "1 cups"], [2.5, 1]),
        (["5'11\"", "6'0\"", "5 ft 7 in"], [71, 72, 67]),
        (["4.5/5", "3/5"], [4.5, 3]),
        (["1,234[3]", "12*", "1,000.5"], [1234, 12, 1000.5]),
        (["~12", "ca. 30", "7"], [12, 30, 7]),
        (["\u200b12.5\ufeff", "3"], [12.5, 3]),
        (["１２.５", "３"], [12.5, 3]),
        (["١٬٠٣٨٫٥", "١٢"], [1038.5, 12]),
        (["7 pm", "11:30 am", "12 am"], [68400, 41400, 0]),
        (["7.30 Uhr", "8 Uhr", "14:00 Uhr"], [27000, 28800, 50400]),
        (["PT4M13S", "PT2H", "P1DT1S"], [253, 7200, 86401]),
        (["5m", "1h 5m", "2 weeks 1 day"], [300, 3900, 1296000]),
        (["2 ч 15 мин", "45 мин"], [8100, 2700]),
        (["59.999", "1:02.330"], [59.999, 62.33]),
        (["1 h 30 min", "2.5 h"], [5400, 9000]),
        (["1:30:00", "2,5 h"], [5400, 9000]),
        (["'85.1", "7.5"], [85.1, 7.5]),  # a spreadsheet's mark of text
        (['"6.2"', "7.5"], [6.2, 7.5]),
        (["63.0 ± 7.0 kg", "5.5±0.25 kg", "4 +/- 1 kg"], [63, 5.5, 4]),
        ([f"#{k}" for k in range(1, 12)] * 2, [*range(1, 12)] * 2),
        (["№ 12", *(f"No. {k}" for k in range(1, 12))] * 2, [12, *range(1, 12)] * 2),
        ([f"#{k}" for k in range(12)] * 2, [*range(12)] * 2),
        (["1st", "2nd", "3rd", *(f"{k}th" for k in range(4, 12))] * 2, [*range(1, 12)] * 2),
    ],
)
def test_numbers_as_people_write_them(cells, values):
    column = read(*cells)
    if values is None:
        assert column.problem is not None
        return
    assert column.problem is None
    np.testing.assert_array_equal(column.values, values)


@pytest.mark.parametrize(
    "cells",
    [["1,234", "5,678"], ["1,5", "2.5", "3,5"], ["1 234", "5,678"], ["$5", "6 €"], ["12 %", "3"], ["1.234", "5,678"]],
)
def test_cells_that_contradict_each_other_or_show_nothing_are_refused(cells):
    assert read(*cells).problem is not None


@pytest.mark.parametrize(
    "cells",
    [
        ["007", "123"],
        ["1st", "2nd"],
        ["1st", "2nd", "3rd"] * 9,
        [f"#{k}" for k in range(4700, 4720)],  # all different: names of orders
        ["16:9", "4:3"],
        ["1.2.3", "4.5.6"],
        ["2-", "3+"],
        ["12 Elm", "5 Oak"],
        ["12", "12B", "14K"],  # houses
        ["7/5", "3/5"],
        ["120/80", "135/90"],
        ["5'", "7'"],  # feet, or minutes
        ["12 A4", "5 B2"],
    ],
)
def test_texts_that_begin_with_digits_are_no_numbers(cells):
    assert read(*cells).odd.any()


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (["1 234", "5 678"], "blanks for thousands: '1 234' is 1234"),
        (["1\u202f234", "5\u202f678"], "blanks for thousands: '1 234' is 1234"),  # not '1\\u202f234'
        (["1'234", "5'678"], "apostrophes for thousands"),
        (["(5)", "7"], "negative in parentheses: '(5)' is -5"),
        (["950", "1,200"], "commas for thousands: '1,200' is 1200"),
        (["1.234", "5.678"], "a decimal point: '1.234' is 1.234"),
        (["7:30", "12:15"], "times in minutes and seconds: '7:30' is 7:30"),
        (["07:30", "12:15"], "times in hours and minutes: '07:30' is 7:30:00"),
        (["5 krona", "7 krona"], "the unit 'krona'"),
        (["4g", "5g"], "the unit 'g'"),
        (["4.5 t", "5.5 t"], "the unit 't'"),
        (["1.2K", "950"], "numbers with K for a power of 10: '1.2K' is 1200"),
        (["~5", "7"], "numbers, though some are approximate: '~5' is 5"),
        (["5*", "4*"], "numbers with notes behind them: '5*' is 5"),
        (["4.5/5", "3/5"], "the unit '/5'"),
        (["5 ± 1", "7"], "without the uncertainties behind them: '5 ± 1' is 5"),
        ([f"#{k}" for k in range(1, 12)], "numbers with a sign before them: '#1' is 1"),
        ([f"{k}th" for k in range(4, 15)], "ordinal numbers: '4th' is 4"),
    ],
)
def test_a_guess_is_asked_about_and_says_how_to_say_otherwise(cells, said):
    encoding, asked = chosen(cells * 15)
    assert isinstance(encoding, Numbers)
    assert asked.startswith("read 'x' as ")
    assert said in asked
    assert "; name it in numeric if that is right, else " in asked
    assert chosen(cells * 15, numeric=("x",))[1] is None
    assert isinstance(chosen(cells * 15, categorical=("x",))[0], Levels)


@pytest.mark.parametrize("cells", [["1,5", "2,25"], ["1.234,50 €", "3 €"], ["5 km", "7.5 km"], ["12 %", "3 %"]])
def test_what_is_certain_is_not_asked_about(cells):
    encoding, asked = chosen(cells * 15)
    assert isinstance(encoding, Numbers)
    assert asked is None


@pytest.mark.filterwarnings("ignore:read 'tour'")
def test_a_model_reads_later_tables_in_the_spelling_of_training(tmp_path):
    y = [0, 1] * 20
    money = [f"{1000 + 37 * k:,}".replace(",", " ") + ",50 €" for k in range(40)]
    with pytest.warns(GuessWarning, match=r"read 'montant' as numbers with blanks for thousands"):
        model = mercer.tabular(mercer.SVC()).fit(pd.DataFrame({"montant": money, "tour": ["07:30", "18:45"] * 20}), y)
    mercer.save(model, tmp_path / "m.mercer")
    model = mercer.load(tmp_path / "m.mercer")
    assert [(one.unit, one.marks) for one in model.columns_] == [("€", ", "), (":", HOURS)]
    plain = pd.DataFrame({"montant": [1000.5, 1037.5], "tour": [27000, 67500]})
    as_texts = pl.DataFrame({"montant": ["1 000,50 €", "1037,50"], "tour": ["7:30", "18:45"]})
    with pytest.raises(ValueError, match="some cells are"):
        model.encode(as_texts)  # one cell has a unit and one has none
    as_texts = pl.DataFrame({"montant": ["1 000,50 €", "1037,50 €"], "tour": ["7:30", "18:45"]})
    np.testing.assert_array_equal(model.encode(as_texts), model.encode(plain))
    # A single mark that may be either is read as in training.
    one = pl.DataFrame({"montant": ["1,037"], "tour": ["7:30"]})
    np.testing.assert_array_equal(
        model.encode(one), model.encode(pd.DataFrame({"montant": [1.037], "tour": [27000.0]}))
    )
    with pytest.raises(ValueError, match=r"the column 'montant' is in \$, but the model was trained on €"):
        model.encode(pl.DataFrame({"montant": ["$5.25"], "tour": ["7:30"]}))


def test_units_of_older_model_files_count():
    """Files that were written before columns had units have them in `reading_` alone."""
    model = mercer.tabular(mercer.SVC()).fit(pd.DataFrame({"x": np.arange(20.0)}), [0, 1] * 10)
    model.reading_ = {"units": "$ x", "decimal": ","}
    as_text, number = pd.DataFrame({"x": ["1,234"]}), pd.DataFrame({"x": [1.234]})
    np.testing.assert_array_equal(model.encode(as_text), model.encode(number))
    with pytest.raises(ValueError, match=r"'x' is in £, but the model was trained on \$"):
        model.encode(pd.DataFrame({"x": ["£5"]}))


def test_percentages_are_not_mixed_up_with_shares():
    table = pd.DataFrame({"share": np.linspace(0.1, 0.9, 20)})
    model = mercer.tabular(mercer.SVC()).fit(table, [0, 1] * 10)
    with pytest.raises(ValueError, match=r"'share' is in %, but the model was trained on numbers alone"):
        model.encode(pd.DataFrame({"share": ["52 %"]}))


@pytest.mark.parametrize(
    ("yes", "no"),
    [
        ("yes", "no"),
        ("ja", "nein"),
        ("oui", "non"),
        ("sí", "no"),
        ("sì", "no"),
        ("ja", "nee"),
        ("sim", "não"),
        ("wahr", "falsch"),
        ("vrai", "faux"),
        ("verdadero", "falso"),
        ("vero", "falso"),
        ("waar", "onwaar"),
    ],
)
def test_truth_values_in_seven_languages(yes, no):
    encoding, asked = chosen([yes, no, yes.upper(), no.capitalize(), yes, no] * 5)
    assert encoding == Levels("x", tuple(sorted([yes, no])), 0, True)
    assert asked is None
    cells = np.array([yes.title(), no.upper(), None], dtype=object)
    assert [encoding.level_of(cell) for cell in cells[:2]] == [yes, no]


@pytest.mark.parametrize(
    ("yes", "no"), [("ja", "nej"), ("tak", "nie"), ("да", "нет"), ("ano", "ne"), ("evet", "HAYIR")]
)
def test_truth_values_in_more_languages(yes, no):
    assert chosen([yes, no, yes.capitalize()] * 10)[0].truth_values


@pytest.mark.parametrize("one", ["1", 1, 1.0])
def test_digits_among_truth_values_are_truth_values(one):
    """In Excel some cells of a column are texts, others numbers."""
    encoding, asked = chosen(["TRUE", "FALSE", one, "0"] * 8)
    assert encoding == Levels("x", ("False", "True"), 0, True)
    assert asked is None
    assert [encoding.level_of(cell) for cell in ("1", 0, "yes")] == ["True", "False", "True"]
    assert isinstance(chosen(["1", "0"] * 8)[0], Numbers)


def test_a_table_in_thousands_is_read_as_in_training():
    model = mercer.tabular(mercer.SVC()).fit(pd.DataFrame({"x": [1000.0 * k for k in range(20)]}), [0, 1] * 10)
    np.testing.assert_array_equal(
        model.encode(pd.DataFrame({"x": ["1.5K", "12.5K"]})), model.encode(pd.DataFrame({"x": [1500, 12500]}))
    )
    with pytest.warns(GuessWarning, match="the unit 'k'"):
        model = mercer.tabular(mercer.SVC()).fit(pd.DataFrame({"x": [f"{k}.5k" for k in range(20)]}), [0, 1] * 10)
    with pytest.raises(ValueError, match="some cells are in k and some"):
        model.encode(pd.DataFrame({"x": ["1.5k", "1.2M", "2.5k"]}))


def test_errors_of_a_spreadsheet_are_missing_values():
    encoding, asked = chosen(["1,234.5", "#DIV/0!", "2.25", "#REF!", *[f"{k}.5" for k in range(30)]])
    assert encoding.n_holes == 2
    assert "holds '#DIV/0!', '#REF!' beside numbers" in asked


@pytest.mark.parametrize("cells", [[f"{k}+" for k in range(1, 20)], [f"徒歩{k}分" for k in range(1, 20)]])
def test_many_levels_that_hold_numbers_are_asked_about(cells):
    encoding, asked = chosen(cells * 5)
    assert isinstance(encoding, Levels)
    assert f"is read as a category, though its {len(cells)} levels hold numbers, such as {min(cells)!r}" in asked
    assert chosen(cells * 5, categorical=("x",))[1] is None
    assert chosen([f"0{k}" for k in range(10, 30)] * 5)[1] is None  # codes


def test_numbers_and_texts_of_one_sheet_are_read_as_texts_alone_would_be():
    """Excel stores 950 as a number where it keeps 12,500 as a text."""
    texts = ["12,500", "950", "116,803", "1234567"]
    np.testing.assert_array_equal(read(*texts).values, [12500, 950, 116803, 1234567])
    np.testing.assert_array_equal(read("12,500", 950, "116,803", 1234567.0).values, [12500, 950, 116803, 1234567])


def test_levels_that_differ_in_capitals_are_asked_about():
    _, asked = chosen(["Rot", "rot", "blau"] * 10)
    assert "holds 'Rot' and 'rot', two levels; write them alike if they are one" in asked


def test_classes_that_differ_in_capitals_are_asked_about(tmp_path, capsys):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=90).round(3), "y": ["oui", "OUI", "non"] * 30})
    said = "'y' holds 'OUI' and 'oui', two classes; write them alike if they are one"
    with pytest.warns(GuessWarning, match=said):
        model = mercer.tabular(mercer.SVC()).fit(frame[["x"]], frame["y"])
    assert model.classes_.tolist() == ["OUI", "non", "oui"]
    assert mercer.easy(frame, target="y").guesses["y"] == said
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert main(["train", str(tmp_path / "t.csv"), str(tmp_path / "t.mercer"), "--target", "y"]) == 0
    assert said in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("make", [list, lambda codes: [f"{code}" for code in codes], np.array])
def test_few_codes_are_categories(make):
    codes = make([5411, 5812, 5541, 4111, 7011, 5999] * 20)
    encoding, asked = chosen(codes)
    assert encoding.levels == ("4111", "5411", "5541", "5812", "5999", "7011")
    assert "holds numbers and is read as a category; name it in categorical if that is right, else in numeric" in asked
    assert isinstance(chosen(codes, numeric=("x",))[0], Numbers)


@pytest.mark.parametrize(
    "cells",
    [
        [1998, 2003, 2004, 2010] * 20,  # years
        [1000, 1200, 1600, 2500] * 20,  # settings
        [101, 102, 103, 104, 106] * 20,  # scores
        [1, 2, 5, 9] * 20,  # counts
        list(range(100, 200)),
    ],
)
def test_quantities_are_no_codes(cells):
    assert isinstance(chosen(cells)[0], Numbers)


def test_rare_levels_share_a_column():
    rng = np.random.default_rng(0)
    cells = [f"card {k}" for k in np.minimum(rng.geometric(0.01, 5000), 900)]
    encoding, asked = chosen(cells)
    counts = pd.Series(cells).value_counts()
    assert len(encoding.levels) == 100
    assert encoding.n_rare == len(counts) - 100
    assert counts[list(encoding.levels)].min() >= counts.drop(list(encoding.levels)).max()
    assert "rare levels beside the 100 most frequent: they share one column; name it in categorical to give" in asked
    X = encoding.encode(np.array([encoding.levels[3], counts.index[-1], "card new"], dtype=object)).toarray()
    np.testing.assert_array_equal(X.argmax(axis=1), [3, 100, 100])
    assert len(chosen(cells, categorical=("x",))[0].levels) == len(counts)


def test_a_column_that_begins_with_digits_never_vanishes_unasked():
    _, asked = chosen([f"{k} Elm Street, {k % 7} floor {k * 13 % 101}x" for k in range(60)])
    assert "most cells begin with a digit, and are no numbers: '0 Elm Street" in asked


@pytest.mark.parametrize("write", ["{} ({}.5)", "10.{}.{}.1", "{}/{}", "1{} 2{} 3{}"])
def test_texts_of_digits_are_not_counted_as_words(write):
    cells = ["unknown", *(write.format(k % 7, k % 11, k) for k in range(77))]
    encoding, asked = chosen(cells)
    assert isinstance(encoding, DroppedColumn)
    assert f"begin with a digit, and are no numbers: {cells[1]!r}" in asked


def test_few_ranks_of_a_later_table_are_numbers_as_in_training(tmp_path):
    frame = pd.DataFrame({"place": [f"#{k % 40 + 1}" for k in range(80)]})
    with pytest.warns(GuessWarning, match="a sign before them"):
        model = mercer.tabular(mercer.SVC()).fit(frame, ["a", "b"] * 40)
    numbers = frame.assign(place=[k % 40 + 1 for k in range(80)])
    same = mercer.tabular(mercer.SVC()).fit(numbers, ["a", "b"] * 40)
    np.testing.assert_array_equal(model.encode(frame[:3]), same.encode(numbers[:3]))
    frame[:1].to_csv(tmp_path / "one.csv", index=False)
    np.testing.assert_array_equal(model.encode(read_frame(tmp_path / "one.csv")), same.encode(numbers[:1]))


@pytest.mark.parametrize(
    ("cell", "day"),
    [
        ("16 Feb 2024", "2024-02-16"),
        ("16-Mar-2024", "2024-03-16"),
        ("16. März 2024", "2024-03-16"),
        ("5 de marzo de 2024", "2024-03-05"),
        ("8 août 2019", "2019-08-08"),
        ("Oct 15, 2021", "2021-10-15"),
        ("December 3rd 2021", "2021-12-03"),
        ("Mon, 16 Feb 2024 10:30", "2024-02-16T10:30"),
        ("May 5 2020 11:12:13", "2020-05-05T11:12:13"),
        ("31 Feb 2024", None),
        ("12 Rooms 2024", None),
        ("Feb 2024", None),
        ("16 Feb 24", None),
    ],
)
def test_dates_with_names_of_months(cell, day):
    expected = None if day is None else np.datetime64(day, "s").astype(float)
    assert parse_seconds(cell, "ISO") == expected


def test_a_column_of_dates_with_names_of_months_is_read_as_the_same_dates(tmp_path):
    days = pd.Timestamp("2021-01-30") + pd.to_timedelta([37 * (k % 50) for k in range(80)], unit="D")
    frame = pd.DataFrame({"when": days})
    written = pd.DataFrame({"when": [f"{day:%b} {day.day}, {day.year}" for day in days]})
    written.to_csv(tmp_path / "t.csv", index=False)
    models = [
        mercer.tabular(mercer.SVC()).fit(table, ["a", "b"] * 40) for table in (frame, read_frame(tmp_path / "t.csv"))
    ]
    np.testing.assert_array_equal(models[0].encode(frame), models[1].encode(written))


def test_messages_name_options_on_a_terminal():
    columns = {
        "codes": [5411, 5812, 5999] * 40,
        "many": [f"{k}+" for k in range(20)] * 6,
        "rare": [f"level {k % 30}{'a' if k % 4 else 'b'}{k // 30}" for k in range(120)] * 1,
        "blank": [f"{k} 000" for k in range(1, 121)],
        "street": [f"{k} Elm {k}" for k in range(120)],
    }
    frame = frame_of(pd.DataFrame({**columns, "number": range(120)}))
    messages = guesses(frame, encodings_for(frame, ColumnOptions(), np.ones(120)), ColumnOptions())
    repeated = frame_of(pd.DataFrame([[1.0, 2.0], [2.0, 1.0]], columns=["x", "x"]))
    messages |= guesses(repeated, encodings_for(repeated, ColumnOptions(), np.ones(2)), ColumnOptions())
    assert len(messages) > 4
    for message in map(as_options, messages.values()):
        assert "--" in message
        assert not re.search(r"\b(in|or|else in) (categorical|numeric|drop|text|only)\b", message), message


@pytest.mark.parametrize("name", ["num_client", "client no", "OrderKey", "Kundennummer", "numéro"])
def test_row_numbers_are_identifiers(name):
    dense = [7000 + (7 * k) % 60 for k in range(60)]
    encoding, asked = chosen(dense, name=name)
    assert isinstance(encoding, DroppedColumn)
    assert "is dropped: an identifier" in asked
    assert isinstance(chosen([300 * cell for cell in dense], name=name)[0], Numbers)  # a count
    assert isinstance(chosen([cell // 2 for cell in dense], name=name)[0], Numbers)
    assert isinstance(chosen(dense, name="year")[0], Numbers)


def test_repeated_names_are_numbered(tmp_path):
    assert distinct_names(["x", "y", "x", "x.1", "x"])[0] == ["x", "y", "x.2", "x.1", "x.3"]
    (tmp_path / "t.csv").write_text("x,y,x\n" + "".join(f"{k},a{k % 3},{k * k}\n" for k in range(30)))
    frames = [
        read_frame(tmp_path / "t.csv"),
        frame_of(pd.DataFrame([[k, f"a{k % 3}", k * k] for k in range(30)], columns=["x", "y", "x"])),
    ]
    for frame in frames:
        assert frame.names == ["x", "y", "x.1"]
        np.testing.assert_array_equal(frame["x.1"], np.arange(30) ** 2)
        with pytest.warns(GuessWarning, match="the column 'x' occurs more than once: this one is called 'x.1'"):
            mercer.tabular(mercer.SVC()).fit(frame, [0, 1] * 15)


def test_the_target_is_read_like_a_column(tmp_path):
    prices = [f"{1000 + 13 * k:,}".replace(",", ".") + ",00 €" for k in range(40)]
    frame = frame_of(pd.DataFrame({"price": prices, "net": ["4g", "5g"] * 20, "x": range(40)}))
    values, unit = frame.target("price")
    np.testing.assert_array_equal(values, 1000 + 13 * np.arange(40))
    assert (unit, frame.unit("price")) == ("€", "€")
    assert frame.target("net")[0].tolist() == ["4g", "5g"] * 20  # names of classes
    np.testing.assert_array_equal(frame.target("net", regression=True)[0], [4, 5] * 20)
    assert frame.drop("price").names == ["net", "x"]


def test_formats_by_ending(tmp_path):
    table = pl.DataFrame({"a": [1.5, None, 3.0], "b": ["x", "1 234,5", None], "c": [datetime.date(2024, 1, 2)] * 3})
    table.write_parquet(tmp_path / "t.parquet")
    table.write_ipc(tmp_path / "t.feather")
    for name in ("t.parquet", "t.feather"):
        frame = read_frame(tmp_path / name)
        np.testing.assert_array_equal(frame["a"], [1.5, np.nan, 3])
        assert frame["b"].tolist() == ["x", "1 234,5", None]
        assert frame["c"].dtype.kind == "M"
    with pytest.raises(ValueError, match=r"t\.json: no table has this ending; mercer reads \.csv, .*\.xlsx"):
        read_frame(tmp_path / "t.json")
    with pytest.raises(ValueError, match=r"sheet='A' is for Excel files, but .*t\.parquet is none"):
        read_frame(tmp_path / "t.parquet", sheet="A")


def test_excel(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    pytest.importorskip("python_calamine")
    book = openpyxl.Workbook()
    sheet = book.active
    for row in [
        ["a", "when", "at", "how long", "text", "a"],
        [1, datetime.datetime(2024, 1, 2), datetime.time(7, 30), datetime.timedelta(hours=30), "1 234,5", True],
        [2.5, None, None, None, None, None],
        [None, datetime.datetime(2024, 1, 3), datetime.time(8), datetime.timedelta(minutes=1), "7", False],
    ]:
        sheet.append(row)
    other = book.create_sheet("other")
    other.append(["z"])
    other.append([1])
    book.save(tmp_path / "t.xlsx")
    with pytest.warns(GuessWarning, match="several sheets: read 'Sheet', and not 'other'"):
        frame = read_frame(tmp_path / "t.xlsx")
    assert frame.names == ["a", "when", "at", "how long", "text", "a.1"]
    np.testing.assert_array_equal(frame["a"], [1, 2.5, np.nan])
    np.testing.assert_array_equal(frame.number_column("at").values, [27000, np.nan, 28800])
    np.testing.assert_array_equal(frame.number_column("how long").values, [108000, np.nan, 60])
    np.testing.assert_array_equal(frame.number_column("text").values, [1234.5, np.nan, 7])
    assert read_frame(tmp_path / "t.xlsx", sheet="other").names == ["z"]
    with pytest.raises(ValueError, match=r"has no sheet 'none'; it has 'Sheet', 'other'"):
        read_frame(tmp_path / "t.xlsx", sheet="none")
    (tmp_path / "bad.xlsx").write_bytes(b"no zip")
    with pytest.raises(ValueError, match=r"bad\.xlsx is no workbook that can be read"):
        read_frame(tmp_path / "bad.xlsx")


def test_skrub_prepares_tables_for_a_machine():
    import skrub
    from sklearn.pipeline import make_pipeline

    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "age": rng.integers(20, 70, 200),
            "plan": rng.choice(["basic", "plus", "pro"], 200),
            "since": pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, 200), unit="D"),
        }
    )
    y = np.where((table["age"] > 45) ^ (table["plan"] == "pro"), "yes", "no")
    model = make_pipeline(skrub.TableVectorizer(), mercer.SVC(gamma="scale")).fit(table, y)
    assert set(model.predict(table)) <= {"yes", "no"}
    assert model[-1].certificate_.relative_gap < 0.01
    assert model.get_params()["svc"].C == 1.0


def test_excel_on_a_terminal(tmp_path, monkeypatch, capsys):
    import openpyxl

    monkeypatch.chdir(tmp_path)
    book = openpyxl.Workbook()
    book.active.append(["distance", "fare"])
    for k in range(60):
        book.active.append([f"{k / 4} km", f"{3 + k},50 €"])
    book.save("t.xlsx")
    assert main(["train", "t.xlsx", "--target", "fare"]) == 0
    page = " ".join(capsys.readouterr().out.split())
    assert "distance in km, fare in €: read as numbers, without the unit" in page
    assert main(["predict", "t.xlsx", "t.mercer", "--sheet", "Sheet"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "distance,fare,predicted"
    assert float(lines[21].rpartition(",")[2]) == pytest.approx(23.5, abs=3)
    assert main(["predict", "t.xlsx", "t.mercer", "--sheet", "none"]) == 1
    assert "t.xlsx has no sheet 'none'; it has 'Sheet'" in capsys.readouterr().err
