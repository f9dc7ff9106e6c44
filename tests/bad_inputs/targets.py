"""Labels and targets: what no machine can learn, and what only looks odd."""

import numpy as np
import pandas as pd
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.model_selection import PredefinedSplit, cross_validate

from bad_inputs.given import (
    CLASSIFIERS,
    MASK,
    REFUSED,
    REGRESSORS,
    THREE,
    N,
    T,
    X,
    Y,
    changed,
    fit,
    frame,
    objects,
    pegasos,
    rls,
    rls_classifier,
    rls_cv,
    svc,
)
from bad_inputs.judge import Case, Raises, Warns, Works, accurate, usable
from mercer import SVC, SVR, LinearSVC, LinearSVR, NuSVR, PegasosSVC, QuantileSVR, RLSRegressor

# Labels that cannot be compared.
MIXED = np.array([1, "a"] * 20, dtype=object)


def objects_of(labels):
    return np.array(labels, dtype=object)


CASES = [
    Case("y too short", lambda: svc(X, Y[:-1]), Raises(ValueError, r"(?s)40.*39|39.*40"), number=5),
    Case("one sample", lambda: svc(X[:1], Y[:1]), Raises(ValueError, r"class"), number=6),
    Case("one per class", lambda: svc(X[[0, -1]], Y[[0, -1]]), Works(usable), number=7),
    Case("one class", lambda: svc(X, 0 * Y), Raises(ValueError, r"(?s)2 classes.*1.*0"), number=8),
    Case(
        "as many classes as samples",
        lambda: svc(X[:12], np.arange(12), gamma=10.0, C=100.0),
        Works(lambda m: usable(m) and m.score(X[:12], np.arange(12)) == 1.0 and m.dual_coef_.shape[0] == 11),
        number=9,
    ),
    Case("y not discrete", lambda: svc(X, X[:, 0]), Raises(ValueError, r"(?i)continuous|label type"), number=10),
    Case(
        "y of str",
        lambda: svc(X, np.array(["no", "yes"])[Y]),
        Works(lambda m: list(m.classes_) == ["no", "yes"]),
        number=11,
    ),
    Case("y of bool", lambda: svc(X, Y == 1), Works(lambda m: m.predict(X).dtype == bool), number=11),
    Case(
        "y of objects",
        lambda: svc(X, np.array(["b", "a"], dtype=object)[Y]),
        Works(lambda m: list(m.classes_) == ["a", "b"] and usable(m)),
        number=11,
    ),
    Case("y of mixed types", lambda: svc(X, MIXED), Raises((ValueError, TypeError), r"(?i)type|label"), number=12),
    *(
        Case(
            f"{what}, {form.__name__}",
            lambda name, labels=labels, form=form: fit(name, y=form(labels)),
            Raises(ValueError, text),
            to=CLASSIFIERS,
            number=number,
        )
        for form in (list, tuple, objects_of)
        for what, labels, text, number in (
            ("NaN among names", ["b", float("nan")] + ["a"] * (N - 2), r"NaN.*y\[1\]=nan", 13),
            ("None among names", ["b", None] + ["a"] * (N - 2), r"None.*y\[1\]=None", 13),
            ("None among integers", [1, None] + [2] * (N - 2), r"None.*y\[1\]=None", 13),
            ("an integer among names", ["b", "a"] * 10 + [1] + ["a"] * 19, r"int, str.*y\[20\]=1", 12),
            ("bool and names", [True, "a"] * (N // 2), r"bool, str.*y\[1\]='a'", 12),
        )
    ),
    Case("NaN in y", lambda: svc(X, changed(Y, (5, np.nan))), Raises(ValueError, r"(?s)y.*NaN|NaN.*\by\b"), number=13),
    Case("inf in y", lambda: svc(X, changed(Y, (5, np.inf))), Raises(ValueError, r"(?i)y.*inf|inf.*\by\b"), number=13),
    Case("y a column", lambda: svc(X, Y[:, None]), Warns(DataConversionWarning, r"1d array", accurate), number=14),
    Case("y of two outputs", lambda: svc(X, np.c_[Y, Y]), Raises(ValueError, r"(?i)1d|multi|shape"), number=15),
    Case(
        "predict too few columns", lambda: svc().predict(X[:, :2]), Raises(ValueError, r"(?s)2 features.*3"), number=16
    ),
    Case(
        "predict other names",
        lambda: svc(frame()).predict(frame(("a", "b", "z"))),
        Raises(ValueError, r"(?s)feature names.*z"),
        number=17,
    ),
    Case(
        "predict reordered names",
        lambda: svc(frame()).predict(frame()[["c", "b", "a"]]),
        Raises(ValueError, r"(?s)feature names.*order"),
        number=17,
    ),
    Case("predict before fit", lambda: SVC().predict(X), Raises(NotFittedError, r"SVC.*not fitted"), number=18),
    Case(
        "decide before fit", lambda: SVC().decision_function(X), Raises(NotFittedError, r"SVC.*not fitted"), number=18
    ),
    Case(
        "class absent in a fold",
        lambda: cross_validate(SVC(), X, THREE, cv=PredefinedSplit(THREE), return_estimator=True)["estimator"],
        Works(lambda ms: [m.classes_.tolist() for m in ms] == [[1, 2], [0, 2], [0, 1]]),
        number=20,
    ),
    Case(
        "LinearSVR: NaN in y",
        lambda: LinearSVR().fit(X, np.where(Y > 0, np.nan, 1.0)),
        Raises((ValueError, TypeError), r"y\[20\]"),
    ),
    Case("LinearSVC: one class", lambda: LinearSVC().fit(X, np.zeros(40)), Raises((ValueError, TypeError), "1 class")),
    Case("SVR: y missing", lambda: SVR().fit(X, None), Raises((ValueError, TypeError, AttributeError), r"requires y")),
    Case(
        "SVR: y of strings",
        lambda: SVR().fit(X, np.array(["a"] * 40)),
        Raises((ValueError, TypeError, AttributeError), r"y must hold real numbers.*such as SVC"),
    ),
    Case(
        "SVR: y with NaN",
        lambda: SVR().fit(X, changed(T, (7, np.nan))),
        Raises((ValueError, TypeError, AttributeError), r"y contains NaN: y\[7\]"),
    ),
    Case(
        "NuSVR: y with inf",
        lambda: NuSVR().fit(X, changed(T, (7, np.inf))),
        Raises((ValueError, TypeError, AttributeError), r"y contains infinity: y\[7\]"),
    ),
    Case(
        "NuSVR: y of two outputs",
        lambda: NuSVR().fit(X, np.c_[T, T]),
        Raises((ValueError, TypeError, AttributeError), r"1d array.*RLSRegressor.*MultiOutputRegressor"),
    ),
    Case(
        "QuantileSVR: y too short",
        lambda: QuantileSVR().fit(X, T[:-1]),
        Raises((ValueError, TypeError, AttributeError), r"inconsistent numbers of samples"),
    ),
    Case("PegasosSVC: one class", lambda: pegasos(X, 0 * Y), Raises(ValueError, r"2 classes")),
    Case("PegasosSVC: y too short", lambda: pegasos(X, Y[:-1]), Raises(ValueError, r"(?s)40.*39")),
    Case(
        "PegasosSVC: validation takes a class",
        lambda: pegasos(X[15:22], np.array([0, 0, 0, 0, 0, 0, 1]), early_stopping=True, validation_fraction=0.9),
        Raises(ValueError, r"(?s)early_stopping.*validation_fraction"),
    ),
    Case("RLSRegressor: y too short", lambda: rls(X, T[:-1]), Raises(ValueError, "(?s)40.*39|39.*40")),
    Case("RLSRegressor: 3-D y", lambda: rls(X, np.zeros((N, 2, 2))), Raises(ValueError, "shape")),
    Case("RLSRegressor: y without outputs", lambda: rls(X, np.zeros((N, 0))), Raises(ValueError, "shape|0 feature")),
    Case("RLSRegressor: no y", lambda: rls(X, None), Raises(ValueError, "y is None")),
    Case(
        "RLSRegressor: y of words",
        lambda: rls(X, np.array(["a"] * N)),
        Raises(ValueError, "(?i)numeric|string|convert"),
    ),
    Case("RLSRegressor: complex y", lambda: rls(X, T + 1j), Raises(ValueError, "(?i)complex")),
    Case(
        "RLSRegressor: NaN in y",
        lambda: rls(X, changed(T, (5, np.nan))),
        Raises(ValueError, r"y contains nan at \(5,\)"),
    ),
    Case(
        "RLSRegressor: inf in y",
        lambda: rls(X, changed(np.c_[T, T], ((5, 1), np.inf))),
        Raises(ValueError, r"y contains inf at \(5, 1\)"),
    ),
    Case("RLSRegressorCV: one sample to leave out", lambda: rls_cv(X[:1], T[:1]), Raises(ValueError, "n_samples = 1")),
    Case("RLSClassifier: one class", lambda: rls_classifier(y=0 * Y), Raises(ValueError, "2 classes")),
    Case(
        "RLSClassifier: continuous labels", lambda: rls_classifier(y=T), Raises(ValueError, "(?i)continuous|label type")
    ),
    Case(
        "RLSClassifier: multi-output labels",
        lambda: rls_classifier(y=np.c_[Y, Y]),
        Raises(ValueError, "(?i)1d|multi|shape"),
    ),
    Case(
        "labels: masked labels",
        lambda name: fit(name, y=np.ma.masked_array(Y, mask=MASK)),
        Raises(REFUSED, r"(?s)y is a masked array"),
        to=CLASSIFIERS,
    ),
    Case(
        "labels: objects that are integers",
        lambda name: fit(name, y=Y.astype(object)),
        Raises(REFUSED, r"(?s)y is an array of objects \(int\).*astype"),
        to=CLASSIFIERS,
    ),
    Case(
        "labels: str and None",
        lambda name: fit(name, y=objects("a", None)),
        Raises(REFUSED, r"(?s)None: y\[1\]=None"),
        to=CLASSIFIERS,
    ),
    Case(
        "labels: str and int",
        lambda name: fit(name, y=objects("a", 1)),
        Raises(REFUSED, r"(?s)y mixes label types \(int, str\)"),
        to=CLASSIFIERS,
    ),
    Case(
        "labels: NaN",
        lambda name: fit(name, y=np.where(MASK, np.nan, Y)),
        Raises(REFUSED, r"(?s)y contains NaN: y\[3\]"),
        to=CLASSIFIERS,
    ),
    Case(
        "labels: infinity",
        lambda name: fit(name, y=np.where(MASK, np.inf, Y)),
        Raises(REFUSED, r"(?s)y contains infinity: y\[3\]"),
        to=CLASSIFIERS,
    ),
    Case(
        "labels: NA",
        lambda name: fit(name, y=pd.Series([None, *Y[1:]], dtype="Int64")),
        Raises(REFUSED, r"(?s)y contains NaN: y\[0\]"),
        to=CLASSIFIERS,
    ),
    Case("labels: complex", lambda name: fit(name, y=Y + 1j), Raises(REFUSED, r"(?i)complex"), to=CLASSIFIERS),
    Case(
        "targets: masked targets",
        lambda name: fit(name, y=np.ma.masked_array(T, mask=MASK)),
        Raises(REFUSED, r"(?s)y is a masked array"),
        to=REGRESSORS,
    ),
    Case(
        "targets: text",
        lambda name: fit(name, y=T.astype(str)),
        Raises(REFUSED, r"(?s)y must hold real numbers.*<U.*Convert"),
        to=REGRESSORS,
    ),
    Case(
        "targets: text as objects",
        lambda name: fit(name, y=objects("1.5")),
        Raises(REFUSED, r"(?s)y must hold real numbers.*object.*'1.5'"),
        to=REGRESSORS,
    ),
    Case(
        "targets: bytes",
        lambda name: fit(name, y=T.astype("S")),
        Raises(REFUSED, r"(?s)y must hold real numbers"),
        to=REGRESSORS,
    ),
    Case(
        "targets: dates",
        lambda name: fit(name, y=T.astype("M8[D]")),
        Raises(REFUSED, r"(?s)y must hold real numbers.*datetime64"),
        to=REGRESSORS,
    ),
    Case(
        "targets: NaN",
        lambda name: fit(name, y=np.where(MASK, np.nan, T)),
        Raises(REFUSED, r"(?i)y contains nan.*3"),
        to=REGRESSORS,
    ),
    Case(
        "targets: infinity",
        lambda name: fit(name, y=np.where(MASK, np.inf, T)),
        Raises(REFUSED, r"(?i)y contains inf.*3"),
        to=REGRESSORS,
    ),
    Case(
        "targets: missing",
        lambda name: fit(name, y=objects(None)),
        Raises(REFUSED, r"(?i)y contains nan.*0"),
        to=REGRESSORS,
    ),
    Case("RLSRegressor: not fitted", lambda: RLSRegressor().predict(X), Raises(NotFittedError, "not fitted")),
    Case("PegasosSVC: not fitted", lambda: PegasosSVC().predict(X), Raises(NotFittedError, "not fitted")),
]
