"""What trips an engineer at a terminal: the help's examples run, and each slip is answered with what to do."""

import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_diabetes, load_iris, make_classification
from sklearn.model_selection import train_test_split

import mercer
from mercer import save
from mercer.cli.main import _build_parsers, main
from mercer.files.libsvm_text import read_libsvm

COMMANDS = ["train", "predict", "scale", "inspect", "convert", "plot"]  # train first: it makes the models


def helped(words, capsys):
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 0
    return capsys.readouterr().out


def commands_of(page):
    return re.findall(r"^  ((?:mercer|cut) .*?)(?:  .*)?$", page.partition("examples:\n")[2], flags=re.MULTILINE)


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A folder with the files that the examples speak of."""
    monkeypatch.chdir(tmp_path)
    iris = load_iris()
    names = ["sepal length", "sepal width", "petal length", "petal width"]
    rows = [",".join(map(str, row)) for row in iris.data]
    kinds = [str(iris.target_names[k]) for k in iris.target]
    table = [f"{row},{kind}" for row, kind in zip(rows, kinds, strict=True)]
    files = {
        "iris.csv": [",".join([*names, "species"]), *table],
        "new.csv": [",".join(names), *rows],
        "rows.csv": [",".join(["id", *names]), *(f"r{i},{row}" for i, row in enumerate(rows))],
    }
    X, y = load_diabetes(return_X_y=True)
    files["houses.csv"] = ["a,b,price", *(f"{row[0]},{row[1]},{price}" for row, price in zip(X, y, strict=True))]
    for name, lines in files.items():
        (tmp_path / name).write_text("\n".join([*lines, ""]))
    X, y = make_classification(60, 13, random_state=0)
    for name in ("heart", "train", "test"):
        dump_svmlight_file(X, 2 * y - 1, name, zero_based=False)
    save(mercer.LinearSVC().fit(X, y), "text.mercer")
    return tmp_path


@pytest.mark.skipif(shutil.which("bash") is None, reason="the examples are written for a POSIX shell")
def test_every_example_of_the_help_runs(desk, capfd):
    pytest.importorskip("matplotlib")
    pytest.importorskip("onnx")
    pages = [helped([*words, "--help"], capfd) for words in (*([command] for command in COMMANDS), [])]
    examples = [command for page in pages for command in commands_of(page)]
    assert len(examples) > 20
    shell = {**os.environ, "PATH": f"{os.path.dirname(sys.executable)}{os.pathsep}{os.environ['PATH']}"}
    for command in examples:
        if command == "mercer COMMAND --help":
            continue
        written, mark, name = command.partition(" > ")
        if mark:
            capfd.readouterr()
            assert main(shlex.split(written)[1:]) == 0, (command, capfd.readouterr().err)
            (desk / name).write_text(capfd.readouterr().out)
        elif "|" in command:
            ended = subprocess.run(["bash", "-ec", f"set -o pipefail; {command}"], env=shell, capture_output=True)
            assert ended.returncode == 0, (command, ended.stderr)
        else:
            if "-b 1" in command:
                main(["train", "-q", "-b", "1", "heart", "heart.model"])
            assert main(shlex.split(command)[1:]) == 0, (command, capfd.readouterr().err)
    assert (desk / "heart.svg").stat().st_size > 5000
    assert (desk / "train.scaled").read_text().splitlines()[0].startswith(("1 1:", "-1 1:"))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_default_is_told(command, capsys):
    """An option whose default is a number or a name says it in brackets at the end."""
    page = " ".join(helped([command, "--help"], capsys).split())
    _, choices = _build_parsers(command)
    for action in choices[command]._actions:
        if action.option_strings and action.default not in (None, True, False, []) and action.dest != "help":
            shown = f"({action.default:g})" if isinstance(action.default, (int, float)) else f"({action.default})"
            assert shown in page[page.index(action.option_strings[-1]) :], (command, action.dest)
        assert action.help or action.dest == "help", (command, action.dest)


def fails(words, capsys, code=1):
    try:
        ended = main(words)
    except SystemExit as error:
        ended = error.code
    assert ended == code
    return capsys.readouterr().err


SLIPS = {
    "unknown option": ("train --gama 1 heart", 2, r"unknown option --gama .did you mean --gamma"),
    "one file too many": ("predict a b c d", 2, r"one file too many: d"),
    "no folder": (
        "train heart nowhere/heart.model",
        1,
        r"cannot save to 'nowhere/heart.model': the folder .* does not exist",
    ),
    "no folder, table": (
        "train iris.csv --target species --output nowhere/i.mercer",
        1,
        r"the folder .* does not exist",
    ),
    "no such model": ("inspect iris.csv", 1, r"iris.csv is not a model: .*svm_type"),
    "scaling a table": ("scale iris.csv", 1, r"iris.csv is a table.*mercer train standardises"),
    "the truth among the features": ("predict iris.csv heart.model o", 1, r"'species'.*name it with --target"),
    "other data": (
        "predict heart iris.mercer o",
        1,
        r"heart is LIBSVM text, whose features have no names, but iris.mercer was trained on a table",
    ),
    "a target of what has no names": (
        "train heart --target species",
        1,
        r"heart has no column names: .*the first word",
    ),
    "scaler in LIBSVM's format": ("convert iris.mercer iris.model", 1, r"standardises.*ONNX.*LIBSVM text"),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_slips(slip, desk, capsys):
    assert main(["train", "-q", "heart", "heart.model"]) == 0
    assert main(["train", "-q", "iris.csv", "--target", "species"]) == 0
    words, code, told = SLIPS[slip]
    assert re.search(told, fails(words.split(), capsys, code))


def test_a_model_that_cannot_be_saved_is_told_before_training(desk, capsys, monkeypatch):
    monkeypatch.setattr(mercer.SVC, "fit", lambda *_: pytest.fail("trained for nothing"))
    for words in (
        "train heart nowhere/heart.model",
        "train iris.csv nowhere/iris.mercer --target species",
        "train heart .",
    ):
        assert re.search("cannot save", fails(words.split(), capsys))


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_folder_that_is_read_only(desk, capsys):
    (desk / "locked").mkdir(mode=0o500)
    assert "is not writable" in fails(["train", "heart", "locked/heart.model"], capsys)


@pytest.mark.parametrize("mark", [";", "\t"])
@pytest.mark.parametrize("first", ["", "\ufeff"], ids=["plain", "with BOM"])
def test_tables_of_spreadsheets_that_use_the_comma_otherwise(mark, first, desk, capsys):
    text = (desk / "iris.csv").read_text()
    (desk / "other.csv").write_text(first + text.replace(",", mark), encoding="utf-8")
    for name in ("iris", "other"):
        assert main(["train", "-q", f"{name}.csv", "--target", "species"]) == 0
    one, other = (mercer.load(f"{name}.mercer") for name in ("iris", "other"))
    np.testing.assert_array_equal(one.estimator_.dual_coef_, other.estimator_.dual_coef_)
    assert other.feature_names_in_.tolist() == one.feature_names_in_.tolist()
    (desk / "half.csv").write_text(text.replace(",", ";").replace(".", ","))
    assert main(["train", "-q", "half.csv", "--target", "species"]) == 0
    np.testing.assert_array_equal(mercer.load("half.mercer").estimator_.dual_coef_, one.estimator_.dual_coef_)


def test_a_report_on_regression_says_what_its_numbers_are(desk, capsys):
    words = ["train", "houses.csv", "--target", "price", "--C", "100", "--keep-split"]
    assert main(words) == 0
    page = capsys.readouterr().out
    assert main([*words, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert "442 rows × 2 features" in page
    assert "a regression, since the target has" in page
    assert "trained on 331 of 442 rows" in page
    assert "331 rows to train on, 111 held out (seed 0)" in page
    assert "SVR, C = 100, epsilon = 0.1" in page
    test, median = (float(x) for x in re.search(r"error +(\S+) on average .* median: ([\d.]+)", page).groups())
    r2 = float(re.search(r"R² +(\S+) on the held-out", page)[1])
    assert r2 == pytest.approx(report["score"]["test"], rel=1e-3)
    told = report["mean_absolute_error"]
    assert (test, median) == pytest.approx((told["test"], told["median"]), rel=1e-3)
    # The truth, from the model and the same split.
    table = np.loadtxt("houses.csv", delimiter=",", skiprows=1)
    _, X_test, y_train, y_test = train_test_split(table[:, :2], table[:, 2], test_size=0.25, random_state=0)
    answers = mercer.load("houses.mercer").predict(X_test)
    assert told["test"] == pytest.approx(np.abs(answers - y_test).mean())
    assert told["median"] == pytest.approx(np.abs(np.median(y_train) - y_test).mean())


def test_predictions_without_a_truth_say_how_many(desk, capsys):
    assert main(["train", "-q", "iris.csv", "--target", "species"]) == 0
    assert main(["predict", "new.csv", "iris.mercer", "o"]) == 0
    assert capsys.readouterr().out == "150 rows predicted.\n"
    assert main(["predict", "new.csv", "iris.mercer", "o", "--target", "species"]) == 0
    assert capsys.readouterr().out == "new.csv has no column 'species' to compare with: 150 rows predicted.\n"
    assert main(["predict", "new.csv", "iris.mercer", "o", "-q"]) == 0
    assert capsys.readouterr().out == ""
    assert main(["predict", "iris.csv", "iris.mercer", "o", "--target", "petal length"]) == 0
    assert (
        "WARNING: 'petal length' contains '1.4' and other values that the model never predicts"
        in capsys.readouterr().out
    )
    assert main(["predict", "iris.csv", "iris.mercer", "o", "--target", "species"]) == 0
    assert "\nAccuracy = 9" in capsys.readouterr().out


def test_the_margin_of_the_report_is_that_of_the_machine(desk, capsys):
    assert main(["train", "iris.csv", "--target", "species", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["margin"]
    machine = mercer.load("iris.mercer").estimator_
    K = machine.kernel_(machine.support_vectors_)
    ends = np.cumsum([0, *machine.n_support_])
    norms = {}
    for i, j in ((0, 1), (0, 2), (1, 2)):
        beta = np.zeros(len(K))
        beta[ends[i] : ends[i + 1]] = machine.dual_coef_[j - 1, ends[i] : ends[i + 1]]
        beta[ends[j] : ends[j + 1]] = machine.dual_coef_[i, ends[j] : ends[j + 1]]
        norms[str(machine.classes_[i]), str(machine.classes_[j])] = np.sqrt(beta @ K @ beta)
    narrowest = max(norms, key=norms.get)
    assert tuple(told["classes"]) == narrowest
    assert told["width"] == pytest.approx(1 / norms[narrowest], rel=1e-6)


def test_classes_that_are_numbers_are_counted(desk, capsys):
    np.savez("numbers.npz", X=np.arange(20.0)[:, None], y=np.repeat([1, 2], [8, 12]))
    assert main(["train", "numbers.npz"]) == 0
    assert re.search(r"classes +8 1, 12 2\n", capsys.readouterr().out)


def test_a_foreign_model_in_python(desk):
    assert main(["train", "-q", "heart", "heart.model"]) == 0
    assert main(["convert", "heart.model", "heart.mercer", "--quiet"]) == 0
    X, _ = read_libsvm("heart")
    one, other = (mercer.load(name).decision_function(X) for name in ("heart.model", "heart.mercer"))
    np.testing.assert_array_equal(one, other)


def test_mercer_alone_tells_what_there_is(capsys):
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert all(command in told for command in COMMANDS)
    assert "exit codes: 0 done" in told


def test_a_report_on_regression_where_only_ascii_is_printed(desk, monkeypatch):
    console = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", console)
    assert main(["train", "houses.csv", "--target", "price", "--machine", "nu_svr"]) == 0
    text = console.buffer.getvalue().decode("ascii")
    assert "R^2" in text
    assert "?" not in text
