"""Formulas, with a stand-in for the three names of formulaic that are used, and with the package where it is there."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from mercer import SVC, SVR
from mercer.errors import MissingExtraError
from mercer.tables.formula import fit_formula

pd = pytest.importorskip("pandas")

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame({"a": RNG.normal(size=40), "b": RNG.normal(size=40)})
TABLE["y"] = TABLE.a - TABLE.b**2
TABLE["kind"] = np.where(TABLE.a > 0, "up", "down")


class Matrix(pd.DataFrame):
    """A model matrix with its specification."""

    _metadata = ("model_spec",)


def side(names, data):
    columns = {"Intercept": 1.0} | {name: data.eval(name) for name in names}
    made = Matrix(pd.DataFrame(columns, index=data.index))
    made.model_spec = SimpleNamespace(get_model_matrix=lambda new: side(names, new))
    return made


class Formula:
    def __init__(self, text):
        self.left, _, right = (part.strip() for part in text.partition("~"))
        self.names = [name.strip() for name in right.split("+")]

    def get_model_matrix(self, data):
        left = data[[self.left]]
        left = pd.get_dummies(left[self.left]) if left.dtypes.iloc[0].kind not in "fi" else left
        return SimpleNamespace(lhs=left, rhs=side(self.names, data))


@pytest.fixture
def stand_in(monkeypatch):
    monkeypatch.setitem(sys.modules, "formulaic", SimpleNamespace(Formula=Formula))


def test_a_formula_names_columns_and_what_becomes_of_them(stand_in):
    found = fit_formula(SVR(C=10), "y ~ a + b*b", TABLE)
    plain = SVR(C=10).fit(np.column_stack([TABLE.a, TABLE.b**2]), TABLE.y)
    np.testing.assert_array_equal(found.predict(TABLE), plain.predict(np.column_stack([TABLE.a, TABLE.b**2])))


def test_a_factor_on_the_left_is_classes(stand_in):
    found = fit_formula(SVC(), "kind ~ a + b", TABLE)
    assert found.model.classes_.tolist() == ["down", "up"]
    assert (found.predict(TABLE) == TABLE.kind).mean() > 0.9
    assert found.decision_function(TABLE).shape == (40,)


def test_it_says_what_it_needs(monkeypatch):
    with pytest.raises(ValueError, match="left and a right side"):
        fit_formula(SVR(), "a + b", TABLE)
    monkeypatch.setitem(sys.modules, "formulaic", None)
    with pytest.raises(MissingExtraError, match=r"mercer\[formula\]"):
        fit_formula(SVR(), "y ~ a", TABLE)


def test_with_formulaic_itself():
    pytest.importorskip("formulaic")
    found = fit_formula(SVR(C=10), "y ~ a + I(b**2)", TABLE)
    plain = SVR(C=10).fit(np.column_stack([TABLE.a, TABLE.b**2]), TABLE.y)
    np.testing.assert_allclose(found.predict(TABLE), plain.predict(np.column_stack([TABLE.a, TABLE.b**2])))
