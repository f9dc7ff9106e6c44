"""``mercer train`` as a person and as a script use it."""

import io
import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest

import mercer
from mercer.cli.data import TITLES, load_embedded
from mercer.cli.main import main

MERCER = Path(sysconfig.get_path("scripts")) / ("mercer.exe" if os.name == "nt" else "mercer")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def strict(text):
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def test_the_report(folder, capsys):
    assert main(["train"]) == 0
    output = capsys.readouterr()
    assert output.err == ""
    for expected in (
        rf"^mercer {mercer.__version__}: breast cancer Wisconsin \(diagnostic\), 569 rows × 30 features\n\n  accuracy",
        r"classes\s+357 benign, 212 malignant",
        r"split\s+426 rows to train on, 143 held out \(stratified, seed 0\)",
        r"scaling\s+standardised with means",
        r"machine\s+SVC, C = 1, Gaussian\(gamma=0\.0333333\)\n",
        r"what matters worst texture +\d+%  █+\n",
        r"accuracy\s+9\d\.\d% of the held-out rows \(1[34]\d of 143\)",
        r"certificate\s+optimal to within \S+ of the dual value, in float64\n",
        r" +gap \S+ \(\S+ of the dual value \S+\): at most this far from the optimum\n",
        r" +violation \d\.\d+e-\d+ \(tol = 0.001\): converged\n",
        r"saved\s+model.mercer \(\d+\.\d kB\), trained on all 569 rows",
    ):
        assert re.search(expected, output.out), expected
    assert output.out.index("accuracy") < output.out.index("what matters") < output.out.index("certificate")
    assert max(map(len, output.out.splitlines())) <= 100
    assert os.listdir(folder) == ["model.mercer"]


def test_the_whole_report(capsys):
    """--verbose has what people rarely ask for."""
    assert main(["train", "--verbose"]) == 0
    page = capsys.readouterr().out
    for expected in (
        r"support\s+\d+ of 569 rows: \d+ free, \d+ at the bound",
        r"margin\s+1/‖w‖ = 0\.\d+",
        r"primal value\s+\d+\.\d+",
        r"dual value\s+\d+\.\d+",
        r"gap\s+\d\.\d+e-\d+",
        r"violation\s+\d\.\d+e-\d+\s+tol = 0.001: converged",
        *(f"e[-+]\\d+ +{name}" for name in ("primal feasibility", "dual feasibility: box", "complementary slackness")),
        r"time\s+load .* s · fit .* s · test .* s · train .* s · explain .* s · save",
        "● benign, ○ malignant",
    ):
        assert re.search(expected, page), expected
    assert page.count("●") + page.count("○") == 143 + 2


def test_which_rows_the_saved_model_has_seen(folder, capsys):
    table = load_embedded("iris")
    lines = [",".join([*map(str, row), kind]) for row, kind in zip(table.X.tolist(), table.y, strict=True)]
    (folder / "iris.csv").write_text("\n".join(["a,b,c,d,kind", *lines, ""]))
    reports = {}
    for flags, rows in (([], 150), (["--keep-split"], 112)):
        assert main(["train", "iris.csv", "--target", "kind", "--json", *flags]) == 0
        reports[rows] = strict(capsys.readouterr().out)
        assert reports[rows]["rows_seen"] == rows
        assert mercer.load("iris.mercer").estimator_.shape_fit_[0] == rows
        assert main(["train", "iris.csv", "--target", "kind", *flags]) == 0
        told = "all 150 rows" if rows == 150 else "112 of 150 rows"
        assert f"trained on {told}" in capsys.readouterr().out
    assert reports[150]["accuracy"] == reports[112]["accuracy"]  # of the rows held out, in both


@pytest.mark.parametrize("data", TITLES)
def test_the_saved_model_has_the_reported_accuracy_on_raw_rows(data, capsys):
    assert (
        main(["train", "--data", data, "--json", "--test-size", "0.3", "--seed", "7", "--keep-split", "-o", "m.mercer"])
        == 0
    )
    report = strict(capsys.readouterr().out)
    table = load_embedded(data)
    model = mercer.load("m.mercer")
    share = report["split"]["test"] / len(table.y)
    overall = share * report["accuracy"]["test"] + (1 - share) * report["accuracy"]["train"]
    assert model.score(table.X, table.y) == pytest.approx(overall)
    assert report["accuracy"]["test"] > 0.9
    assert (
        sum(report["data"]["rows"].values()) == len(table.y) == sum(report["split"][part] for part in ("train", "test"))
    )
    assert report["converged"] is True
    assert report["certificate"]["gap"] >= 0
    assert sum(report["support_vectors"].values()) == len(model[-1].support_)
    assert report["model_file"] == "m.mercer"


def test_margin_and_bounds_of_a_linear_machine(capsys):
    assert main(["train", "--kernel", "linear", "--C", "0.01", "--json"]) == 0
    report = strict(capsys.readouterr().out)
    machine = mercer.load("model.mercer")[-1]
    assert report["margin"]["width"] == pytest.approx(1 / np.linalg.norm(machine.coef_))
    assert report["support_vectors"]["bounded"] == np.sum(np.abs(machine.dual_coef_) >= 0.01 * (1 - 1e-9))
    assert report["parameters"]["C"] == 0.01


