"""Slips of a first hour with tables: names, order of files, options without a value, a model of another target."""

import json
import re

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


def test_a_picture_without_features_takes_columns_that_an_axis_can_show(folder, monkeypatch, capsys):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.setattr(pyplot, "close", lambda figure: None)
    rng = np.random.default_rng(1)
    village, effect = rng.integers(0, 50, 300), 5 * rng.normal(size=50)
    a, b = rng.normal(size=(2, 300))
    names = [x + y for x in "abcdefghij" for y in "aeiou"]
    rows = [f"{names[v]},{p:.3f},{q:.3f},{effect[v] + p + q:.3f}" for v, p, q in zip(village, a, b, strict=True)]
    (folder / "t.csv").write_text("\n".join(["village,a,b,y", *rows]))
    run("train", "t.csv", "--target", "y", "-q")
    run("plot", "t.csv", "t.mercer", "p.png")
    axes = pyplot.gcf().axes[0]
    assert {axes.get_xlabel(), axes.get_ylabel()} == {"a", "b"}
    run("train", "t.csv", "--target", "y", "--only", "village,a", "-q")
    told = failing(capsys, "plot", "t.csv", "t.mercer", "p.png")
    assert "needs two columns of numbers, dates or at most 40 categories, but the model uses only one, 'a'" in told


def test_remedies_for_numbers_among_words_and_for_codes_are_options(folder, capsys):
    rows = [f"{k if k % 3 else 'unknown'},{k % 7},{10000 + 37 * k if k else '00123'},{k % 2}" for k in range(60)]
    (folder / "t.csv").write_text("\n".join(["a,b,c,y", *rows]))
    told = failing(capsys, "train", "t.csv", "--target", "y", "--only", "a,b")
    assert told.endswith("or name the column with --numeric, --categorical or --drop")
    run("train", "t.csv", "--target", "y", "--numeric", "a")
    told = " ".join(capsys.readouterr().out.split())
    assert "such as '00123'; name it with --drop if that is right, else with --numeric, --categorical or --text" in told


def test_a_table_that_does_not_exist(folder, capsys):
    assert "can't open houses.cvs: No such file" in failing(capsys, "train", "houses.cvs", "--target", "prix")


@pytest.mark.parametrize("name", ["out.xlsx", "out.parquet", "out.csv.gz"])
@pytest.mark.parametrize("command", ["predict", "explain"])
def test_the_output_is_text_whatever_its_name_promises(command, name, houses, folder, capsys):
    told = failing(capsys, command, "houses.csv", "houses.mercer", name)
    assert f"{name}: the output is text, not a .{name.rpartition('.')[2]} file; for a table name a .csv file" in told
    assert not (folder / name).exists()


@pytest.mark.parametrize("alpha", ["2", "0", "1", "-0.1", "nan"])
def test_alpha_is_a_share(alpha, houses, capsys):
    told = failing(capsys, "predict", "houses.csv", "houses.mercer", f"--alpha={alpha}", code=2)
    assert f"argument --alpha: {alpha} is not between 0 and 1" in told


def test_alpha_is_a_number(houses, capsys):
    told = failing(capsys, "predict", "houses.csv", "houses.mercer", "--alpha", "few", code=2)
    assert "argument --alpha: 'few' is not a number between 0 and 1" in told


def test_alpha_is_refused_where_there_are_no_intervals(houses, folder, capsys):
    told = failing(capsys, "predict", "houses.csv", "houses.mercer", "answers.csv", "--alpha", "0.2")
    assert "--alpha is for the intervals of a regression on a table, but no intervals are written here" in told
    assert not (folder / "answers.csv").exists()
    run("train", "houses.csv", "--target", "prix", "-b", "1", "-q")
    run("predict", "houses.csv", "houses.mercer", "answers.csv", "--alpha", "0.2")
    assert "about 80% of new rows" in capsys.readouterr().out


