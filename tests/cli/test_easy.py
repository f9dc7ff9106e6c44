"""``mercer easy``, ``explain``, ``predict`` and ``plot`` on tables as people have them: one command each."""

import csv
import html
import io
import json
import os
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import mercer
from cli.commands import on_a_terminal
from mercer.cli.explain import describe_cell
from mercer.cli.folds import split_folds
from mercer.cli.main import main

pytestmark = [
    pytest.mark.usefixtures("folder"),
    pytest.mark.filterwarnings("ignore::mercer.runtime.errors.GuessWarning"),
]


def write(folder, n=80, name="t.csv", seed=0):
    """A German table: an id, decimal commas with odd cells, a date, a category with holes, sentences and a label."""
    rng = np.random.default_rng(seed)
    words = ["Rechnung", "Vertrag", "Anruf", "kaputt", "danke", "bitte", "schnell", "teuer", "gut", "alt", "neu", "nie"]
    rows = [["Kunden-Nr", "Fläche", "seit", "Tarif", "Notiz", "gekündigt"]]
    for i in range(n):
        area, plan = rng.uniform(20, 90), rng.choice(["S", "M", "L"])
        said = rng.choice(words, 6)
        left = area / 40 + (plan == "L") + 2 * ("teuer" in said) + 0.5 * rng.normal() > 2.3
        cell = "k.A." if i % 20 == 3 else f"{area:.2f} m".replace(".", ",").removesuffix(" m")
        day = f"{1 + i % 28:02d}.{1 + i % 12:02d}.{2019 + i % 4}"
        rows.append([str(1000 + i), cell, day, "" if i % 11 == 5 else plan, " ".join(said), "ja" if left else "nein"])
    (folder / name).write_text("\n".join(";".join(row) for row in rows) + "\n", encoding="cp1252")
    return rows


@pytest.fixture(scope="module")
def kept():
    """What the command left behind and printed, once it was run: it takes a second."""
    return {}


@pytest.fixture
def made(folder, capsys, kept):
    rows = write(folder)
    if not kept:
        assert main(["easy", "t.csv", "--target", "gekündigt"]) == 0
        kept["model"], kept["page"] = (folder / "t.mercer").read_bytes(), capsys.readouterr()
    (folder / "t.mercer").write_bytes(kept["model"])
    return rows, kept["page"]


