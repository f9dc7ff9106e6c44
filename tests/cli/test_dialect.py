"""CSV files as programs write them: separators, decimal marks and encodings, read off the file, or the flag named."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import mercer
from mercer.cli.data import read_data
from mercer.cli.main import main
from mercer.tables import dialect
from mercer.tables.choice import ColumnOptions, encodings_for
from mercer.tables.dialect import Dialect

pytestmark = pytest.mark.usefixtures("folder")


def read(content, **asked):
    with open("t.csv", "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode())
    return read_data("t.csv", target="y", as_frame=True, dialect=Dialect(**asked))


def numbers(content, **asked):
    frame = read(content, **asked).X
    return encodings_for(frame, ColumnOptions(), np.ones(len(frame)))[0].values(frame["x"]).tolist()


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_separators(mark):
    data = read(f"x{mark}z{mark}y\n1{mark}a b{mark}u\n2{mark}c: d{mark}v\n")
    assert data.X.names == ["x", "z"]
    assert data.dialect.separator == mark


def test_a_mark_inside_the_cells_is_no_separator():
    data = read('x;"size, cm";y\n1;"2,5; or so";a\n2;3,5;b\n')
    assert data.X["size, cm"].tolist() == ["2,5; or so", "3,5"]
    with pytest.raises(ValueError, match=r"may be separated by ',' or ';'; say which with --separator"):
        read("a,b;x,y\n1,2;3,4\n")
    assert read("x,y;y\n1,2;3\n", separator=";").X.number_column("x,y").values.tolist() == [1.2]


def test_an_unusual_separator_is_remembered(folder, capsys):
    lines = ["x:z:y", *(f"{i}:{i % 3}:{'ab'[i % 2]}" for i in range(40))]
    (folder / "t.csv").write_text("\n".join([*lines, ""]))
    assert main(["train", "t.csv", "--target", "y"]) == 1
    assert main(["train", "t.csv", "--target", "y", "--separator", ":", "-q"]) == 0
    assert main(["predict", "t.csv", "t.mercer", "out"]) == 0
    answers = (folder / "out").read_text().split()
    assert answers[0] == "x:z:y:predicted"
    assert [line.rpartition(":")[0] for line in answers] == lines


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1,5", "-2,25", "3"], [1.5, -2.25, 3]),
        (["1.234,5", "1.000.000,0", "7"], [1234.5, 1e6, 7]),
        (["0,123", "1,234", "2,345"], [0.123, 1.234, 2.345]),  # no thousands begin with 0
        (["1,234.5", "1,000,000.0", "7"], [1234.5, 1e6, 7]),
        (["1.5", "2.25", "3"], [1.5, 2.25, 3]),
        (["1.234", "2.345", "3.456"], [1.234, 2.345, 3.456]),
        (["1e-3", "2.5E4", ".5"], [1e-3, 2.5e4, 0.5]),
    ],
)
def test_decimal_marks(cells, expected):
    assert numbers("x;y\n" + "".join(f"{cell};a\n" for cell in cells)) == expected


def test_what_may_be_thousands_needs_another_column_or_the_flag():
    text = "x;z;y\n1,234;{};a\n5,678;{};b\n"
    with pytest.raises(
        ValueError,
        match=r"'x' holds '1,234': its comma or point may be a decimal mark or separate thousands; say which",
    ):
        numbers(text.format("u", "v"))
    assert numbers(text.format("0,5", "0,7")) == [1.234, 5.678]
    assert numbers(text.format("0.5", "0.7")) == [1234, 5678]
    assert numbers(text.format("u", "v"), decimal=",") == [1.234, 5.678]
    assert numbers(text.format("u", "v"), decimal=".") == [1234, 5678]
    data = read_data("t.csv", target="y", as_frame=True, training_dialect=Dialect(decimal=","))
    assert data.X.number_column("x").values.tolist() == [1.234, 5.678]


@pytest.mark.parametrize("text", ["2024-03-01", "01.03.2024", "1.2.3", "a,b", "007,5x"])
def test_what_is_no_number_stays_as_it_is(text):
    assert read(f"x;y\n{text};a\n{text};b\n").X["x"].tolist() == [text, text]


@pytest.mark.parametrize(
    ("encoding", "word"),
    [("latin-1", "Gießen"), ("cp1252", "5 €"), ("utf-8-sig", "Łódź"), ("utf-16", "мир"), ("ascii", "Hof")],
)
def test_encodings(encoding, word):
    data = read(f"x,stadt,y\n1,{word},a\n2,x,b\n".encode(encoding))
    assert data.X["stadt"].tolist() == [word, "x"]
    assert data.X.names == ["x", "stadt"]


@pytest.mark.parametrize(("encoding", "word"), [("cp1251", "Москва"), ("shift_jis", "東京"), ("cp1250", "ľŽ")])
def test_other_encodings_are_asked_for(encoding, word):
    content = f"x,z,y\n1,{word},a\n2,x,b\n".encode(encoding)
    with pytest.raises(ValueError, match=r"t.csv:2: byte 0x.. is not UTF-8; name the encoding with --encoding"):
        read(content)
    assert read(content, encoding=encoding).X["z"].tolist() == [word, "x"]
    with pytest.raises(ValueError, match="knows no encoding 'latin-17'"):
        read(content, encoding="latin-17")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--separator", "ab"], "'ab' is not one character, nor one of tab"),
        (["--decimal", ";"], "invalid choice: ';'"),
        (["--missing", "fill"], "invalid choice: 'fill'"),
        (["--class-weight", "balanced", "--machine", "nu_svc"], "--class-weight balanced is for c_svc"),
    ],
)
def test_wrong_flags(words, message, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["train", "t.csv", "--target", "y", *words])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def table(folder):
    rng = np.random.default_rng(0)
    lines = ["id,x,code,note,y"]
    for i in range(80):
        x, code = rng.normal(), rng.integers(1, 5)
        note = f"{'good' if code > 2 else 'poor'} case {i}"
        lines.append(f"{i},{'' if i % 8 == 0 else round(x, 3)},{code},{note},{'ab'[int(code > 2)]}")
    (folder / "t.csv").write_text("\n".join([*lines, ""]))


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ([], {"id": "dropped: an identifier", "x": "number, standardised;", "note": "dropped: 80 different texts"}),
        (["--drop", "x,code", "--text", "note"], {"x": "dropped: as requested", "note": "text, counts of 3 words"}),
        (
            ["--only", "code", "--only", "x"],
            {"id": "dropped: as requested", "code": "category", "note": "dropped: as requested"},
        ),
        (["--categorical", "code"], {"code": "category, one column for each of 4 levels (1, 2, 3, …)"}),
        (["--missing", "drop"], {"x": "number, standardised"}),
        (["--no-standardise", "--numeric", "code"], {"code": "number"}),
    ],
)
def test_flags_for_columns(flags, told, folder, capsys):
    table(folder)
    assert main(["train", "t.csv", "--target", "y", "--json", *flags]) == 0
    columns = json.loads(capsys.readouterr().out)["columns"]
    for name, start in told.items():
        assert columns[name].startswith(start), columns[name]
    assert main(["train", "t.csv", "--target", "y", *flags]) == 0
    page = capsys.readouterr()
    flat = " ".join(page.out.split())
    assert all(f"{name} {what}" in flat for name, what in columns.items())
    assert max(map(len, page.out.splitlines())) <= 100
    assert page.err == ""


def test_the_truth_is_found_by_itself(folder, capsys):
    table(folder)
    assert main(["train", "t.csv", "--target", "y", "-q", "--drop", "id", "--drop", "note"]) == 0
    assert main(["predict", "t.csv", "t.mercer", "out"]) == 0
    assert "Accuracy = 100% (80/80)" in capsys.readouterr().out
    read = dict(mercer.load("t.mercer").reading_)
    assert len(read.pop("digest")) == 24
    assert read == {"separator": ",", "decimal": ".", "encoding": "utf-8", "target": "y"}


def test_levels_that_training_had_not_are_told(folder, capsys):
    rows = [f"{i % 7},{'uvw'[i % 3]},{'ab'[i % 3 == 0]}" for i in range(60)]
    (folder / "t.csv").write_text("\n".join(["x,kind,y", *rows, ""]))
    assert main(["train", "t.csv", "--target", "y", "-q"]) == 0
    (folder / "new.csv").write_text("kind,x\nu,1\nz,2\n,3\n")
    assert main(["predict", "new.csv", "t.mercer", "out"]) == 0
    assert "Column 'kind' contains 'z', which did not occur in training" in capsys.readouterr().out
    assert main(["predict", "t.csv", "t.mercer", "out"]) == 0
    assert "training did not have" not in capsys.readouterr().out


def test_pictures_and_onnx_of_tables(folder, capsys):
    """A regression on numbers is drawn and exported in its own unit; a category is told to be in the way."""
    pytest.importorskip("matplotlib")
    pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    lines = [f"{i},{a},{b},{1e5 + 1e4 * a},{'uv'[i % 2]}" for i, (a, b) in enumerate(X)]
    (folder / "t.csv").write_text("\n".join(["id,a,b,price,kind", *lines, ""]))
    words = ["train", "t.csv", "--target", "price", "--machine", "epsilon_svr", "-q", "--drop", "id"]
    assert main([*words, "--drop", "kind"]) == 0
    assert main(["plot", "t.csv", "t.mercer", "t.png", "--features", "a", "b"]) == 0
    assert main(["convert", "t.mercer", "t.onnx"]) == 0
    answers = onnxruntime.InferenceSession("t.onnx").run(None, {"X": X})[0].ravel()
    assert main(["predict", "t.csv", "t.mercer", "out", "--plain"]) == 0
    np.testing.assert_allclose(answers, np.loadtxt("out"), rtol=1e-9)
    assert main(words) == 0
    capsys.readouterr()
    assert main(["plot", "t.csv", "t.mercer", "t.png"]) == 0
    assert main(["convert", "t.mercer", "t.onnx"]) == 1
    assert (
        "takes rows of numbers without missing values, but the column 'kind' is a category" in capsys.readouterr().err
    )


def test_parquet_by_polars(folder, capsys):
    pl = pytest.importorskip("polars")
    table(folder)
    pl.read_csv("t.csv").write_parquet("t.parquet")
    for name in ("t.csv", "t.parquet"):
        assert main(["train", name, name.replace(".", "_") + ".mercer", "--target", "y", "--json"]) == 0
    one, other = (mercer.load(f"t_{form}.mercer").estimator_ for form in ("csv", "parquet"))
    np.testing.assert_array_equal(one.dual_coef_, other.dual_coef_)


# --- a column of numbers with cells that are none ---------------------------------------------------------------------


def areas(mark, odd, separator=";", unit=""):
    """Two hundred areas with two odd cells among them, the first in row 8; and prices that follow them."""
    rng = np.random.default_rng(0)
    area = rng.uniform(20, 200, 200).round(1)
    cells = [f"{a}{unit}".replace(".", mark) for a in area]
    cells[7] = cells[100] = odd
    rows = [
        separator.join((cell, str(i % 5), str(int(1000 * a))))
        for i, (cell, a) in enumerate(zip(cells, area, strict=True))
    ]
    return "\n".join([separator.join(("area", "rooms", "price")), *rows, ""])


def price(folder, text, *flags):
    (folder / "t.csv").write_text(text, encoding="utf-8")
    return main(["train", "t.csv", "--target", "price", "--machine", "epsilon_svr", "--C", "10", "--json", *flags])


@pytest.mark.parametrize(
    ("mark", "flags", "unit"),
    [(".", [], ""), (",", [], ""), (",", ["--decimal", ","], ""), (",", [], " €"), (".", [], " %")],
)
@pytest.mark.parametrize("odd", ["n2k", "7/5"])
def test_an_odd_cell_in_a_column_of_numbers_is_told(mark, flags, unit, odd, folder, capsys):
    assert price(folder, areas(mark, odd, unit=unit), *flags) == 1
    told = capsys.readouterr().err
    assert f"t.csv: row 8 of the column 'area' holds '{odd}' (and 1 more such rows), but 198 rows hold numbers" in told
    assert "--na names marks of missing values" in told


@pytest.mark.parametrize(("mark", "unit"), [(".", ""), (",", ""), (",", " €")])
@pytest.mark.parametrize("odd", ["n/k", "-"])
def test_a_word_in_a_column_of_numbers_is_a_hole_and_asked_about(mark, unit, odd, folder, capsys):
    assert price(folder, areas(mark, odd, unit=unit)) == 0
    assert "2 missing values filled" in json.loads(capsys.readouterr().out)["columns"]["area"]
    assert main(["train", "t.csv", "--target", "price"]) == 0
    page = capsys.readouterr()
    words = " ".join(page.out.split())
    assert f"please check the column 'area' holds '{odd}' beside numbers: read as missing values" in words
    assert "with --numeric if that is right, else with --categorical" in " ".join(page.out.split())
    assert page.err == ""
    assert main(["train", "t.csv", "--target", "price", "--numeric", "area"]) == 0
    assert "asked" not in capsys.readouterr().out


@pytest.mark.parametrize(("unit", "odd"), [("", "57.9"), (" €", "$5"), (" €", "5")])
def test_two_spellings_of_numbers_in_a_column_are_told(unit, odd, folder, capsys):
    """Nobody knows whether 57.9 among decimal commas, or 5 dollars among euros, is what it seems."""
    assert price(folder, areas(",", odd, unit=unit)) == 1
    assert "of the column 'area' holds '" in (told := capsys.readouterr().err)
    assert re.search(r"some cells .* and some .*; write all (with one|in one unit), or name", told)
    assert price(folder, areas(",", odd, unit=unit), "--drop", "area") == 0


def test_marks_of_holes_are_named_and_remembered(folder, capsys):
    text = areas(",", "k.A.").replace(";1;", ";-;")
    assert price(folder, text, "--na", "k.A.,-") == 0
    found = json.loads(capsys.readouterr().out)
    assert "2 missing values filled" in found["columns"]["area"]
    assert "missing values filled" in found["columns"]["rooms"]
    assert found["read_as"]["na"] == "k.A.\n-"
    assert main(["predict", "t.csv", "t.mercer", "out", "--plain"]) == 0
    assert len((folder / "out").read_text().splitlines()) == 200
    emptied = text.replace("k.A.", "").replace(";-;", ";;")
    (folder / "t.csv").write_text(emptied)
    assert main(["predict", "t.csv", "t.mercer", "again", "--plain"]) == 0
    assert (folder / "out").read_text() == (folder / "again").read_text()


def test_a_mark_of_holes_in_the_target_is_an_empty_cell(folder, capsys):
    (folder / "t.csv").write_text("x,y\n1,a\n2,-\n3,b\n")
    assert main(["train", "t.csv", "--target", "y", "--na", "-"]) == 1
    assert "row 2 of the column 'y' is empty" in capsys.readouterr().err


def test_marks_of_holes_in_parquet(folder, capsys):
    pl = pytest.importorskip("polars")
    cells = [str(i) if i % 10 else "n2k" for i in range(60)]
    pl.DataFrame({"x": cells, "z": range(60), "y": ["a", "b"] * 30}).write_parquet("t.parquet")
    assert main(["train", "t.parquet", "--target", "y", "--json"]) == 1
    assert "row 1 of the column 'x' holds 'n2k'" in capsys.readouterr().err
    assert main(["train", "t.parquet", "--target", "y", "--json", "--na", "n2k"]) == 0
    assert "missing values filled" in json.loads(capsys.readouterr().out)["columns"]["x"]


def test_the_page_lists_every_mark_of_a_missing_value():
    page = (Path(__file__).parents[2] / "docs/tables.md").read_text(encoding="utf-8")
    [sentence] = re.findall(
        r"A missing value is an empty cell, (.*?)\sor\sthe frame's own missing value", page, re.DOTALL
    )
    assert set(re.findall(r"`([^`]+)`", sentence)) == dialect.MISSING - {""} | {"?"}
