"""Sparse samples: damaged ones are refused before they are read, odd ones mean what they say."""

import numpy as np
from scipy import sparse

from bad_inputs.given import EVERY, REFUSED, X, Y, changed, corrupted, csr, fit, pegasos, svc
from bad_inputs.judge import Case, Raises, Warns, Works, constant_function, same_as
from mercer import LinearSVC


def explicit_zeros():
    holes = changed(X, ((slice(None), 1), 0.0))
    thin = csr(X)
    thin.data[1::3] = 0.0
    assert thin.nnz == X.size
    return thin, holes


def unsorted_with_duplicates():
    """X as CSR with every row's columns reversed and its first entry split in two."""
    data, indices, indptr = [], [], [0]
    for row in X:
        indices += [2, 1, 0, 0]
        data += [row[2], row[1], row[0] - 1.0, 1.0]
        indptr.append(len(data))
    return sparse.csr_matrix((np.array(data), np.array(indices), np.array(indptr)), shape=X.shape)


def int64_indices():
    thin = csr()
    thin.indices, thin.indptr = thin.indices.astype(np.int64), thin.indptr.astype(np.int64)
    return thin


def damaged(form, attribute, change):
    broken = getattr(sparse, f"{form}_array")(X)
    setattr(broken, attribute, change(np.array(getattr(broken, attribute))))
    return broken


def put(place, value):
    def change(array):
        array[place] = value
        return array

    return change


def damaged_csr(data, indices, indptr, shape):
    """A CSR matrix without scipy's checks."""
    matrix = sparse.csr_array(shape)
    matrix.data, matrix.indices, matrix.indptr = np.asarray(data), np.asarray(indices), np.asarray(indptr)
    return matrix


