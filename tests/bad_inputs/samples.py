"""Samples that cannot be, or only look odd: shapes, values, types and layouts of X."""

import contextlib
import os
import tempfile

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from bad_inputs.given import (
    EVERY,
    OVERLAP_X,
    OVERLAP_Y,
    REFUSED,
    TWO_POINTS,
    N,
    T,
    X,
    Y,
    changed,
    csr,
    fit,
    frame,
    pegasos,
    rls,
    rls_cv,
    svc,
)
from bad_inputs.judge import Case, Either, Raises, Warns, Works, accurate, constant_function, same_as, usable
from mercer import SVC, LinearSVC, OneClassSVM

NARROW = np.abs(X) * 10

CONSTANTS = (0.1, 0.3, 0.7, 1.3)

# A list that cannot be a matrix.
RAGGED = [[1.0, 2.0], [3.0], *[[0.0, 1.0]] * 38]


def gamma_is_one(model) -> bool:
    return usable(model) and model.kernel_.gamma == 1.0


def decided(X):
    return svc(X, tol=1e-6).decision_function(X)


def memory_map():
    with tempfile.NamedTemporaryFile(suffix=".npy", delete=False) as file:
        np.save(file, X)
    mapped = np.load(file.name, mmap_mode="r")
    with contextlib.suppress(OSError):  # where a mapped file cannot be removed
        os.unlink(file.name)
    return mapped


