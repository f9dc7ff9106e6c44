"""What comes chunk by chunk: partial_fit, forget and fit_stream."""

import numpy as np
from sklearn.exceptions import NotFittedError

from bad_inputs.given import T, X, Y, changed, corrupted, rls, rls_classifier, stream
from bad_inputs.judge import Case, Raises
from mercer import PegasosSVC, RLSClassifier, RLSRegressor

CASES = [
    Case(
        "PegasosSVC, stream: column out of range",
        lambda: stream(corrupted("indices", 4, 1000)),
        Raises(ValueError, r"(?s)damaged CSR.*1000"),
    ),
    Case(
        "PegasosSVC, stream: NaN", lambda: stream(changed(X, ((3, 1), np.nan))), Raises(ValueError, r"NaN: X\[3, 1\]")
    ),
    Case(
        "PegasosSVC, stream: no classes",
        lambda: stream(classes=None),
        Raises(ValueError, r"classes must be passed on the first call"),
    ),
    Case("PegasosSVC, stream: one class", lambda: stream(classes=[0]), Raises(ValueError, r"at least 2 classes")),
    Case(
        "PegasosSVC, stream: unknown label",
        lambda: stream(y=Y + 1),
        Raises(ValueError, r"y\[20\]=.*2.*not one of the classes \[0, 1\]"),
    ),
    Case(
        "PegasosSVC, stream: labels of another type",
        lambda: stream(y=Y.astype(str)),
        Raises(ValueError, r"(?s)labels of dtype.*\[0, 1\]"),
    ),
    Case("PegasosSVC, stream: y too short", lambda: stream(y=Y[:-1]), Raises(ValueError, r"(?s)40.*39")),
    Case(
        "PegasosSVC, stream: other classes",
        lambda: stream().partial_fit(X, Y, [0, 2]),
        Raises(ValueError, r"not the same as on last call"),
    ),
    Case(
        "PegasosSVC, stream: other columns",
        lambda: stream().partial_fit(X[:, :2], Y),
        Raises(ValueError, r"2 features"),
    ),
    Case(
        "PegasosSVC, stream: balanced",
        lambda: stream(class_weight="balanced"),
        Raises(ValueError, r"(?s)balanced.*all labels at once"),
    ),
    Case(
        "PegasosSVC, stream: early stopping",
        lambda: stream(early_stopping=True),
        Raises(ValueError, r"early_stopping.*all samples at once"),
    ),
    Case(
        "PegasosSVC, stream: certificate",
        lambda: stream(certificate=True),
        Raises(ValueError, r"certificate.*all samples at once"),
    ),
    Case(
        "PegasosSVC, stream: precomputed",
        lambda: stream(X @ X.T, kernel="precomputed"),
        Raises(AttributeError, r"partial_fit"),
    ),
    Case(
        "PegasosSVC, stream: too heavy",
        lambda: stream(sample_weight=np.full(40, 1e9)),
        Raises(ValueError, r"(?s)add up to 4e\+10.*visits"),
    ),
    Case(
        "PegasosSVC, stream: empty",
        lambda: PegasosSVC().fit_stream([], classes=[0, 1]),
        Raises(ValueError, r"no chunk"),
    ),
    Case(
        "PegasosSVC, stream: not tuples",
        lambda: PegasosSVC().fit_stream([X], classes=[0, 1]),
        Raises(ValueError, r"chunk 0 .*ndarray.*tuples"),
    ),
    Case(
        "RLSRegressor: forget before learning",
        lambda: RLSRegressor(kernel="linear").forget(X, T),
        Raises(NotFittedError, "not fitted"),
    ),
    Case(
        "RLSRegressor: partial_fit of a Gaussian",
        lambda: RLSRegressor().partial_fit(X, T),
        Raises(AttributeError, "partial_fit"),
    ),
    Case(
        "RLSRegressor: partial_fit after another solver",
        lambda: rls(kernel="linear", solver="eigen").partial_fit(X, T),
        Raises(ValueError, "solver='covariance'"),
    ),
    Case(
        "RLSRegressor: other outputs later",
        lambda: rls(kernel="linear").partial_fit(X, np.c_[T, T]),
        Raises(ValueError, "2 outputs, but the samples before had 1"),
    ),
    Case(
        "RLSClassifier: balanced in parts",
        lambda: RLSClassifier(kernel="linear", class_weight="balanced").partial_fit(X, Y, classes=[0, 1]),
        Raises(ValueError, "dict of class weights"),
    ),
    Case(
        "RLSClassifier: other classes later",
        lambda: rls_classifier(kernel="linear").partial_fit(X, Y, classes=[0, 1, 2]),
        Raises(ValueError, "differ from those of the first call"),
    ),
    Case(
        "PegasosSVC, stream: numbers that overflow",
        lambda: stream(X * 1e200),
        Raises(FloatingPointError, r"overflowed"),
    ),
]
