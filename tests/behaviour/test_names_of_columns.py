"""Whatever takes samples compares the names of their columns: every public method and function, found by inspection."""

import copy
import inspect
from operator import attrgetter

import numpy as np
import pytest

import mercer
import mercer.inspection.features
from mercer import SVC, SVR

pd = pytest.importorskip("pandas")

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.normal(size=(30, 3)), columns=list("abc"))
SWAPPED = FRAME[["b", "a", "c"]]
LABELS = np.where(FRAME.a + 0.3 * RNG.normal(size=30) > 0, 1, 0)
NUMBERS = np.sin(FRAME.a).to_numpy()
# How an estimator is made that cannot be made without arguments, or searches a large grid.
MADE = {
    "CalibratedClassifier": lambda made: made(SVC(), cv=3),
    "CalibratedRegressor": lambda made: made(SVR(), cv=3),
    "Tabular": lambda made: made(SVC()),
    "TunedOneClassSVM": lambda made: made({"nu": [0.5]}, cv=3),
    "TunedSVC": lambda made: made({"C": [1.0]}, cv=3),
    "TunedSVR": lambda made: made({"C": [1.0]}, cv=3),
}
# A kernel and a function of its space are of vectors, which have no names.
OF_VECTORS = ("kernel_", "kernel_y_", "function_")
# These train on the samples that they are given, whatever the model was trained on.
TRAINING = (
    *("certify", "leave_one_out", "tune", "transduce", "radius_margin", "span_bound"),
    *("span_estimate", "xi_alpha", "ConvergenceDisplay.from_estimator", "PathDisplay.from_compression"),
)


def estimators():
    for place in (mercer, mercer.features):
        for name in place.__all__:
            if inspect.isclass(found := getattr(place, name)) and hasattr(found, "fit"):
                yield found


def fitted(made):
    name = made.__name__
    y = LABELS if name.endswith(("Classifier", "ClassifierCV", "SVC")) or name == "Tabular" else NUMBERS
    return MADE.get(name, lambda made: made())(made).fit(FRAME, y), y


def takes_samples(function):
    try:
        return next(iter(inspect.signature(function).parameters), "") == "X"
    except ValueError:  # no signature
        return False


def arguments(function, y):
    """Values of the other arguments, where they have to be given."""
    known = {"y": y, "background": FRAME, "features": 0}
    parameters = inspect.signature(function).parameters
    return {name: known[name] for name in known if name in parameters}


def methods(model):
    """Public methods of samples; `fit` learns the names anew."""
    for name in sorted(dir(model)):
        if not name.startswith(("_", "fit")) and name not in OF_VECTORS:
            found = getattr(model, name, None)
            if callable(found) and takes_samples(found):
                yield name


@pytest.mark.parametrize("made", list(estimators()), ids=lambda made: made.__name__)
@pytest.mark.filterwarnings("ignore")
def test_a_method_refuses_columns_in_another_order_or_finds_them_by_name(made):
    model, y = fitted(made)
    asked = list(methods(model))
    assert asked or not hasattr(model, "predict")
    for name in asked:
        method = getattr(copy.deepcopy(model), name)
        given = arguments(method, y) if name != "signed_distance" else {}
        try:
            right = method(FRAME, **given)
        except (TypeError, ValueError):  # a refusal of its own, whatever the samples are
            with pytest.raises((TypeError, ValueError)):
                getattr(copy.deepcopy(model), name)(SWAPPED, **given)
            continue
        if made is mercer.Tabular:
            found = method(SWAPPED, **given)
            if isinstance(right, np.ndarray | float):
                np.testing.assert_array_equal(found, right)
        else:
            with pytest.raises(ValueError, match="feature names"):
                method(SWAPPED, **given)


def functions():
    for place in ("mercer", "theory", "displays", "paths", "explain", "estimators.transduction"):
        module = mercer if place == "mercer" else attrgetter(place)(mercer)
        for name in getattr(module, "__all__", vars(module)):
            thing = getattr(module, name)
            made = [(name, thing)] if inspect.isfunction(thing) else []
            if inspect.isclass(thing) and hasattr(thing, "from_estimator"):
                made = [(f"{name}.from_estimator", thing.from_estimator)]
            for called, function in made:
                parameters = inspect.signature(function).parameters
                if "X" in parameters and next(iter(parameters)) in ("model", "estimator") and called not in TRAINING:
                    yield called, function


FUNCTIONS = dict(functions())


def test_functions_are_found():
    assert {"insight", "explain", "compress", "MarginDisplay.from_estimator"} <= set(FUNCTIONS)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.filterwarnings("ignore")
def test_a_function_of_a_model_refuses_columns_in_another_order(name):
    pytest.importorskip("matplotlib").use("agg")
    function = FUNCTIONS[name]
    model = SVC().fit(FRAME, LABELS)
    if name.startswith("Reliability"):
        model = model.calibrate(FRAME, LABELS)
    if name.startswith("Interval"):
        model = SVR().fit(FRAME, NUMBERS).calibrate(FRAME, NUMBERS)
    y = NUMBERS if name.startswith("Interval") else LABELS
    given = arguments(function, y) | ({"n_vectors": 5} if name == "compress" else {})
    given |= {"features": (0, 1)} if name == "DecisionDisplay.from_estimator" else {}
    function(model, X=FRAME, **given)
    with pytest.raises(ValueError, match="feature names"):
        function(model, X=SWAPPED, **given)
