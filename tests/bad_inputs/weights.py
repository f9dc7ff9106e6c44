"""Weights of samples and classes."""

import math

import numpy as np
import pandas as pd
from scipy import sparse

from bad_inputs.given import (
    CLASSIFIERS,
    EVERY,
    MASK,
    REFUSED,
    THREE,
    WITH,
    N,
    T,
    X,
    Y,
    changed,
    fit,
    pegasos,
    rls,
    svc,
    values,
)
from bad_inputs.judge import Case, Raises, Warns, Works, same_as
from mercer import SVR, LinearSVC, LinearSVR, NuSVC, OneClassSVM


def explode(A, B):
    raise AssertionError("the kernel was evaluated")


CASES = [
    Case(
        "weight of an unknown class",
        lambda: svc(class_weight={0: 1.0, 1: 1.0, 7: 2.0}),
        Works(same_as(svc, exactly=True)),
        number=75,
    ),
    Case(
        "weights of other classes only",
        lambda name: fit(name, class_weight={7: 2.0}),
        Warns(UserWarning, r"class_weight names \[7\], but the classes are \[0, 1\]", lambda m: m.score(X, Y) > 0.8),
        to=WITH["class_weight"],
    ),
    Case(
        "an unknown class's weight is a word",
        lambda: svc(class_weight={0: 1.0, 1: 1.0, 7: "many"}),
        Raises(ValueError, r"class_weight\[7\]='many'"),
    ),
    Case(
        "negative class weight",
        lambda: svc(class_weight={0: -1.0}),
        Raises(ValueError, r"(?s)class_weight.*-1"),
        number=75,
    ),
    Case("zero class weight", lambda: svc(class_weight={0: 0.0}), Raises(ValueError, r"(?i)class.*\b0\b"), number=75),
    Case(
        "NaN class weight",
        lambda: svc(class_weight={0: np.nan}),
        Raises(ValueError, r"(?s)class_weight.*nan"),
        number=75,
    ),
    Case(
        "balanced, one class",
        lambda: svc(X, 0 * Y, class_weight="balanced"),
        Raises(ValueError, r"2 classes"),
        number=75,
    ),
    *(
        Case(
            f"sample weight {value}",
            lambda value=value: svc(sample_weight=changed(np.ones(N), (3, value), (7, value))),
            Raises(ValueError, r"(?is)sample.?weight.*\b3\b"),
            number=76,
        )
        for value in (np.nan, np.inf, -1.0)
    ),
    Case(
        "some weights zero",
        lambda: svc(sample_weight=(np.arange(N) % 3 > 0).astype(float)),
        Works(same_as(lambda: svc(X[np.arange(N) % 3 > 0], Y[np.arange(N) % 3 > 0]))),
        number=77,
    ),
    Case(
        "a class without weight",
        lambda: svc(sample_weight=1.0 - Y),
        Raises(ValueError, r"(?i)class 1 .*no sample.*positive weight"),
        number=78,
    ),
    Case(
        "a class of three without weight",
        lambda name: (name, fit(name, y=THREE, weight=1.0 * (THREE != 1))),
        Warns(
            UserWarning,
            r"classes 1 have weight 0.*ignored",
            lambda found: np.array_equal(values(found[1]), values(fit(found[0], X[THREE != 1], THREE[THREE != 1]))),
        ),
        to=CLASSIFIERS,
        number=78,
    ),
    Case("no weight at all", lambda: svc(sample_weight=0.0 * Y), Raises(ValueError, r"(?i)weight"), number=78),
    Case(
        "too few weights",
        lambda: svc(sample_weight=np.ones(N - 1)),
        Raises(ValueError, r"(?is)sample.?weight.*39"),
        number=79,
    ),
    Case(
        "2-D weights",
        lambda: svc(sample_weight=np.ones((N, 1))),
        Raises(ValueError, r"(?is)sample.?weight.*(1.?D|shape)"),
        number=79,
    ),
    Case(
        "integer weights",
        lambda: svc(sample_weight=1.0 + np.arange(N) % 3),
        Works(same_as(lambda: svc(np.repeat(X, 1 + np.arange(N) % 3, axis=0), np.repeat(Y, 1 + np.arange(N) % 3)))),
        number=80,
    ),
    Case(
        "LinearSVC: negative weight",
        lambda: LinearSVC().fit(X, Y, sample_weight=np.full(40, -1.0)),
        Raises((ValueError, TypeError), r"sample_weight\[0\]"),
    ),
    Case(
        "LinearSVR: no weight",
        lambda: LinearSVR().fit(X, Y, sample_weight=np.zeros(40)),
        Raises((ValueError, TypeError), "zero"),
    ),
    Case(
        "NuSVC: nu infeasible in weights",
        lambda: NuSVC(nu=0.5, kernel=explode).fit(X, Y, sample_weight=np.where(Y == 1, 0.1, 1.0)),
        Raises((ValueError, TypeError, AttributeError), r"nu=0.5 is infeasible: at most 2·min\(n₊, n₋\)/n = 0\.\d+"),
    ),
    Case(
        "OneClassSVM: all weights zero",
        lambda: OneClassSVM().fit(X, sample_weight=np.zeros(40)),
        Raises((ValueError, TypeError, AttributeError), r"all sample weights are zero"),
    ),
    Case(
        "SVR: weights negative",
        lambda: SVR().fit(X, T, sample_weight=-np.ones(40)),
        Raises((ValueError, TypeError, AttributeError), r"sample_weight\[0\]=-1.0"),
    ),
    Case(
        "PegasosSVC: negative weight",
        lambda: pegasos(sample_weight=changed(np.ones(40), (3, -1.0))),
        Raises(ValueError, r"sample_weight\[3\]"),
    ),
    Case(
        "PegasosSVC: no weight",
        lambda: pegasos(sample_weight=np.zeros(40)),
        Raises(ValueError, r"no sample with positive weight"),
    ),
    Case(
        "RLSRegressor: negative weight",
        lambda: rls(weight=changed(np.ones(N), (2, -1.0))),
        Raises(ValueError, r"sample_weight\[2\]"),
    ),
    Case(
        "RLSRegressor: NaN weight",
        lambda: rls(weight=changed(np.ones(N), (2, np.nan))),
        Raises(ValueError, r"sample_weight\[2\]"),
    ),
    Case(
        "RLSRegressor: no weight at all",
        lambda: rls(weight=np.zeros(N)),
        Raises(ValueError, "all sample weights are zero"),
    ),
    Case(
        "RLSRegressor: absurd weight",
        lambda: rls(lam=1e300, weight=np.full(N, 1e-300)),
        Raises(ValueError, "too small beside lam"),
    ),
    Case(
        "masked weights",
        lambda name: fit(name, weight=np.ma.masked_array(np.ones(N), mask=MASK)),
        Raises(REFUSED, r"(?s)sample_weight is a masked array"),
        to=EVERY,
    ),
    Case(
        "complex weights",
        lambda name: fit(name, weight=np.ones(N) + 1j),
        Raises(REFUSED, r"(?s)sample_weight must hold real numbers.*complex128"),
        to=EVERY,
    ),
    Case(
        "weights of text",
        lambda name: fit(name, weight=["1"] * N),
        Raises(REFUSED, r"(?s)sample_weight must hold real numbers"),
        to=EVERY,
    ),
    Case(
        "weights of objects",
        lambda name: fit(name, weight=[[1]] + [1] * (N - 1)),
        Raises(REFUSED, r"(?s)inhomogeneous|sample_weight"),
        to=EVERY,
    ),
    Case(
        "weights as a matrix",
        lambda name: fit(name, weight=sparse.csr_array(np.ones((N, 1)))),
        Raises(REFUSED, r"(?s)sample_weight"),
        to=EVERY,
    ),
    Case(
        "weights of NA",
        lambda name: fit(name, weight=pd.Series([None] + [1.0] * (N - 1), dtype="Float64")),
        Raises(REFUSED, r"(?s)sample_weight\[0\]=nan"),
        to=EVERY,
    ),
    Case(
        "weights that overflow",
        lambda name: fit(name, weight=np.full(N, 1e308)),
        Raises(REFUSED, r"(?s)sample_weight adds up to more.*1e\+308: divide"),
        to=EVERY,
    ),
    Case(
        "no finite weight",
        lambda name: fit(name, weight=math.inf),
        Raises(REFUSED, r"(?s)sample_weight\[0\]=inf"),
        to=EVERY,
    ),
    *(
        Case(
            f"class weight: {value!r}",
            lambda name, value=value: fit(name, class_weight={0: value}),
            Raises(ValueError, r"class_weight\[0\]=.*must be a number"),
            to=WITH["class_weight"],
        )
        for value in (None, [1], 1j, "a", np.nan, -1)
    ),
]
