"""What a fit leaves is what its class declares: names are found, sizes agree, and anything else is refused."""

import numpy as np
import pytest

import mercer
from mercer.estimators.fitting.pipeline.class_spec import check_state, declared, restore, state_of
from mercer.estimators.fitting.pipeline.state import Array, Count, Number, Record, fitted
from mercer.runtime.errors import ModelFormatError
from reference import small_models

X = np.random.default_rng(0).normal(size=(30, 3))
Y = (X[:, 0] > 0).astype(int)


@pytest.mark.parametrize("name", mercer.estimators.__all__)
def test_every_estimator_declares_what_its_fit_leaves(name):
    model = getattr(mercer, name)().fit(X, Y)
    left = {attribute for attribute in vars(model) if attribute.endswith("_")}
    kinds = declared(type(model))
    assert left <= set(kinds)
    assert {attribute for attribute, kind in kinds.items() if kind.required and not kind.unless} <= left
    check_state(model)


@pytest.mark.parametrize("name", small_models.MODELS)
def test_every_class_that_is_saved_leaves_what_it_declares(name):
    """Machines, tables, searches, calibrated models and maps of features, fitted and checked as a file would be."""
    model, _ = small_models.fitted(name)
    for one in [step for _, step in model.steps] if hasattr(model, "steps") else [model]:
        assert {attribute for attribute in vars(one) if attribute.endswith("_")} <= set(declared(type(one)))
        check_state(one)


def test_a_class_adds_to_its_ancestors():
    class Tuned(mercer.SVC):
        _FITTED = fitted(tried_=Count(required=True))

    assert declared(Tuned).keys() == declared(mercer.SVC).keys() | {"tried_"}
    model = Tuned().fit(X, Y)
    with pytest.raises(ModelFormatError, match="it has no tried_"):
        check_state(model)
    model.tried_ = 3
    header, arrays = state_of(model)
    assert restore(Tuned, header, arrays).tried_ == 3
    with pytest.raises(ModelFormatError, match="'tried_' is not an attribute that a fitted SVC has"):
        restore(mercer.SVC, header, arrays)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Array("features"), np.zeros(4)),
        (Array("features"), np.zeros(3, dtype=int)),
        (Array("features"), np.array([0.0, np.inf, 0.0])),
        (Array("features", nan=True), np.array([0.0, np.inf, 0.0])),
        (Array(None, "outputs"), np.zeros(30)),
        (Number(), np.nan),
        (Number(), None),
        (Number(per_output=True), np.zeros(2)),
        (Count(), -1),
        (Count(), True),
        (Count(), np.zeros(1, dtype=int)),
        (Record(Number, required=Number()), Number()),
    ],
)
def test_kinds_refuse(kind, value):
    model = mercer.SVC().fit(X, Y)
    with pytest.raises(ModelFormatError, match=r"^it[ .]"):
        kind.check("it", value, model)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Array("features", nan=True), np.array([0.0, np.nan, 0.0])),
        (Array(None, "outputs", flat=True), np.zeros(30)),
        (Number(or_none=True), None),
        (Number(per_output=True), 0.5),
        (Count(or_array=True), np.zeros(1, dtype=int)),
    ],
)
def test_kinds_take(kind, value):
    kind.check("it", value, mercer.SVC().fit(X, Y))


CONTRADICTIONS = {
    "_theta_": np.zeros((1, 2)),
    "_total_": np.full((1, 4), np.nan),
    "_marks_": np.zeros((1, 4)),
    "intercept_": np.zeros(2),
    "t_": -1,
    "n_iter_": 1.5,
    "classes_": np.array([0]),
    "class_weight_": np.ones(3),
}


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        *((kernel, name) for kernel in ("linear", "rbf") for name in CONTRADICTIONS),
        ("linear", "coef_"),
        ("rbf", "dual_coef_"),
    ],
)
def test_a_stochastic_machine_that_contradicts_itself_is_refused(kernel, name):
    model = mercer.PegasosSVC(kernel=kernel, max_iter=5, random_state=0).fit(X, Y)
    check_state(model)
    setattr(model, name, CONTRADICTIONS.get(name, np.zeros((1, 99))))
    with pytest.raises(ModelFormatError):
        check_state(model)
