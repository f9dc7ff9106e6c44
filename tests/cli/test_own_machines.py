"""``mercer train`` with the machines and options that LIBSVM does not have."""

import json

import numpy as np
import pytest

import mercer
from mercer.cli.main import main
from mercer.cli.terminal import as_options

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3)).round(3)
Y = (X[:, 0] + 0.3 * rng.normal(size=60)).round(3)
LABELS = np.digitize(Y, [-0.5, 0.5])


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, targets in (("classes", LABELS), ("numbers", Y)):
        lines = [f"{t} " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(x)) for t, x in zip(targets, X, strict=True)]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
        rows = [",".join(map(str, [*x, t])) for t, x in zip(targets, X, strict=True)]
        (tmp_path / f"{name}.csv").write_text("a,b,c,target\n" + "\n".join(rows) + "\n")
    return tmp_path


# Options, the class, and what it must have been given.
CASES = [
    ("classes", ["--machine", "linear_svc"], "LinearSVC", {"C": 1.0}),
    (
        "classes",
        ["--machine", "linear_svc", "--multiclass", "crammer-singer", "--bias", "regularized"],
        "LinearSVC",
        {"multiclass": "crammer-singer", "bias": "regularized"},
    ),
    ("numbers", ["--machine", "linear_svr", "-c", "3", "-p", "0.2"], "LinearSVR", {"C": 3.0, "epsilon": 0.2}),
    ("numbers", ["--machine", "rls", "--lam", "0.5", "--bias", "none"], "RLSRegressor", {"lam": 0.5, "bias": False}),
    ("classes", ["--machine", "rls_classifier", "-t", "2", "-w1", "2"], "RLSClassifier", {"class_weight": {1: 2.0}}),
    ("classes", ["--machine", "svdd", "-n", "0.2"], "SVDD", {"nu": 0.2}),
    ("numbers", ["--machine", "quantile_svr", "--quantile", "0.9"], "QuantileSVR", {"quantiles": 0.9}),
    ("classes", ["--slack", "l2"], "SVC", {"slack": "l2"}),
    ("classes", ["--bias", "regularized"], "SVC", {"bias": "regularized"}),
    ("classes", ["--multiclass", "weston-watkins"], "SVC", {"multiclass": "weston-watkins"}),
    ("classes", ["--multiclass", "ovr"], "SVC", {"multiclass": "ovr"}),
    ("numbers", ["-s", "3", "--loss", "huber"], "SVR", {"loss": "huber"}),
]


@pytest.mark.parametrize(("data", "options", "kind", "given"), CASES, ids=lambda value: str(value)[:40])
def test_on_text(data, options, kind, given, capsys):
    assert main(["train", *options, data]) == 0
    assert "optimal to within" in capsys.readouterr().out
    model = mercer.load(f"{data}.mercer")
    assert type(model).__name__ == kind
    assert {name: getattr(model, name) for name in given} == given
    assert main(["predict", data, f"{data}.mercer", "answers"]) == 0
    np.testing.assert_allclose(np.loadtxt("answers"), model.predict(X), atol=1e-5)


@pytest.mark.parametrize(("data", "options", "kind", "given"), CASES, ids=lambda value: str(value)[:40])
def test_on_tables(data, options, kind, given, capsys):
    assert main(["train", f"{data}.csv", "--target", "target", "--json", *options]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["converged"]
    model = mercer.load(f"{data}.mercer").estimator_
    assert type(model).__name__ == kind
    expected = {"1": 2.0} if "class_weight" in given else None
    for name, value in given.items():
        assert str(getattr(model, name)) in (str(value), str(expected))


def test_by_folds_and_as_json(capsys):
    assert main(["train", "--machine", "rls", "-v", "3", "numbers"]) == 0
    assert "Cross Validation Mean squared error" in capsys.readouterr().out
    assert main(["train", "--machine", "linear_svc", "-v", "3", "classes"]) == 0
    assert "Cross Validation Accuracy" in capsys.readouterr().out
    assert main(["train", "--machine", "rls", "--json", "numbers"]) == 0
    assert json.loads(capsys.readouterr().out)["machine"] == "rls"
    assert main(["train", "numbers.csv", "--target", "target", "--machine", "linear_svr"]) == 0
    assert "LinearSVR, C = 1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--machine", "rls", "numbers", "numbers.model"], "that ends in .mercer"),
        (["--slack", "l2", "--machine", "svdd", "classes"], "--slack is for c_svc, not for svdd"),
        (["--lam", "2", "classes"], "--lam is for rls, rls_classifier, not for c_svc"),
        (["--machine", "linear_svc", "-t", "1", "classes"], "has no kernel"),
        (["--machine", "svdd", "-w1", "2", "classes"], "--weight is for classifiers"),
        (["--machine", "linear_svc", "-b", "1", "classes"], "-b 1 is for LIBSVM's machines"),
    ],
)
def test_what_a_machine_does_not_take_is_told(options, told, capsys):
    assert main(["train", *options]) == 1
    assert told in capsys.readouterr().err


def test_a_number_stands_for_libsvms_machines_only(capsys):
    with pytest.raises(SystemExit):
        main(["train", "-s", "5", "classes"])
    assert "invalid choice: '5'" in capsys.readouterr().err


def test_messages_name_options(folder, capsys):
    assert "--drop" in as_options("name it in drop if that is right, else in only, categorical or text")
    cells = ["1.5", "2.5", "00ps", *map(str, range(60))]
    (folder / "odd.csv").write_text("a,b\n" + "".join(f"{cell},{k % 2}\n" for k, cell in enumerate(cells)))
    assert main(["train", "odd.csv", "--target", "b"]) == 1
    error = capsys.readouterr().err
    assert "with --categorical or --drop" in error


def test_libsvms_own_options_leave_its_file(folder):
    """What LIBSVM's machines are anyway is written as LIBSVM writes it; the rest only as .mercer."""
    libsvm = pytest.importorskip("libsvm.svmutil")
    assert main(["train", "-q", "classes", "plain.model"]) == 0
    for options in (["--multiclass", "ovo"], ["--slack", "l1", "--bias", "free"]):
        assert main(["train", "-q", *options, "classes", "said.model"]) == 0
        assert (folder / "said.model").read_bytes() == (folder / "plain.model").read_bytes()
    labels, _, _ = libsvm.svm_predict([], X.tolist(), libsvm.svm_load_model("said.model"), "-q")
    held = mercer.files.models.read_model("said.model")
    np.testing.assert_array_equal(labels, held.predict(X))
    assert np.mean(np.array(labels) == LABELS) > 0.7


@pytest.mark.parametrize("scheme", ["ovr", "crammer-singer", "weston-watkins"])
def test_schemes_that_libsvm_does_not_have(scheme, folder, capsys):
    assert main(["train", "-q", "--multiclass", scheme, "classes", "m.model"]) != 0
    assert "LIBSVM's format cannot store this machine" in capsys.readouterr().err
    assert main(["train", "-q", "--multiclass", scheme, "classes", "m.mercer"]) == 0
    assert main(["convert", "m.mercer", "m.model"]) != 0
    assert "a function for each of its 3 classes" in capsys.readouterr().err
    assert not (folder / "m.model").exists()
