"""SVMlight's own example commands with `mercer` in front; its files both ways; LIBSVM's functions, tools, weights."""

import contextlib
import io
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import make_classification

from cli.commands import run as command
from mercer import SVC, SVR, RankSVM
from mercer.cli.libsvm import evaluations, svm_load_model, svm_predict, svm_read_problem, svm_save_model, svm_train
from mercer.cli.svmlight.learn import default_C
from mercer.files.libsvm_text import read_libsvm, write_libsvm
from mercer.files.svmlight_model import read_svmlight_model, write_svmlight_model
from mercer.kernels import Gaussian, Linear, Polynomial


def run(*words, code=0):
    """What the command printed, on both of its outputs."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        command(*words, code=code)
    return SimpleNamespace(out=out.getvalue(), err=err.getvalue())


X, Y = make_classification(80, 6, random_state=0)
Y = np.where(Y == 1, 1.0, -1.0)
QID = np.arange(80) // 8


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for example in ("example1", "example2", "example3"):
        (tmp_path / example).mkdir()
    write_libsvm(X[:50], Y[:50], "example1/train.dat")
    write_libsvm(X[50:], Y[50:], "example1/test.dat")
    write_libsvm(X, np.where(np.arange(80) < 10, Y, 0), "example2/train_transduction.dat")
    write_libsvm(X[50:], Y[50:], "example2/test.dat")
    rows = (tmp_path / "example1" / "train.dat").read_text().splitlines()
    ranked = [f"{k % 3} qid:{QID[k]} {row.partition(' ')[2]} # doc {k}" for k, row in enumerate(rows)]
    (tmp_path / "example3" / "train.dat").write_text("\n".join(ranked) + "\n")
    return tmp_path


def test_the_example_commands_of_its_page(folder):
    learnt = run("svm_learn", "example1/train.dat", "example1/model")
    assert "Setting default regularization parameter C=" in learnt.out
    assert "XiAlpha-estimate of the error: error<=" in learnt.out
    told = run("svm_classify", "example1/test.dat", "example1/model", "example1/predictions")
    C = default_C(read_libsvm("example1/train.dat")[0], Linear())
    assert pytest.approx(1 / np.linalg.norm(X[:50], axis=1).mean() ** 2) == C
    model = SVC(C=C, kernel="linear").fit(X[:50], Y[:50])
    f = np.loadtxt("example1/predictions")
    np.testing.assert_allclose(f, model.decision_function(X[50:]), atol=1e-10)
    right = int(((f > 0) == (Y[50:] > 0)).sum())
    assert (
        f"Accuracy on test set: {100 * right / 30:.2f}% ({right} correct, {30 - right} incorrect, 30 total)" in told.out
    )

    run("svm_learn", "example2/train_transduction.dat", "example2/model", "-l", "labels")
    labels = np.loadtxt("labels")
    assert set(labels) == {1.0, -1.0}
    assert len(labels) == 70
    assert (labels == Y[10:]).mean() > 0.7
    assert "Accuracy" in run("svm_classify", "example2/test.dat", "example2/model", "example2/predictions").out

    run("svm_learn", "-z", "p", "-c", "0.5", "example3/train.dat", "example3/model")
    run("svm_classify", "example3/train.dat", "example3/model", "example3/predictions")
    ranker = RankSVM(C=0.5, kernel="linear").fit(X[:50], np.arange(50) % 3, qid=QID[:50])
    np.testing.assert_allclose(np.loadtxt("example3/predictions"), ranker.predict(X[:50]), atol=1e-6)


def test_its_options_are_those_of_the_machines(folder):
    run(
        "svm_learn",
        *[
            "-t",
            "2",
            "-g",
            "0.3",
            "-c",
            "2",
            "-j",
            "3",
            "-b",
            "0",
            "-e",
            "1e-6",
            "-a",
            "alphas",
            "example1/train.dat",
            "model",
        ],
    )
    model = SVC(C=2, kernel=Gaussian(gamma=0.3), class_weight={1: 3, -1: 1}, bias=False, tol=1e-6).fit(X[:50], Y[:50])
    own = np.zeros(50)
    own[model.support_] = model.dual_coef_[0]
    np.testing.assert_allclose(np.loadtxt("alphas"), own, atol=1e-9)
    run(
        "svm_learn",
        *[
            "-z",
            "r",
            "-w",
            "0.2",
            "-c",
            "1",
            "-t",
            "1",
            "-d",
            "2",
            "-s",
            "0.5",
            "-r",
            "1",
            "example1/train.dat",
            "model",
        ],
    )
    run("svm_classify", "example1/test.dat", "model", "out")
    machine = SVR(C=1, epsilon=0.2, kernel=Polynomial(degree=2, gamma=0.5, coef0=1.0)).fit(X[:50], Y[:50])
    np.testing.assert_allclose(np.loadtxt("out"), machine.predict(X[50:]), atol=1e-3)
    assert "Leave-one-out estimate of the error" in run("svm_learn", "-x", "1", "example1/train.dat", "m").out
    assert run("svm_learn", "-v", "0", "example1/train.dat", "m").out == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("-i 1 example1/train.dat m", "training uses all rows"),
        ("-z p example1/train.dat m", "has no qid"),
        ("example3/train.dat m", r"labels of a classification must be \+1 and -1"),
    ],
)
def test_it_says_what_is_wrong(folder, words, message):
    failed = run("svm_learn", *words.split(), code=1)
    assert re.search(message, failed.err)


@pytest.mark.parametrize("order", [(1, -1), (-1, 1)])
def test_a_model_comes_back_as_it_was(tmp_path, order):
    model = svm_train(Y, X, "-g 0.4 -q").as_libsvm()
    if model.label != order:
        model = replace(model, label=order, rho=-model.rho, coefficients=-model.coefficients)
    write_svmlight_model(model, tmp_path / "m", 80)
    back = read_svmlight_model(tmp_path / "m")
    assert back.facts()["format"] == "SVMlight"
    np.testing.assert_allclose(
        back.decisions(X), svm_train(Y, X, "-g 0.4 -q").estimator().decision_function(X)[:, None]
    )
    with pytest.raises(TypeError, match="classes 1 and -1"):
        write_svmlight_model(replace(model, label=(3, 4)), tmp_path / "m")


def test_libsvms_functions_answer_as_its_programs(folder, capsys):
    model = svm_train(Y, X, "-c 4 -g 0.2")
    assert "Total nSV = " in capsys.readouterr().out
    labels, (accuracy, error, _), values = svm_predict(Y, X, model)
    machine = SVC(C=4, gamma=0.2, tol=1e-4).fit(X, Y)
    assert labels == machine.predict(X).tolist()
    assert accuracy == 100 * machine.score(X, Y)
    assert error == pytest.approx(np.mean((np.array(labels) - Y) ** 2))
    first = model.as_libsvm().label[0]
    np.testing.assert_allclose(values[:, 0], first * machine.decision_function(X), atol=1e-2)
    svm_save_model("m", model)
    assert svm_predict(Y, X, svm_load_model("m"), "-q")[0] == labels
    y, x = svm_read_problem("example1/train.dat")
    np.testing.assert_array_equal(y, Y[:50])
    assert 50 < svm_train(y, x, "-v 5 -q") <= 100
    chances = svm_predict(Y, X, svm_train(Y, X, "-b 1 -q"), "-b 1 -q")[2]
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    regression = svm_train(X[:, 0], X[:, 1:], "-s 3 -q")
    assert svm_predict(X[:, 0], X[:, 1:], regression, "-q")[1][1] < 1
    K = Gaussian(gamma=0.2)(X)
    rows = [{0: i + 1, **{j + 1: value for j, value in enumerate(row)}} for i, row in enumerate(K.tolist())]
    given = svm_predict(Y, rows, svm_train(Y, rows, "-t 4 -c 4 -q"), "-q")
    np.testing.assert_allclose(given[2], values, atol=1e-2)
    with pytest.raises(ValueError, match="Unknown option: -y"):
        svm_train(Y, X, "-y 3")
    with pytest.raises(ValueError, match="indices count from 1"):
        svm_train(Y, [{0: 1.0}] * 80)
    assert evaluations([1, 2, 4], [1, 1, 3])[:2] == (pytest.approx(100 / 3), pytest.approx(2 / 3))


def test_weights_files_weigh(folder):
    weight = np.arange(50) % 3 * 0.5
    np.savetxt("w", weight)
    run("train", "-W", "w", "-q", "example1/train.dat", "m")
    machine = SVC(gamma=1 / 6, tol=1e-4).fit(X[:50], Y[:50], sample_weight=weight)
    f = svm_load_model("m").decisions(X)[:, 0]
    np.testing.assert_allclose(np.abs(f), np.abs(machine.decision_function(X)), atol=1e-2)
    again = svm_train(Y[:50], X[:50], "-q", W=weight)
    np.testing.assert_allclose(again.decisions(X)[:, 0], f, atol=1e-9)
    assert "50 rows" in run("train", "-W", "example1/train.dat", "example1/train.dat", code=1).err
    assert "-W is for" in run("train", "-W", "w", "-v", "3", "example1/train.dat", code=1).err


def test_checkdata_and_subset(folder):
    assert run("checkdata", "example1/train.dat").out == "No error.\n"
    (folder / "bad").write_text("1 2:1 1:3\n")
    assert "bad:1:" in run("checkdata", "bad", code=1).err  # the file and the line
    (folder / "open").write_text("1 1:1")
    assert "newline" in run("checkdata", "open", code=1).err
    run("subset", "example1/train.dat", "20", "some", "rest")
    some, rest, all_of = ((folder / name).read_text().splitlines() for name in ("some", "rest", "example1/train.dat"))
    assert sorted(some + rest) == sorted(all_of)
    positive = sum(line.startswith(("1", "+1")) for line in some)
    assert abs(positive - 20 * (Y[:50] > 0).mean()) <= 1
    run("subset", "-s", "1", "example1/train.dat", "7", "any")
    assert len((folder / "any").read_text().splitlines()) == 7
    assert "cannot be drawn" in run("subset", "example1/train.dat", "51", code=1).err


def test_kernel_evaluations_are_counted(folder):
    """A Gaussian machine on 50 rows needs a value for each of them, and no more than the whole matrix."""
    learnt = run("svm_learn", "-t", "2", "-g", "0.5", "-c", "1", "example1/train.dat", "example1/model")
    assert 50 <= int(re.search(r"Number of kernel evaluations: (\d+)", learnt.out)[1]) <= 50**2
