"""What a running fit tells: lines for people, callbacks for programs."""

import math
import sys
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification

from mercer import (
    SVC,
    KernelMachineClassifier,
    LinearSVC,
    LinearSVR,
    OneClassSVM,
    PegasosSVC,
    RLSClassifier,
    RLSClassifierCV,
)
from mercer.runtime.progress import ProgressEstimate, StatusLine


@pytest.fixture
def three():
    return make_classification(n_samples=300, n_informative=5, n_classes=3, random_state=0)


def test_verbose_prints_lines_with_the_numbers(capsys, three):
    SVC(verbose=1).fit(*three)
    out = capsys.readouterr().out
    assert "support vectors" in out
    assert "violation" in out
    assert "gap" in out


def test_quiet_is_quiet(capsys, three):
    SVC().fit(*three)
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


@pytest.mark.parametrize(
    ("machine", "tasks"),
    [
        (SVC(), ("0 against 1", "0 against 2", "1 against 2")),
        (LinearSVC(n_jobs=2), ("0 against the rest", "1 against the rest", "2 against the rest")),
        (LinearSVC(multiclass="crammer_singer", bias=False, C=0.01), ("solve",)),
        (LinearSVR(C=0.01), ("solve",)),
    ],
    ids=str,
)
def test_callbacks_see_every_sub_problem(three, machine, tasks):
    pytest.importorskip("sklearn.callback")
    seen = []

    class Recorder:
        def setup(self, estimator, context):
            seen.append("setup")

        def on_fit_task_begin(self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None):
            seen.append(("begin", context.task_name))

        def on_fit_task_end(self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None):
            seen.append(("end", context.task_name))

        def teardown(self, estimator, context):
            seen.append("teardown")

    model = clone(machine).set_callbacks(Recorder())
    model.fit(*three)
    assert seen[0] == "setup"
    assert seen[-1] == "teardown"
    names = [name for kind, name in seen[1:-1] if kind == "begin"]
    assert {"fit", *tasks, "step"} <= set(names)
    begun = [name for kind, name in seen[1:-1] if kind == "begin"]
    ended = [name for kind, name in seen[1:-1] if kind == "end"]
    assert sorted(begun) == sorted(ended)
    plain = clone(machine).fit(*three)
    for name in ("dual_coef_", "coef_"):
        if name in vars(plain):
            np.testing.assert_array_equal(getattr(model, name), getattr(plain, name))


def test_being_watched_changes_no_bit(three):
    """Also of the pairs of classes that are solved in one call."""
    told, silent = SVC(verbose=True).fit(*three), SVC().fit(*three)
    np.testing.assert_array_equal(told.dual_coef_, silent.dual_coef_)
    np.testing.assert_array_equal(told.intercept_, silent.intercept_)
    np.testing.assert_array_equal(told.n_iter_, silent.n_iter_)


def notebook(monkeypatch, **shell):
    module = SimpleNamespace(get_ipython=lambda: SimpleNamespace(**shell))
    monkeypatch.setitem(sys.modules, "IPython", module)


def test_a_notebook_gets_one_line_that_is_rewritten(capsys, monkeypatch, three):
    monkeypatch.setattr(
        "mercer.estimators.fitting.pipeline.reporting.time.monotonic", count(0, 2).__next__
    )  # a line at every report
    notebook(monkeypatch, kernel=object())
    LinearSVC(verbose=True).fit(*three)
    out = capsys.readouterr().out
    assert out.count("\r[mercer]") > 2
    assert out.count("\n") == 1
    assert out.endswith("\n")
    widths = [len(line) for line in out.removesuffix("\n").split("\r")[1:]]
    assert all(after >= len(before.rstrip()) for before, after in zip(out.split("\r")[1:], widths[1:], strict=False))


def test_ipython_on_a_terminal_gets_lines(capsys, monkeypatch, three):
    notebook(monkeypatch)
    LinearSVC(verbose=True).fit(*three)
    out = capsys.readouterr().out
    assert "\r" not in out
    assert out.count("\n") >= 2


@pytest.mark.parametrize(
    "machine",
    [
        SVC(),
        SVC(multiclass="crammer-singer"),
        LinearSVC(),
        RLSClassifier(),
        RLSClassifierCV(),
        KernelMachineClassifier(),
        OneClassSVM(),
        PegasosSVC(max_iter=2),
    ],
    ids=lambda machine: type(machine).__name__,
)
def test_every_kind_of_machine_says_something_and_what_it_reached(machine, capsys, three):
    X, y = three
    if isinstance(machine, (KernelMachineClassifier, PegasosSVC)):
        y = y > 0
    clone(machine).set_params(verbose=True).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) >= 2
    assert all(line.startswith("[mercer]") for line in lines)
    assert lines[-1].endswith(("converged", "all steps", "max_iter"))


def test_the_time_left_of_an_error_that_falls_exponentially():
    pace = ProgressEstimate(start_time=100.0)
    assert pace.share(100.0, 1e6) is None
    for t in range(1, 6):
        share = pace.share(100.0 + t, 1e6 * math.exp(-t))
    assert share == pytest.approx(5 / math.log(1e6))
    assert ProgressEstimate(0.0).share(5.0, math.nan) is None
    stuck = ProgressEstimate(0.0)
    assert [stuck.share(t, 10.0) for t in (1.0, 2.0, 3.0)] == [None] * 3


@pytest.mark.parametrize(
    ("seconds", "share", "words"),
    [
        (10.0, None, ""),
        (10.0, 0.0, ""),
        (10.0, 0.5, "about 10 s left"),
        (10.0, 0.99, "about 1 s left"),
        (63.0, 0.6, "about 40 s left"),
        (60.0, 0.4, "about 1.5 min left"),
        (600.0, 0.25, "about 30 min left"),
        (6000.0, 0.25, "about 5.0 h left"),
    ],
)
def test_time_left_in_words(seconds, share, words):
    assert StatusLine("", seconds, share).time_left == words