CASES = [
    Case("NaN in CSR", lambda: svc(csr(changed(X, ((3, 1), np.nan)))), Raises(ValueError, r"(?s)X.*NaN"), number=23),
    Case("inf in CSR", lambda: svc(csr(changed(X, ((3, 1), np.inf)))), Raises(ValueError, r"(?s)X.*inf"), number=23),
    Case(
        "explicit zeros in CSR",
        lambda: svc(explicit_zeros()[0]),
        Works(same_as(lambda: svc(explicit_zeros()[1]))),
        number=24,
    ),
    Case("int64 indices", lambda: svc(int64_indices()), Works(same_as(lambda: svc(csr()))), number=57),
    *(
        Case(form, lambda form=form: svc(csr().asformat(form)), Works(same_as(lambda: svc(csr()))), number=58)
        for form in ("csc", "coo", "bsr", "dia", "lil")
    ),
    Case(
        "unsorted, duplicates", lambda: svc(unsorted_with_duplicates()), Works(same_as(lambda: svc(csr()))), number=59
    ),
    Case("column 1000 of 3", lambda: svc(corrupted("indices", 4, 1000)), Raises(ValueError, r"indices.*3"), number=60),
    Case("column -1", lambda: svc(corrupted("indices", 4, -1)), Raises(ValueError, r"indices.*0"), number=60),
    Case(
        "column 1000 of 3 at predict",
        lambda: svc(csr()).predict(corrupted("indices", 4, 1000)),
        Raises(ValueError, r"indices.*3"),
        number=60,
    ),
    Case(
        "indptr falls",
        lambda: svc(corrupted("indptr", 5, 100)),
        Raises(ValueError, r"(?i)indptr|index pointer"),
        number=61,
    ),
    Case(
        "indptr ends too high",
        lambda: svc(corrupted("indptr", -1, 10**6)),
        Raises(ValueError, r"(?i)indptr|index pointer"),
        number=61,
    ),
    Case(
        "empty rows",
        lambda: svc(csr(changed(X, ((slice(5, 9),), 0.0)))),
        Works(same_as(lambda: svc(changed(X, ((slice(5, 9),), 0.0))))),
        number=63,
    ),
    Case(
        "nothing stored",
        lambda: svc(csr(0 * X)),
        Warns(UserWarning, r"(?i)constant|identical|variance", constant_function),
        number=63,
    ),
    Case(
        "sparse svc, dense predict",
        lambda: svc(csr()),
        Works(lambda m: np.allclose(m.decision_function(X), m.decision_function(csr()), atol=1e-12)),
        number=64,
    ),
    Case(
        "dense svc, sparse predict",
        svc,
        Works(lambda m: np.allclose(m.decision_function(X), m.decision_function(csr()), atol=1e-12)),
        number=64,
    ),
    Case(
        "LinearSVC: column out of range",
        lambda: LinearSVC().fit(damaged_csr([1.0, 2.0], [0, 1000], [0, 1, 2], (2, 3)), [0, 1]),
        Raises((ValueError, TypeError), "1000"),
    ),
    Case(
        "LinearSVC: negative column",
        lambda: LinearSVC().fit(damaged_csr([1.0, 2.0], [0, -1], [0, 1, 2], (2, 3)), [0, 1]),
        Raises((ValueError, TypeError), "-1"),
    ),
    Case(
        "LinearSVC: falling indptr",
        lambda: LinearSVC().fit(damaged_csr([1.0, 2.0], [0, 1], [0, 2, 1], (2, 3)), [0, 1]),
        Raises((ValueError, TypeError), "indptr"),
    ),
    Case(
        "LinearSVC: NaN in CSR",
        lambda: LinearSVC().fit(sparse.csr_array(np.where(np.eye(40, 3) > 0, np.nan, X)), Y),
        Raises((ValueError, TypeError), "NaN"),
    ),
    Case(
        "PegasosSVC: NaN in CSR",
        lambda: pegasos(sparse.csr_array(changed(X, ((3, 1), np.nan)))),
        Raises(ValueError, r"NaN: X\[3, 1\]"),
    ),
    Case(
        "PegasosSVC: column out of range",
        lambda: pegasos(corrupted("indices", 4, 1000)),
        Raises(ValueError, r"(?s)damaged CSR.*1000"),
    ),
    Case(
        "PegasosSVC: negative column",
        lambda: pegasos(corrupted("indices", 4, -1)),
        Raises(ValueError, r"(?s)damaged CSR.*-1"),
    ),
    Case("PegasosSVC: indptr falls", lambda: pegasos(corrupted("indptr", 4, 2)), Raises(ValueError, r"damaged CSR")),
    Case(
        "COO row outside",
        lambda name: fit(name, data=damaged("coo", "row", put(3, 1000))),
        Raises(REFUSED, r"(?s)damaged COO.*row holds 1000.*0 to 39"),
        to=EVERY,
    ),
    Case(
        "COO column outside",
        lambda name: fit(name, data=damaged("coo", "col", put(3, 1000))),
        Raises(REFUSED, r"(?s)damaged COO.*col holds 1000.*0 to 2"),
        to=EVERY,
    ),
    Case(
        "COO column negative",
        lambda name: fit(name, data=damaged("coo", "col", put(3, -1))),
        Raises(REFUSED, r"(?s)damaged COO.*col holds -1"),
        to=EVERY,
    ),
    Case(
        "COO without a value",
        lambda name: fit(name, data=damaged("coo", "data", lambda a: a[:-1])),
        Raises(REFUSED, r"(?s)damaged COO.*differ in length"),
        to=EVERY,
    ),
    Case(
        "CSR index outside",
        lambda name: fit(name, data=damaged("csr", "indices", put(3, 1000))),
        Raises(REFUSED, r"(?s)damaged CSR.*indices holds 1000"),
        to=EVERY,
    ),
    Case(
        "CSR without a value",
        lambda name: fit(name, data=damaged("csr", "data", lambda a: a[:-1])),
        Raises(REFUSED, r"(?s)damaged CSR.*120 entries.*119"),
        to=EVERY,
    ),
    Case(
        "CSR indices of floats",
        lambda name: fit(name, data=damaged("csr", "indices", lambda a: a * 1.0)),
        Raises(REFUSED, r"(?s)damaged CSR.*integers"),
        to=EVERY,
    ),
    Case(
        "CSR ends beyond",
        lambda name: fit(name, data=damaged("csr", "indptr", put(-1, 10**6))),
        Raises(REFUSED, r"(?s)damaged CSR.*indptr must rise"),
        to=EVERY,
    ),
    Case(
        "CSC index outside",
        lambda name: fit(name, data=damaged("csc", "indices", put(3, 1000))),
        Raises(REFUSED, r"(?s)damaged CSC.*indices holds 1000"),
        to=EVERY,
    ),
    Case(
        "BSR index outside",
        lambda name: fit(name, data=damaged("bsr", "indices", put(0, 1000))),
        Raises(REFUSED, r"(?s)damaged BSR.*indices holds 1000"),
        to=EVERY,
    ),
    Case(
        "DIA without an offset",
        lambda name: fit(name, data=damaged("dia", "offsets", lambda a: a[:-1])),
        Raises(REFUSED, r"(?s)damaged DIA.*one row for each"),
        to=EVERY,
    ),
    Case(
        "predict: COO row outside",
        lambda name: fit(name).predict(damaged("coo", "row", put(3, 1000))),
        Raises(REFUSED, r"(?s)damaged COO.*row holds 1000.*0 to 39"),
        to=EVERY,
    ),
    Case(
        "predict: DIA without an offset",
        lambda name: fit(name).predict(damaged("dia", "offsets", lambda a: a[:-1])),
        Raises(REFUSED, r"(?s)damaged DIA.*one row for each"),
        to=EVERY,
    ),
]