CASES = [
    Case(
        "linear machines, squares overflow",
        lambda name: fit(name, 1e160 * X),
        Raises(FloatingPointError, r"squares of the features overflow.*scale"),
        to=("LinearSVC", "LinearSVR"),
    ),
    *(
        Case(
            f"strings to a function of vectors, {form.__name__}",
            lambda form=form: SVC(kernel=lambda A, B: A @ B.T).fit(form(["snow", "wind"] * (N // 2)), Y),
            Raises(ValueError, r"list of strings.*FromFunction\(function, accepts='sequences'\)"),
        )
        for form in (list, tuple, np.array, pd.Series)
    ),
    Case(
        "gamma='scale' overflows",
        lambda name: fit(name, 1e200 * X, gamma="scale", kernel="rbf"),
        Raises(ValueError, r"gamma='scale' overflows"),
        to=("SVC", "SVR", "OneClassSVM", "PegasosSVC"),
    ),
    Case("no rows", lambda: svc(X[:0], Y[:0]), Raises(ValueError, r"0 sample"), number=1),
    Case("no columns", lambda: svc(X[:, :0]), Raises(ValueError, r"0 feature"), number=2),
    Case("1-D X", lambda: svc(X[:, 0]), Raises(ValueError, r"(?s)1D array.*[Rr]eshape"), number=3),
    Case("3-D X", lambda: svc(X[None]), Raises(ValueError, r"dim 3|3.?[dD]"), number=4),
    Case("predict no rows", lambda: svc().predict(X[:0]), Raises(ValueError, r"0 sample"), number=19),
    Case(
        "NaN in X",
        lambda: svc(changed(X, ((3, 1), np.nan))),
        Raises(ValueError, r"(?s)X.*NaN.*\b3\b.*\b1\b"),
        number=21,
    ),
    Case(
        "inf in X",
        lambda: svc(changed(X, ((3, 1), np.inf))),
        Raises(ValueError, r"(?s)X.*inf.*\b3\b.*\b1\b"),
        number=22,
    ),
    Case(
        "-inf in X",
        lambda: svc(changed(X, ((3, 1), -np.inf))),
        Raises(ValueError, r"(?s)X.*inf.*\b3\b.*\b1\b"),
        number=22,
    ),
    Case(
        "NaN at predict", lambda: svc().predict(changed(X, ((3, 1), np.nan))), Raises(ValueError, r"X.*NaN"), number=21
    ),
    Case(
        "all zero",
        lambda: svc(0 * X),
        Warns(UserWarning, r"(?i)constant|identical|variance", constant_function),
        number=25,
    ),
    Case("one column constant", lambda: svc(changed(X, ((slice(None), 1), 7.0))), Works(usable), number=26),
    *(
        Case(
            f"all columns constant, {value}, {form.__name__}",
            lambda value=value, form=form: svc(form(np.full_like(X, value))),
            Warns(UserWarning, r"(?i)gamma|constant|variance", gamma_is_one),
            number=27,
        )
        for value in CONSTANTS
        for form in (np.asarray, sparse.csr_matrix)
    ),
    Case(
        "offset 1e8, noise 1e-3, dense",
        lambda: svc(1e8 + 1e-3 * X),
        Works(lambda m: m.score(1e8 + 1e-3 * X, Y) > 0.8 and usable(m)),
        number=28,
    ),
    Case(
        "offset 1e8 decides as the centred data do",
        lambda: svc(1e8 + 1e-3 * X, tol=1e-6).decision_function(1e8 + 1e-3 * X),
        Works(lambda f: np.allclose(f, decided((1e8 + 1e-3 * X) - 1e8), atol=1e-4)),
        number=28,
    ),
    Case(
        "offset 1e8, CSR decides as dense",
        lambda: svc(csr(1e8 + 1e-3 * X), tol=1e-6).decision_function(csr(1e8 + 1e-3 * X)),
        Works(lambda f: np.allclose(f, decided((1e8 + 1e-3 * X) - 1e8), atol=1e-4)),
        number=28,
    ),
    *(
        Case(
            f"scale 1e200, {kernel}",
            lambda kernel=kernel: svc(1e200 * X, kernel=kernel),
            Either(
                (Works(usable, UserWarning), Raises((FloatingPointError, ValueError), r"(?i)overflow|finite.*[Ss]cale"))
            ),
            number=29,
        )
        for kernel in ("linear", "rbf", "poly")
    ),
    Case("subnormal numbers", lambda: svc(1e-310 * X), Works(usable, UserWarning), number=30),
    Case("subnormal numbers, linear", lambda: svc(1e-310 * X, kernel="linear"), Works(usable, UserWarning), number=30),
    Case(
        "feature scales 1e-6 and 1e6",
        lambda: svc(X * [1e-6, 1.0, 1e6], kernel="linear", C=10.0),
        Works(usable, ConvergenceWarning),
        number=31,
    ),
    Case(
        "unfinished for its feature scales",
        lambda: svc(X * [1e-6, 1.0, 1e6], kernel="linear", C=10.0, max_iter=3),
        Warns(ConvergenceWarning, r"(?is)scal", lambda m: usable(m) and not m.converged_),
        number=31,
    ),
    Case(
        "all rows of a class equal",
        lambda: svc(np.where(Y[:, None] == 1, 1.0, -1.0) * np.ones(3)),
        Works(lambda m: usable(m) and m.score(np.where(Y[:, None] == 1, 1.0, -1.0) * np.ones(3), Y) == 1.0),
        number=32,
    ),
    *(
        Case(
            f"duplicates with opposite labels, C={C:g}",
            lambda C=C: svc(OVERLAP_X, OVERLAP_Y, C=C),
            Works(usable, ConvergenceWarning),
            number=33,
        )
        for C in (1.0, 1e10)
    ),
    Case(
        "duplicates with opposite labels, hard margin",
        lambda: svc(OVERLAP_X, OVERLAP_Y, C=np.inf),
        Either(
            (
                Raises(ValueError, r"(?i)separa|margin"),
                Warns(ConvergenceWarning, r"(?i)separa|margin", lambda m: not m.converged_),
            )
        ),
        number=33,
    ),
    Case(
        "all points one point",
        lambda: svc(np.ones_like(X)),
        Warns(UserWarning, r"(?i)constant|identical|variance", constant_function),
        number=34,
    ),
    Case(
        "two points, 99999, degree 2",
        lambda: svc(TWO_POINTS, [0, 1], kernel="poly", degree=2, gamma="auto"),
        Works(usable, ConvergenceWarning),
        number=35,
        seconds=1.0,
    ),
    Case("an outlier of 1e12", lambda: svc(changed(X, ((0, 0), 1e12))), Works(usable), number=36),
    Case(
        "integers above 2**53",
        lambda: svc((2**53 + 1) + (10 * X).astype(np.int64) * 10**6),
        Warns(UserWarning, r"(?i)precision|exact|2\*\*53|2\^53", usable),
        number=37,
    ),
    Case(
        "negative zero",
        lambda: svc(np.where(np.abs(X) < 0.5, -0.0, X)),
        Works(same_as(lambda: svc(np.where(np.abs(X) < 0.5, 0.0, X)), exactly=True)),
        number=38,
    ),
    Case(
        "float16",
        lambda: svc(X.astype(np.float16)),
        Works(same_as(lambda: svc(X.astype(np.float16).astype(np.float64)))),
        number=41,
    ),
    Case(
        "float32",
        lambda: svc(X.astype(np.float32)),
        Works(lambda m: m.support_vectors_.dtype == np.float32 and same_as(svc)(m)),
        number=42,
    ),
    Case("longdouble", lambda: svc(X.astype(np.longdouble)), Works(same_as(svc)), number=43),
    *(
        Case(
            np.dtype(kind).name,
            lambda kind=kind: svc(NARROW.astype(kind)),
            Works(same_as(lambda kind=kind: svc(NARROW.astype(kind).astype(float)), on=NARROW.astype(kind))),
            number=44,
        )
        for kind in "bhilBHIL"
    ),
    Case("bool", lambda: svc(X > 0.5), Works(same_as(lambda: svc((X > 0.5).astype(float)), on=X > 0.5)), number=44),
    Case("complex", lambda: svc(X.astype(complex)), Raises(ValueError, r"(?i)complex"), number=45),
    Case("objects that are floats", lambda: svc(X.astype(object)), Works(same_as(svc)), number=46),
    Case(
        "objects that are str",
        lambda: svc(np.array([["red"] * 3] * N, dtype=object)),
        Raises(ValueError, r"(?i)float|numeric|string"),
        number=46,
    ),
    Case("big-endian", lambda: svc(X.astype(">f8")), Works(same_as(svc, exactly=True)), number=47),
    Case("Fortran order", lambda: svc(np.asfortranarray(X)), Works(same_as(svc, exactly=True)), number=48),
    Case("negative strides", lambda: svc(X[::-1, ::-1][::-1, ::-1]), Works(same_as(svc, exactly=True)), number=48),
    Case(
        "every other column", lambda: svc(np.repeat(X, 2, axis=1)[:, ::2]), Works(same_as(svc, exactly=True)), number=48
    ),
    Case(
        "broadcast",
        lambda: svc(np.broadcast_to(X[:, :1], (N, 3))),
        Works(same_as(lambda: svc(np.repeat(X[:, :1], 3, axis=1)), on=np.repeat(X[:, :1], 3, axis=1), exactly=True)),
        number=48,
    ),
    Case("read-only", lambda: svc(X), Works(lambda m: not X.flags.writeable and accurate(m)), number=49),
    Case("memory map", lambda: svc(memory_map()), Works(same_as(svc, exactly=True)), number=49),
    Case(
        "np.matrix", lambda: svc(np.asmatrix(X)), Raises(TypeError, r"np\.matrix", PendingDeprecationWarning), number=50
    ),
    Case(
        "masked array",
        lambda: svc(np.ma.masked_array(X, mask=X > 1)),
        Raises((ValueError, TypeError), r"(?i)mask"),
        number=51,
    ),
    Case(
        "categorical column",
        lambda: svc(frame().assign(colour=pd.Categorical(["red", "blue"] * 20))),
        Raises(ValueError, r"colour"),
        number=52,
    ),
    Case(
        "missing in a nullable column",
        lambda: svc(frame().assign(count=pd.array([1, None] * 20, dtype="Int64"))),
        Raises(ValueError, r"(?i)NaN|missing|NA\b"),
        number=53,
    ),
    Case("ragged list", lambda: svc(RAGGED), Raises(ValueError, r"(?i)inhomogeneous|length|shape"), number=54),
    Case("list of lists", lambda: svc(X.tolist()), Works(same_as(svc, exactly=True)), number=54),
    Case(
        "LinearSVC: NaN",
        lambda: LinearSVC().fit(np.where(np.eye(40, 3) > 0, np.nan, X), Y),
        Raises((ValueError, TypeError), r"NaN.*X\[0, 0\]"),
    ),
    Case(
        "LinearSVC: other columns",
        lambda: LinearSVC().fit(X, Y).predict(X[:, :2]),
        Raises((ValueError, TypeError), "2 features"),
    ),
    Case(
        "OneClassSVM: other columns",
        lambda: OneClassSVM().fit(X).predict(X[:, :2]),
        Raises((ValueError, TypeError, AttributeError), r"2 features.*3"),
    ),
    Case("PegasosSVC: no rows", lambda: pegasos(X[:0], Y[:0]), Raises(ValueError, r"0 sample")),
    Case("PegasosSVC: NaN", lambda: pegasos(changed(X, ((3, 1), np.nan))), Raises(ValueError, r"NaN: X\[3, 1\]")),
    Case(
        "PegasosSVC: infinity",
        lambda: pegasos(changed(X, ((3, 1), np.inf))),
        Raises(ValueError, r"infinity: X\[3, 1\]"),
    ),
    Case("RLSRegressor: no rows", lambda: rls(X[:0], T[:0]), Raises(ValueError, "0 sample")),
    Case("RLSRegressor: no columns", lambda: rls(X[:, :0]), Raises(ValueError, "0 feature")),
    Case("RLSRegressor: 1-D X", lambda: rls(X[:, 0]), Raises(ValueError, "(?s)1D array.*[Rr]eshape")),
    Case(
        "RLSRegressor: NaN in X",
        lambda: rls(changed(X, ((3, 1), np.nan))),
        Raises(ValueError, r"(?s)X.*NaN.*\b3\b.*\b1\b"),
    ),
    Case(
        "RLSRegressorCV: inf in X",
        lambda: rls_cv(changed(X, ((3, 1), np.inf))),
        Raises(ValueError, r"(?s)X.*inf.*\b3\b.*\b1\b"),
    ),
    Case(
        "masked X",
        lambda name: fit(name, data=np.ma.masked_array(X, mask=X > 1)),
        Raises(REFUSED, r"(?s)X is a masked array.*fill or drop"),
        to=EVERY,
    ),
    Case(
        "text that spells numbers",
        lambda name: fit(name, data=X.astype(str)),
        Raises(REFUSED, r"(?s)X must hold numbers, but its dtype is <U.*astype\(float\)"),
        to=EVERY,
    ),
    Case(
        "bytes that spell numbers",
        lambda name: fit(name, data=X.astype("S")),
        Raises(REFUSED, r"(?s)X must hold numbers, but its dtype is \|S"),
        to=EVERY,
    ),
    Case(
        "dates",
        lambda name: fit(name, data=(1000 * X).astype("M8[D]")),
        Raises(REFUSED, r"(?s)X must hold numbers, but its dtype is datetime64"),
        to=EVERY,
    ),
    Case(
        "a column of dates",
        lambda name: fit(name, data=frame(b=pd.date_range("2020", periods=N))),
        Raises(REFUSED, r"(?s)column 'b' of X does not hold numbers, but dates.*mercer\.tabular"),
        to=EVERY,
    ),
    Case(
        "nothing but dates",
        lambda name: fit(name, data=pd.DataFrame({"b": pd.date_range("2020", periods=N)})),
        Raises(REFUSED, r"(?s)column 'b' of X does not hold numbers, but dates.*mercer\.tabular"),
        to=EVERY,
    ),
    Case(
        "objects that are texts",
        lambda name: fit(name, data=np.array([["u", 1.0]] * N, dtype=object)),
        Raises(REFUSED, r"(?s)X does not hold numbers.*'u'.*mercer\.tabular"),
        to=EVERY,
    ),
    Case(
        "a column of categories",
        lambda name: fit(name, data=frame(b=pd.Categorical(["u", "v"] * 20))),
        Raises(REFUSED, r"(?s)column 'b' of X does not hold.*mercer\.tabular"),
        to=EVERY,
    ),
    Case(
        "a column with NA",
        lambda name: fit(name, data=frame(b=pd.array([1, None] * 20, dtype="Int64"))),
        Raises(REFUSED, r"(?s)Input X contains NaN: X\[1, 1\].*mercer\.tabular"),
        to=EVERY,
    ),
    Case(
        "infinities of both signs",
        lambda name: fit(name, data=np.where(np.eye(N, 3) > 0, [np.inf, -np.inf, 0.0], X)),
        Raises(REFUSED, r"(?s)X contains infinity: X\[0, 0\]=inf, and 2 such"),
        to=EVERY,
    ),
    Case(
        "two columns of one name",
        lambda name: fit(name, data=pd.DataFrame(X, columns=["a", "a", "b"])),
        Raises(REFUSED, r"X has two columns called 'a'; rename one of them"),
        to=EVERY,
    ),
    Case(
        "PegasosSVC: numbers that overflow",
        lambda: pegasos(X * 1e200),
        Raises(FloatingPointError, r"overflowed.*scale the features"),
    ),
    Case(
        "predict: masked X",
        lambda name: fit(name).predict(np.ma.masked_array(X, mask=X > 1)),
        Raises(REFUSED, r"(?s)X is a masked array.*fill or drop"),
        to=EVERY,
    ),
    Case(
        "predict: dates",
        lambda name: fit(name).predict((1000 * X).astype("M8[D]")),
        Raises(REFUSED, r"(?s)X must hold numbers, but its dtype is datetime64"),
        to=EVERY,
    ),
]