def test_several_classes_name_the_narrowest_pair_and_the_mistakes(capsys):
    assert main(["train", "--data", "digits", "--verbose"]) == 0
    text = capsys.readouterr().out
    assert re.search(r"margin\s+1/‖w‖ = \S+ \(\d against \d, the narrowest\)", text)
    assert "values are sums over 45 sub-problems, and residuals are maxima" in " ".join(text.split())
    assert "●" not in text


def test_a_report_says_which_gap_is_of_one_pair_and_which_of_all(capsys):
    assert main(["train", "--data", "wine"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    proof = mercer.load("model.mercer")[-1].certificate_
    worst = max(part.gap / part.dual for part in proof.parts)
    assert f"optimal to within {worst:.1e} of the dual value (worst of 3 sub-problems), in float64" in text
    gap = f"gap {proof.gap:.2e} summed over {len(proof.parts)} sub-problems"
    assert f"{gap} ({proof.gap / proof.dual:.1e} of their dual value {proof.dual:.6g})" in text
    assert "confusion predicted truth class_0 class_1 class_2 recall" in text


def test_parameters_reach_the_machine(capsys):
    given = {"C": 3.0, "kernel": "poly", "gamma": 0.5, "degree": 2, "coef0": 1.5, "tol": 0.01}
    assert main(["train", "--quiet", *(f"--{name}={value}" for name, value in given.items())]) == 0
    assert capsys.readouterr().out == ""
    machine = mercer.load("model.mercer")[-1]
    assert {name: getattr(machine, name) for name in given} == given


def test_a_hard_margin_is_still_json(capsys):
    assert main(["train", "--data", "iris", "--C", "1e6", "--kernel", "linear", "--json"]) == 0
    strict(capsys.readouterr().out)


def test_an_old_model_is_replaced(folder, capsys):
    (folder / "model.mercer").write_text("something else")
    assert main(["train", "--quiet"]) == 0
    assert mercer.load("model.mercer")[-1].converged_


@pytest.mark.parametrize(
    ("flags", "code", "message"),
    [
        (["data.csv", "--target", "y"], 1, "can't open data.csv: No such file or directory"),
        (["data"], 1, "can't open data: No such file or directory"),
        (["a", "b", "-o", "c"], 2, "named twice: b and c"),
        (["-b", "1", "-s", "2"], 1, "-b 1 on a table is for classification and regression, not for one_class"),
        (["--machine", "regresion"], 2, "invalid choice: 'regresion' .did you mean regression"),
        (["-t", "4"], 1, "precomputed kernel is read from LIBSVM text"),
        (["-w7", "2"], 1, "--weight names '7', but no row of breast_cancer has that class"),
        (["--weight", "x"], 2, "'x' is not of the form CLASS:W"),
        (["--test-size", "1.5"], 2, "1.5 is not between 0 and 1"),
        (["--test-size", "nan"], 2, "nan is not between 0 and 1"),
        (["--data", "mnist"], 2, "invalid choice: 'mnist'"),
        (["--json", "--quiet"], 2, "not allowed with"),
        (["--C", "-1"], 1, "C"),
        (["--C", "nan"], 1, "C"),
        (["--kernel", "gauss"], 1, "gauss"),
        (["--gamma", "big"], 1, "big"),
        (["--tol", "0"], 1, "tol"),
        (["--test-size", "0.001"], 1, "test_size"),
        (["--output", "no/such/folder/model.mercer"], 1, "the folder .*no/such/folder.* does not exist"),
        (["--output", "."], 1, "directory"),
    ],
)
def test_errors_are_one_readable_line(folder, capsys, flags, code, message):
    try:
        returned = main(["train", *flags])
    except SystemExit as exit:
        returned = exit.code
    output = capsys.readouterr()
    assert returned == code
    last = output.err.splitlines()[-1]
    assert re.search(message, last)
    assert last.startswith("mercer train: error: ")
    assert "Traceback" not in output.err
    assert code == 2 or len(output.err.splitlines()) == 1
    assert output.out == ""
    assert os.listdir(folder) == []


def test_interrupted(folder, capsys, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(mercer.SVC, "fit", interrupt)
    assert main(["train"]) == 130
    assert capsys.readouterr().err == "mercer: interrupted\n"
    assert os.listdir(folder) == []


def test_a_warning_is_one_line(capsys):
    assert main(["train", "--tol", "1e-20"]) == 0
    output = capsys.readouterr()
    assert output.err.startswith("mercer: warning: SVC stopped before tol=1e-20")
    assert output.err.count("\n") == 1
    assert "NOT converged" in output.out
    assert "rounding floor" in output.out


def test_a_console_without_greek(monkeypatch):
    console = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", console)
    assert main(["train", "--verbose"]) == 0
    text = console.buffer.getvalue().decode("ascii")
    assert "1/||w|| = " in text
    assert "569 rows x 30 features" in text
    assert "?" not in text


@pytest.mark.parametrize("flags", [[], ["fly"]])
def test_usage(capsys, flags):
    with pytest.raises(SystemExit) as exit:
        main(flags)
    assert exit.value.code == 2
    assert "usage: mercer" in capsys.readouterr().err


def test_the_installed_command():
    done = subprocess.run([MERCER, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"mercer {mercer.__version__}\n"


@pytest.mark.skipif(os.name != "posix", reason="pipes are POSIX")
def test_a_reader_that_leaves():
    code = "import sys; from mercer.cli.main import main; sys.exit(main(['train']))"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1