def test_one_command(made, capsys):
    rows, page = made
    assert page.err == ""
    assert max(map(len, page.out.splitlines())) <= 100
    flat = " ".join(page.out.split())
    for told in (
        "in short 1 accuracy",
        "5 next:",
        "judged by nested cross-validation",
        "what matters",
        "Kunden-Nr dropped: an identifier",
        "Fläche number, standardised; 4 missing values filled with the median",
        "seit date, day first",
        "Tarif category",
        "Notiz text, counts of 12 words",
        "please check the column 'Fläche' holds 'k.A.' beside numbers: read as missing values; name it with --numeric",
        "the column 'Notiz' is read as text, since its words recur; name it with --text if that is right",
        "certificate optimal to within",
        "saved t.mercer",
    ):
        assert told in flat, told
    model = mercer.load("t.mercer")
    assert model.estimator_.estimator_.shape_fit_[0] == len(rows) - 1
    words = ["--numeric", "Fläche", "--text", "Notiz", "--drop", "Kunden-Nr", "--json", "-o", "other.mercer"]
    assert main(["easy", "t.csv", "--target", "gekündigt", *words]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["guesses"] == {}
    assert told["model_file"] == "other.mercer"
    title = f"mercer {mercer.__version__}: 'gekündigt' from 5 columns of 80 rows"
    assert flat.startswith(f"{title} in short 1 accuracy {told['score']['held_out']:.1%}")


def answers(text, mark=";"):
    return list(csv.DictReader(io.StringIO(text), delimiter=mark))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_predictions_have_the_byte_order_mark_of_the_table(made, folder, encoding, capsys):
    """Excel reads UTF-8 without the mark as another encoding; only `utf-8-sig` of Python writes it."""
    (folder / "marked.csv").write_text((folder / "t.csv").read_text(encoding="cp1252"), encoding=encoding)
    assert main(["predict", "marked.csv", "t.mercer", "out.csv"]) == 0
    content = (folder / "out.csv").read_bytes()
    assert content.startswith(b"\xef\xbb\xbf") == (encoding == "utf-8-sig")
    assert "Fläche" in content.decode()


def test_predictions_stand_beside_the_rows(made, folder, capsys):
    rows, _ = made
    assert main(["predict", "t.csv", "t.mercer", "out.csv"]) == 0
    assert "The model was trained on these rows" in capsys.readouterr().out
    found = answers((folder / "out.csv").read_text(encoding="cp1252"))
    assert list(found[0]) == [*rows[0], "predicted", "probability"]
    assert [[row[name] for name in rows[0]] for row in found] == rows[1:]
    model = mercer.load("t.mercer")
    frame = mercer.cli.data.read_data("t.csv", training=False, as_frame=True, texts=["Tarif", "Notiz"]).X
    assert [row["predicted"] for row in found] == model.predict(frame).tolist()
    p = model.predict_proba(frame)
    own = [p[i, list(model.classes_).index(row["predicted"])] for i, row in enumerate(found)]
    np.testing.assert_allclose([float(row["probability"].replace(",", ".")) for row in found], own, rtol=1e-5)
    assert main(["predict", "t.csv", "t.mercer", "-b", "1"]) == 0
    assert list(answers(capsys.readouterr().out)[0])[-2:] == ["p(ja)", "p(nein)"]
    assert main(["predict", "t.csv", "t.mercer", "--plain", "-q"]) == 0
    assert capsys.readouterr().out.split() == [row["predicted"] for row in found]


def test_explanations_add_up(made, folder, capsys):
    assert main(["explain", "t.mercer", "t.csv", "why.csv"]) == 0
    page = capsys.readouterr().out
    assert max(map(len, page.splitlines())) <= 100
    assert "row 1 " in page
    assert "for it: +" in page
    assert "against it: -" in page
    assert "for it: -" not in page
    assert "Kunden-Nr" not in page.partition("row 1 ")[2]  # a dropped column contributes nothing
    assert "background   80 rows of t.csv" in page
    found = answers((folder / "why.csv").read_text())
    model = mercer.load("t.mercer")
    frame = mercer.cli.data.read_data("t.csv", training=False, as_frame=True, texts=["Tarif", "Notiz"]).X
    f = model.estimator_.decision_function(frame)
    for row, value in zip(found, f, strict=True):
        parts = [float(text.replace(",", ".")) for name, text in row.items() if name.startswith("because of ")]
        sign = 1 if row["predicted"] == model.classes_[1] else -1
        assert float(row["background"].replace(",", ".")) + sum(parts) == pytest.approx(sign * value, abs=1e-4)
    assert main(["explain", "t.mercer", "t.csv", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert sum(told["importance"].values()) == pytest.approx(1)
    lines = (folder / "t.csv").read_text(encoding="cp1252").splitlines()
    (folder / "one.csv").write_text("\n".join([lines[0], lines[6], ""]), encoding="cp1252")  # a row without a plan
    assert main(["explain", "t.mercer", "one.csv"]) == 1
    assert "name a file of background rows, such as the training table, with --background" in capsys.readouterr().err
    assert main(["explain", "t.mercer", "one.csv", "--background", "t.csv"]) == 0
    assert "from Tarif (missing)" in " ".join(capsys.readouterr().out.split())


def test_the_other_commands(made, folder, capsys):
    pytest.importorskip("matplotlib")
    assert main(["plot", "t.csv", "t.mercer", "t.png"]) == 0
    assert main(["plot", "t.csv", "t.mercer", "u.png", "--features", "Tarif", "seit"]) == 0
    assert main(["explain", "t.mercer", "t.csv", "--quiet", "--plot", "why.png"]) == 0
    assert all((folder / name).read_bytes().startswith(b"\x89PNG") for name in ("t.png", "u.png", "why.png"))
    assert main(["inspect", "t.mercer", "t.csv"]) == 0
    assert "CalibratedClassifier(Tabular(SVC))" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["train", "-b", "1"], ["train", "-b", "1", "--keep-split"]])
def test_probabilities_and_intervals_of_train(words, folder, capsys):
    write(folder, 60)
    command, *options = words
    assert main([command, "t.csv", "--target", "gekündigt", *options, "-q"]) == 0
    assert main(["predict", "t.csv", "t.mercer"]) == 0
    assert list(answers(capsys.readouterr().out)[0])[-2:] == ["predicted", "probability"]
    assert main([command, "t.csv", "--target", "Fläche", *options, "--na", "k.A.", "-q"]) == 1  # no truth in some rows
    assert "row 4 of the column 'Fläche' is empty" in capsys.readouterr().err
    lines = ["a,b,price", *(f"{i},{i % 7},${1000 + 10 * i + i % 7}.50" for i in range(60))]
    (folder / "p.csv").write_text("\n".join([*lines, ""]))
    assert main([command, "p.csv", "--target", "price", *options]) == 0
    assert "on average over the held-out rows" in (page := capsys.readouterr().out)
    assert "$" in page
    assert main(["predict", "p.csv", "p.mercer"]) == 0
    row = answers(capsys.readouterr().out, ",")[0]
    assert float(row["low"]) < float(row["predicted"]) < float(row["high"])
    assert row["price"] == "$1000.50"


def test_the_report_as_a_page(folder, capsys):
    write(folder, 40)
    assert main(["easy", "t.csv", "--target", "gekündigt", "--html", "report.html", "--drop", "Notiz"]) == 0
    assert "report       report.html" in capsys.readouterr().out
    page = html.unescape(re.sub("</?span[^>]*>", "", (folder / "report.html").read_text(encoding="utf-8")))
    assert "mercer easy t.csv --target 'gekündigt' --html report.html --drop Notiz" in page
    assert "from 5 columns of 40 rows of t.csv" in page
    assert "mercer.easy('t.csv', target='gekündigt', drop=['Notiz'])" in page
    options = ["--html", "report.html", "--drop", "Notiz", "--na", "unbekannt"]  # which mercer.easy has no word for
    assert main(["easy", "t.csv", "--target", "gekündigt", *options]) == 0
    page = html.unescape((folder / "report.html").read_text(encoding="utf-8"))
    assert "mercer.easy(table, target='gekündigt', drop=['Notiz'])" in page
    assert main(["easy", "t.csv", "--target", "gekündigt", "--html", "no/report.html"]) == 1
    assert "the folder" in capsys.readouterr().err
    (folder / "heart").write_text("+1 1:1\n-1 1:2\n")
    with pytest.raises(SystemExit):
        main(["easy", "heart", "--html", "report.html"])
    assert "--html is for tables" in capsys.readouterr().err


def test_slips(folder, capsys):
    write(folder, 40)
    for words, message in (
        (["easy", "t.csv", "other.csv", "--target", "gekündigt"], "predict it with mercer predict other.csv MODEL"),
        (["easy", "t.csv"], "name the column to predict with --target"),
        (["easy", "t.csv", "--target", "gekündigt", "--drop", "Tariff"], "did you mean 'Tarif'?"),
        (["easy", "t.csv", "--target", "gekündigt", "-o", "m.pkl"], "mercer does not write .pkl models"),
    ):
        assert main(words) == 1
        assert message in capsys.readouterr().err
    assert sorted(os.listdir(folder)) == ["t.csv"]


def test_hints_of_train_name_options(folder, capsys):
    rng = np.random.default_rng(0)
    lines = [f"{a:.3f},{b:.3f},{'rare' if a > 1.9 else 'usual'}" for a, b in rng.normal(size=(300, 2))]
    (folder / "t.csv").write_text("\n".join(["a,b,y", *lines, ""]))
    assert main(["train", "t.csv", "--target", "y", "--C", "0.01"]) == 0
    assert "'rare' is hardly ever predicted; --class-weight balanced" in " ".join(capsys.readouterr().out.split())
    wide = [f"{1e6 * a:.3f},{b:.3f},{'u' if a * b > 0 else 'v'}" for a, b in rng.normal(size=(80, 2))]
    (folder / "w.csv").write_text("\n".join(["a,b,y", *wide, ""]))
    assert main(["train", "w.csv", "--target", "y", "--no-standardise"]) == 0
    assert "times that of another" in " ".join(capsys.readouterr().out.split())


def test_on_a_terminal_every_message_fits(folder):
    write(folder, 40)
    for words, code, told in (
        (["easy", "t.csv", "--target", "gekündigt"], 0, "in short"),
        (["explain", "t.mercer", "t.csv"], 0, "what matters"),
        (["predict", "t.csv", "t.mercer", "out.csv"], 0, "Accuracy = "),
        (["easy", "t.csv", "--target", "kündigt"], 1, "t.csv has no column 'kündigt' (did you mean 'gekündigt'?)"),
    ):
        shown, _, ended = on_a_terminal(words, folder)
        assert ended == code, shown
        plain = re.sub(r"\x1b\[[\d;?]*[mhl]", "", shown)  # rich colours its bar
        lines = [line.rpartition("\x1b[2K")[2].rpartition("\r")[2] for line in plain.split("\r\n")]  # as it is left
        assert any(told in line for line in lines), shown
        assert max(map(len, lines)) <= 100, max(lines, key=len)


@pytest.mark.parametrize("words", [["train"], ["tune", "-log2c", "0,2,2", "-log2g", "null", "--out", "null"]])
def test_a_model_with_probabilities_is_not_lost(words, made, folder, capsys):
    before = (folder / "t.mercer").read_bytes()
    asked = [*words, "t.csv", "--target", "gekündigt"]
    assert main([*asked, "-q"]) == 1
    assert "t.mercer contains a model with probabilities, as mercer easy saves it" in capsys.readouterr().err
    assert (folder / "t.mercer").read_bytes() == before
    assert main([*asked, "-q", "-o", "other.mercer"]) == 0
    assert not hasattr(mercer.load("other.mercer"), "predict_proba")
    assert main([*asked, "-q", "-b", "1"]) == 0
    assert hasattr(mercer.load("t.mercer"), "predict_proba")
    assert main([*asked, "-q", "-o", "t.mercer"]) == 0  # named, and so meant
    assert not hasattr(mercer.load("t.mercer"), "predict_proba")
    assert main([*asked, "-q"]) == 0


@pytest.fixture
def houses(folder):
    rng = np.random.default_rng(1)
    area, year = rng.uniform(40, 160, 60), rng.integers(1950, 2020, 60)
    price = (2000 * area + 800 * (year - 1950) + 9000 * rng.normal(size=60)).round()
    lines = [f"{a:.1f},{b},{c:.0f} €" for a, b, c in zip(area, year, price, strict=True)]
    (folder / "h.csv").write_text("\n".join(["area,year,price", *lines, ""]), encoding="utf-8")
    assert main(["train", "h.csv", "--target", "price", "--C", "100", "-q"]) == 0
    return price


def test_errors_of_numbers_are_in_their_unit(houses, folder, capsys):
    capsys.readouterr()
    assert main(["predict", "h.csv", "h.mercer", "out.csv"]) == 0
    told = capsys.readouterr().out
    found = np.array([float(row["predicted"]) for row in answers((folder / "out.csv").read_text(), ",")])
    error = np.mean(np.abs(found - houses))
    r2 = 1 - np.sum((found - houses) ** 2) / np.sum((houses - houses.mean()) ** 2)
    assert 1000 < error < 1e5
    assert f"Mean absolute error = {float(f'{error:.4g}'):,.0f} € over 60 rows, R² = {r2:.4g} (regression)" in told
    assert "quared" not in told
    assert main(["predict", "h.csv", "h.mercer", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["mean_absolute_error"] == pytest.approx(error, rel=1e-8)
    assert figures["mean_squared_error"] == pytest.approx(np.mean((found - houses) ** 2), rel=1e-8)
    assert main(["predict", "h.csv", "h.mercer", "out", "--plain"]) == 0  # as svm-predict
    assert "Mean squared error = " in capsys.readouterr().out


def test_errors_of_folds_are_in_the_unit_of_the_target(houses, capsys):
    capsys.readouterr()
    ask = ["train", "h.csv", "--target", "price", "--C", "100", "--folds", "4"]
    assert main(ask) == 0
    told = capsys.readouterr().out
    assert main([*ask, "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    model, table = clone(mercer.load("h.mercer")), pd.read_csv("h.csv")
    answers = np.empty(60)
    for train, test in split_folds(60, 4, 0):
        answers[test] = model.fit(table.drop(columns="price").iloc[train], houses[train]).predict(
            table.drop(columns="price").iloc[test]
        )
    error, squared = np.mean(np.abs(answers - houses)), np.mean((answers - houses) ** 2)
    assert figures["mean_absolute_error"] == pytest.approx(error, rel=1e-6)
    assert figures["mean_squared_error"] == pytest.approx(squared, rel=1e-6)
    assert figures["r2"] == pytest.approx(1 - squared / houses.var(), rel=1e-6)
    assert told.startswith(f"Cross Validation Mean absolute error = {float(f'{error:.4g}'):,.0f} € over 60 rows, R² = ")


def test_explanations_of_numbers_are_in_their_unit(houses, folder, capsys):
    assert main(["explain", "h.mercer", "h.csv", "why.csv"]) == 0
    line = " ".join(capsys.readouterr().out.partition("  row 1 ")[2].partition("  row 2 ")[0].split())
    row = answers((folder / "why.csv").read_text(), ",")[0]
    predicted, because = float(row["predicted"]), float(row["because of area"])
    assert f"{float(f'{predicted:.4g}'):,.0f} €; " in line
    sign = "+" if because > 0 else "-"
    assert f"{sign}{float(f'{abs(because):.4g}'):,.0f} € from area = {row['area']}" in line
    assert "e+0" not in line


def test_what_comes_next_is_a_method_that_there_is(houses, folder):
    pandas = pytest.importorskip("pandas")
    for target in ("price", "dear"):
        frame = pandas.read_csv(folder / "h.csv")
        frame["price"] = houses
        frame["dear"] = np.where(houses > np.median(houses), "yes", "no")
        model = mercer.easy(frame.drop(columns={"price": "dear", "dear": "price"}[target]), target=target)
        model.hints = []
        [line] = [line for line in str(model).splitlines() if "next:" in line]
        names = re.search(r"rows with (\w+) or (\w+); (\w+) says why", line).groups()
        for name in names:
            getattr(model, name)(frame.head(3))


def test_a_swarm_is_coloured_by_numbers_and_dates_that_were_texts(made, folder, monkeypatch):
    plt = pytest.importorskip("matplotlib.pyplot")
    drawn = []
    monkeypatch.setattr("mercer.cli.explain._save", lambda display, path: drawn.append(display))
    assert main(["explain", "t.mercer", "t.csv", "--quiet", "--plot", "why.png"]) == 0
    [display] = drawn
    places = {display.explanation.feature_names[j]: k for k, j in enumerate(display.features_)}
    shades = {name: np.asarray(display.points_[k].get_array(), dtype=float) for name, k in places.items()}
    rows, _ = made
    area = np.array([np.nan if row[1] == "k.A." else float(row[1].replace(",", ".")) for row in rows[1:]])
    days = np.array([np.datetime64("-".join(reversed(row[2].split(".")))).astype(int) for row in rows[1:]])
    for name, truth in (("Fläche", area), ("seit", days)):
        low, high = np.nanquantile(truth, (0.05, 0.95))
        expected = np.clip((truth - low) / (high - low), 0, 1)
        np.testing.assert_allclose(np.ma.filled(np.ma.masked_invalid(shades[name]), np.nan), expected, atol=1e-9)
    assert np.isnan(np.ma.filled(np.ma.masked_invalid(shades["Tarif"]), np.nan)).all()  # a category is neither
    plt.close("all")


def test_explanations_of_a_novelty_say_what_makes_a_row_normal(folder, capsys):
    rng = np.random.default_rng(0)
    lines = [f"{a:.2f},{b:.2f}" for a, b in rng.normal(size=(60, 2))]
    (folder / "n.csv").write_text("\n".join(["a,b,y", *(f"{line},1" for line in ["9.0,0.1", *lines]), ""]))
    assert main(["train", "n.csv", "--target", "y", "--machine", "one_class", "--nu", "0.1", "-q"]) == 0
    assert main(["explain", "n.mercer", "n.csv", "why.csv"]) == 0
    first = " ".join(capsys.readouterr().out.partition("  row 1 ")[2].partition("  row 2 ")[0].split())
    row = answers((folder / "why.csv").read_text(), ",")[0]
    assert float(row["background"]) + float(row["because of a"]) + float(row["because of b"]) < 0  # f: outside
    assert first.startswith("unusual (-1); ")
    assert f"less normal by: {float(row['because of a']):+.3g} from a = 9.0" in first


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        (0.1 + 0.2, "= 0.3"),
        ("0.30000000000000004", "= 0.3"),
        ("49.10", "= 49.10"),
        (1994, "= 1994"),
        ("4012888888881881", "= 4012888888881881"),  # an identifier, not a measurement
        ("pro", "= pro"),
        ("slow, and expensive", "= 'slow, and expensive'"),
        ("word " * 30, "= 'word word word word word word word word word word word …'"),
        (" ", "(missing)"),
        (float("nan"), "(missing)"),
    ],
)
def test_an_explanation_prints_a_cell_as_a_person_would(cell, told):
    assert describe_cell(cell) == told
