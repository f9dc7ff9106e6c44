"""What a running fit tells: lines for people, callbacks for programs."""

import numpy as np
import pytest
from sklearn.datasets import make_classification

from mercer import SVC


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


def test_callbacks_see_every_sub_problem(three):
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

    model = SVC().set_callbacks(Recorder())
    model.fit(*three)
    assert seen[0] == "setup"
    assert seen[-1] == "teardown"
    names = [name for kind, name in seen[1:-1] if kind == "begin"]
    assert {"fit", "0 against 1", "0 against 2", "1 against 2", "step"} <= set(names)
    begun = [name for kind, name in seen[1:-1] if kind == "begin"]
    ended = [name for kind, name in seen[1:-1] if kind == "end"]
    assert sorted(begun) == sorted(ended)
    plain = SVC().fit(*three)
    np.testing.assert_array_equal(model.dual_coef_, plain.dual_coef_)
