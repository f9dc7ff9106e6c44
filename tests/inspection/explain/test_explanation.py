"""The object that `explain` returns: outputs, classes, rows, frames, and shap's own object."""

import sys
import time
import types

import numpy as np
import pandas as pd
import pytest

from mercer import SVC, SVR
from mercer.runtime.errors import MissingExtraError

RNG = np.random.default_rng(2)
X = RNG.normal(size=(60, 4))
LABELS = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + X[:, 1] * X[:, 2], [-0.5, 0.5])]
MODEL = SVC(C=3.0).fit(X, LABELS)
FOUND = MODEL.explain(X[:8], X[20:40])
PAIRS = SVC(C=3.0, decision_function_shape="ovo").fit(X, LABELS).decision_function(X[:8])


def test_a_class_has_the_sum_of_its_pairs():
    assert FOUND.output_names == ("a against b", "a against c", "b against c")
    confidence = {"a": PAIRS[:, 0] + PAIRS[:, 1], "b": PAIRS[:, 2] - PAIRS[:, 0], "c": -PAIRS[:, 1] - PAIRS[:, 2]}
    for label, expected in confidence.items():
        one = FOUND.of_class(label)
        assert one.output_names == (label,)
        np.testing.assert_allclose(one.base_values + one.values.sum(axis=1), expected, atol=1e-12)
    against_rest = SVC(C=3.0, multiclass="ovr").fit(X, LABELS)
    one = against_rest.explain(X[:8], X[20:40]).of_class("c")
    expected = against_rest.decision_function(X[:8])[:, 2]
    np.testing.assert_allclose(one.base_values + one.values.sum(axis=1), expected, atol=1e-12)


def test_two_classes_speak_for_the_second():
    model = SVC(C=3.0).fit(X, LABELS == "a")
    found = model.explain(X[:8], X[20:40])
    assert found.output_names == ("True",)
    np.testing.assert_array_equal(found.of_class(False).values, -found.values)
    np.testing.assert_array_equal(found.of_class(True).base_values, found.base_values)


def test_one_output_by_name_or_number():
    np.testing.assert_array_equal(FOUND.output("b against c").values, FOUND.values[:, :, 2])
    np.testing.assert_array_equal(FOUND.output(-1).base_values, FOUND.base_values[:, 2])
    with pytest.raises(ValueError, match="the outputs are a against b, a against c"):
        FOUND.output("d")
    with pytest.raises(IndexError, match="no output 3"):
        FOUND.output(3)
    with pytest.raises(ValueError, match="one output only"):
        FOUND.output(0).output(0)
    with pytest.raises(ValueError, match="not one of the classes"):
        FOUND.of_class("d")
    with pytest.raises(ValueError, match="only classifiers"):
        SVR().fit(X, X[:, 0]).explain(X[:2], X).of_class("a")


def test_some_rows():
    np.testing.assert_array_equal(FOUND[2:4].values, FOUND.values[2:4])
    np.testing.assert_array_equal(FOUND[[5]].data, X[5:6])
    assert FOUND[-1].values.shape == (1, 4, 3)
    assert len(FOUND[np.arange(8) > 5]) == 2


def test_names_come_from_the_table():
    table = pd.DataFrame(X, columns=["one", "two", "three", "four"])
    model = SVR(C=3.0).fit(table, X[:, 0])
    found = model.explain(table[:5], table[10:20])
    assert found.feature_names == ["one", "two", "three", "four"]
    frame = found.to_frame()
    assert list(frame) == found.feature_names
    np.testing.assert_array_equal(frame, found.values)
    assert str(found).splitlines()[1].startswith("one")


def test_frames_of_several_outputs():
    frame = FOUND.to_frame()
    np.testing.assert_array_equal(frame["a against c"]["x3"], FOUND.values[:, 3, 1])
    np.testing.assert_allclose(FOUND.importance, np.abs(FOUND.values).mean(axis=0))


def test_shap_gets_what_its_object_takes(monkeypatch):
    given = {}
    fake = types.SimpleNamespace(Explanation=lambda **kw: given.update(kw) or "made")
    monkeypatch.setitem(sys.modules, "shap", fake)
    assert FOUND.to_shap() == "made"
    assert given["values"] is FOUND.values
    assert given["base_values"].shape == (8, 3)
    assert given["output_names"] == list(FOUND.output_names)
    assert FOUND.output(0).to_shap() == "made"
    assert given["output_names"] is None


def test_without_shap_the_error_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "shap", None)
    with pytest.raises(MissingExtraError, match="pip install 'shap'"):
        FOUND.to_shap()


def test_progress_is_told(capsys, monkeypatch):
    from mercer.inspection.explain import shapley

    times = iter(range(100))
    monkeypatch.setattr(time, "monotonic", lambda: 2.0 * next(times))
    monkeypatch.setattr(shapley, "_VALUES_PER_CALL", 1)
    MODEL.explain(X[:4], X[20:22], verbose=True)
    assert "of 4 samples explained" in capsys.readouterr().out