def test_a_search_is_compared_with_the_most_frequent_class(folder, capsys):
    (folder / "rare.csv").write_text(
        "a,left\n" + "".join(f"{i % 7},{'yes' if i % 10 == 3 else 'no'}\n" for i in range(50))
    )
    run("tune", "rare.csv", "--target", "left", "-log2c", "0,0,1", "-log2g", "null")
    assert "accuracy 90.0% (always predicting 'no': 90.0%)" in capsys.readouterr().out


def test_the_next_command_names_the_model(folder, capsys):
    x = np.random.default_rng(0).normal(size=60).round(3)
    (folder / "a b.csv").write_text("x,kind\n" + "".join(f"{a},{'high' if a > 0 else 'low'}\n" for a in x))
    run("easy", "a b.csv", "--target", "kind")
    told = " ".join(capsys.readouterr().out.split())
    assert (
        "next: predict new rows with mercer predict NEW.csv 'a b.mercer'; mercer explain 'a b.mercer' NEW.csv" in told
    )


@pytest.fixture
def misplaced(folder):
    """A line whose target has a misplaced decimal point in three of 300 rows."""
    rng = np.random.default_rng(0)
    x = rng.uniform(1, 10, 300)
    y = 10 * x + rng.normal(size=300)
    y[[12, 80, 161]] *= 100
    (folder / "line.csv").write_text("x,y\n" + "".join(f"{a},{b}\n" for a, b in zip(x, y, strict=True)))


def test_gross_outliers_are_not_blamed_on_the_columns(misplaced, capsys):
    run("train", "line.csv", "--target", "y")
    told = " ".join(capsys.readouterr().out.split())
    assert "R² 0.9971 on the held-out rows that are not outlying, 0.9975 on the training rows that are not" in told
    assert "check 'y' where it is far off, such as 8,653.58" in told
    assert "mercer easy names such rows" in told
    assert "hardly predict" not in told
    run("train", "line.csv", "--target", "y", "--json")
    facts = json.loads(capsys.readouterr().out)
    assert facts["score"]["test"] < 0 < 0.99 < facts["without_outliers"]["r2"]


def test_columns_are_blamed_for_a_heavy_tail_and_for_noise(folder, capsys):
    rng = np.random.default_rng(0)
    x, tail = rng.normal(size=300), rng.standard_cauchy(size=300)
    (folder / "t.csv").write_text("x,y\n" + "".join(f"{a},{b}\n" for a, b in zip(x, tail, strict=True)))
    run("train", "t.csv", "--target", "y")
    assert "these columns hardly predict 'y'" in " ".join(capsys.readouterr().out.split())


def test_dates_written_as_numbers_are_asked_about(folder, capsys):
    (folder / "t.csv").write_text("day,y\n" + "".join(f"{20210301 + k},{'pq'[k % 2]}\n" for k in range(30)))
    run("train", "t.csv", "--target", "y")
    told = " ".join(capsys.readouterr().out.split())
    assert "dates such as 20210301; name it with --numeric if that is right, else write 2021-03-01" in told


@pytest.mark.parametrize("seed", ["-1", "4294967296", "1.5"])
@pytest.mark.parametrize("command", ["train", "easy", "tune"])
def test_a_seed_is_an_integer_that_random_generators_take(command, seed, houses, capsys):
    told = failing(capsys, command, "houses.csv", "--target", "prix", f"--seed={seed}", code=2)
    assert f"argument --seed: {seed} is not an integer from 0 to 4294967295" in told


@pytest.mark.parametrize("resolution", ["0", "1", "-5", "10001"])
def test_a_picture_has_some_points(resolution, houses, capsys):
    pytest.importorskip("matplotlib")
    told = failing(capsys, "plot", "houses.csv", "houses.mercer", "p.png", f"--resolution={resolution}", code=2)
    assert f"argument --resolution: {resolution} is not an integer from 2 to 10000" in told


def test_inspect_says_whether_there_are_intervals(houses, capsys):
    run("inspect", "houses.mercer")
    assert re.search(r"^intervals +no$", capsys.readouterr().out, re.MULTILINE)
    run("train", "houses.csv", "--target", "prix", "-b", "1", "-q")
    run("inspect", "houses.mercer")
    assert re.search(r"^intervals +yes$", capsys.readouterr().out, re.MULTILINE)
