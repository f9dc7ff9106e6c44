"""Slips of a first hour with tables: names, order of files, options without a value, a model of another target."""

import numpy as np
import pytest

import mercer
from cli.commands import run

pytestmark = pytest.mark.usefixtures("folder")


@pytest.fixture
def houses(folder):
    """A table with euros, a year and missing cells, and a model of its prices."""
    rng = np.random.default_rng(0)
    lines = []
    for i in range(120):
        area, year = 40 + i, rng.integers(1900, 2000)
        price = 2000 * area + rng.normal(scale=5000)
        shown = "" if i % 9 == 4 else year
        lines.append(f"{area} m²;{shown};{'abcd'[i % 4]};{price:.2f} €".replace(".", ","))
    (folder / "houses.csv").write_text("\n".join(["surface;année;ville;prix", *lines, ""]), encoding="utf-8")
    run("train", "houses.csv", "--target", "prix", "-q")


def failing(capsys, *words, code=1):
    run(*words, code=code)
    return " ".join(capsys.readouterr().err.split())


def test_the_target_is_misspelt_or_named_as_a_file(houses, folder, capsys):
    assert "no column 'Prix' (did you mean 'prix'?)" in failing(capsys, "easy", "houses.csv", "--target", "Prix")
    assert "name the column to predict with --target prix" in failing(capsys, "easy", "houses.csv", "prix")
    with pytest.raises(ValueError, match=r"no column 'Prix' \(did you mean 'prix'\?\)"):
        mercer.easy("houses.csv", target="Prix")


def test_a_column_of_training_has_another_name(houses, folder, capsys):
    text = (folder / "houses.csv").read_text(encoding="utf-8").replace("surface", "surface_m2")
    (folder / "new.csv").write_text(text, encoding="utf-8")
    assert "if 'surface_m2' is 'surface' by another name, rename it" in failing(
        capsys, "predict", "new.csv", "houses.mercer"
    )


@pytest.mark.parametrize("command", ["predict", "explain", "plot"])
def test_data_and_model_in_either_order(command, houses, folder):
    if command == "plot":
        pytest.importorskip("matplotlib")
    files = ["houses.csv", "houses.mercer"]
    outputs = ["first.png", "second.png"]
    for names, output in zip((files, files[::-1]), outputs, strict=True):
        run(command, *names, output)
    first, second = ((folder / output).read_bytes() for output in outputs)
    assert first
    assert first == second


def test_inspect_takes_them_in_either_order(houses, capsys):
    told = []
    for names in (["houses.mercer", "houses.csv"], ["houses.csv", "houses.mercer"]):
        run("inspect", *names)
        told.append(capsys.readouterr().out)
    assert "houses.mercer" in told[0].splitlines()[0]
    assert told[0].splitlines()[:8] == told[1].splitlines()[:8]  # then measured times


def test_an_option_without_its_value_takes_no_file_for_it(houses, folder, capsys):
    before = (folder / "houses.csv").read_bytes()
    told = failing(capsys, "easy", "houses.csv", "houses.csv", "--target", "prix", "--html", code=2)
    assert "--html: expected one argument" in told
    assert (folder / "houses.csv").read_bytes() == before


@pytest.mark.parametrize("command", ["easy", "train", "tune"])
def test_a_model_of_another_target_is_kept(command, houses, folder, capsys):
    before = (folder / "houses.mercer").read_bytes()
    told = failing(capsys, command, "houses.csv", "--target", "ville")
    assert "houses.mercer contains a model that predicts 'prix'" in told
    assert "name another file with -o" in told
    assert (folder / "houses.mercer").read_bytes() == before
    run("train", "houses.csv", "--target", "ville", "-q", "-o", "houses.mercer")
    assert mercer.load("houses.mercer").classes_.tolist() == list("abcd")


def test_the_target_is_different_in_nearly_every_row(folder, capsys):
    lines = [f"{i},message {i}" for i in range(40)]
    (folder / "t.csv").write_text("\n".join(["x,text", *lines, ""]))
    told = failing(capsys, "easy", "t.csv", "--target", "text")
    assert "40 different values in 40 rows" in told
    assert "choose another target" in told


def test_what_the_new_columns_are_and_how_cells_are_shown(houses, folder, capsys):
    run("train", "houses.csv", "--target", "prix", "-b", "1", "-q", "-o", "b.mercer")
    text = (folder / "houses.csv").read_text(encoding="utf-8")
    rows = [line.rpartition(";")[0] for line in text.splitlines()]
    (folder / "new.csv").write_text("\n".join([*rows[:1], *rows[5:9], ""]), encoding="utf-8")
    run("predict", "new.csv", "b.mercer", "out.csv", "--alpha", "0.2")
    assert "low and high enclose the true values of about 80% of new rows." in capsys.readouterr().out
    run("explain", "b.mercer", "new.csv")
    assert "année (missing)" in " ".join(capsys.readouterr().out.split())
    run("train", "houses.csv", "--target", "prix", "--verbose")
    told = " ".join(capsys.readouterr().out.split())
    assert "13 missing values filled with the median 19" in told  # a year has no mark between thousands


def test_pictures_have_the_units_of_their_columns(houses, folder, monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.setattr(pyplot, "close", lambda figure: None)
    run("plot", "houses.csv", "houses.mercer", "p.png", "--features", "surface", "ville")
    area, bar = pyplot.gcf().axes[:2]
    assert (area.get_xlabel(), area.get_ylabel()) == ("surface, m²", "ville")
    assert bar.get_ylabel().endswith(", €")
    assert "200,000" in [tick.get_text() for tick in bar.get_yticklabels()]
    run("explain", "houses.mercer", "houses.csv", "--plot", "s.png", "--quiet")
    assert pyplot.gcf().axes[0].get_xlabel() == "Shapley value, €"
