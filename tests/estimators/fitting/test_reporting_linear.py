"""What a running fit of a linear machine prints."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

from mercer import LinearSVC, LinearSVR, linear_path
from mercer.estimators.fitting.pipeline import reporting as telling

LINE = re.compile(r"\[mercer\] +[0-9.]+ s  .* [0-9,]+ steps  violation \S+  gap \S+, \S+ of the dual value.*")


@pytest.fixture
def three():
    return make_classification(n_samples=200, n_informative=5, n_classes=3, random_state=0)


@pytest.mark.parametrize(
    "model",
    [
        LinearSVC(verbose=True),
        LinearSVC(verbose=True, solver="dual", loss="hinge", bias=False, C=0.01),
        LinearSVC(verbose=True, multiclass="crammer_singer", bias="regularized", C=0.01),
        LinearSVR(verbose=True),
    ],
)
def test_verbose_prints_a_line_that_says_where_the_fit_is(capsys, three, model):
    model.fit(*three)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 1
    assert all(LINE.fullmatch(line) for line in lines[:-1])
    assert re.fullmatch(r"\[mercer\] +[0-9.]+ s  violation \S+  gap  \S+  converged", lines[-1])


def test_every_machine_is_named_and_every_second_has_one_line(capsys, monkeypatch):
    clock = iter(np.arange(0.0, 1000.0, 0.2))
    monkeypatch.setattr(telling.time, "monotonic", lambda: next(clock))
    progress = telling.Progress(None, True, 2, None, None)
    for number in (1, 1, 1, 2, 2, 2):
        progress.begin(f"machine {number} of 2")(lambda: "7 steps")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" s  ")[1] for line in lines] == ["machine 1 of 2: 7 steps", "machine 2 of 2: 7 steps"]


def test_telling_does_not_change_the_answer(capsys):
    rng = np.random.default_rng(0)
    X = sp.random(150, 400, 0.05, format="csr", random_state=0)
    y = np.where(rng.random(150) < 0.5, 1, -1)
    quiet = LinearSVC(C=100, loss="hinge").fit(X, y)
    assert capsys.readouterr().out == ""
    told = LinearSVC(C=100, loss="hinge", verbose=True).fit(X, y)
    np.testing.assert_array_equal(quiet.coef_, told.coef_)
    assert told.n_iter_ == quiet.n_iter_
    linear_path(X, y, Cs=[0.1, 1.0], verbose=True)
    assert " s  C=0.1: " in capsys.readouterr().out


def test_a_path_that_was_cut_short_says_so():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 20)) * 10.0 ** np.linspace(-3, 3, 20)
    y = (X[:, 0] * 1e3 + rng.normal(size=200) > 0).astype(int)
    with pytest.warns(ConvergenceWarning, match=r"linear_path stopped early at 2 of 2 values of C, .*max_iter") as told:
        path = linear_path(X, y, Cs=[0.1, 10], max_iter=1, loss="hinge")
    assert path.stop_reasons == ("max_iter", "max_iter")
    assert told[0].filename == __file__
    assert linear_path(X[:, 10:12], y, Cs=[0.1]).stop_reasons == ("converged",)
