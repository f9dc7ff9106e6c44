"""What a running fit tells: lines for people, callbacks for programs."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification

from mercer import SVC, LinearSVC, LinearSVR


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
        (LinearSVC(multi_class="crammer_singer", bias=False, C=0.01), ("solve",)),
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
