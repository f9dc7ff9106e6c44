"""Attempts to prove certificates of stored rows and of Dask frames false.

Columns stand in another order in every file or chunk, in several types; in some draws a name is wrong, and then the
error has to say so. What a certificate claims is held against the rows that were written, in a hundred digits.
"""

from dataclasses import dataclass, replace
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
import pandas
import polars
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

import mercer
from claims.false_claims import REFUSED, setting
from claims.test_false_claims import CHECKS, problems
from mercer.places.chunked import gram
from reference.decimals import hundred_digits

_THOROUGH = settings().max_examples > 500  # the profile that tests/conftest.py has loaded
_EXAMPLES = 60 if _THOROUGH else 4
FORMS = ("Parquet", "pandas", "polars", "Arrow", "NumPy files", "CSR")
NAMED = FORMS[:4]


@dataclass(frozen=True)
class Layout:
    """Layout of written rows; its repr is a part of the reproduction."""

    form: str
    seed: int
    parts: int
    wrong: str | None  # of the last part: a name, a column too many, or one too few

    @property
    def names(self):
        return [f"x{k}" for k in range(9)]

    def written(self, X):
        """(names, columns, begin, end) of each part: its own order of columns, each of a type that holds it exactly."""
        rng, (n, d) = np.random.default_rng(self.seed), X.shape
        ends = np.sort(np.append(rng.integers(1, n, self.parts - 1), [0, n]))
        for k in range(self.parts):
            order = rng.permutation(d) if self.form in NAMED and k else np.arange(d)
            part = X[ends[k] : ends[k + 1]]
            columns = [self._typed(part[:, j], rng) for j in order]
            names = [self.names[j] for j in order]
            if self.is_wrong and k == self.parts - 1:
                names, columns = {
                    "name": (["other", *names[1:]], columns),
                    "more": ([*names, "other"], [*columns, columns[0]]),
                    "less": (names[1:], columns[1:]),
                }[self.wrong]
            yield names, columns, ends[k], ends[k + 1]

    def _typed(self, column, rng):
        types = [t for t in ("f8", "f4", "i8", "i1", "?") if _holds(t, column)]
        return column.astype(types[rng.integers(len(types))] if self.form in NAMED else "f8")

    @property
    def is_wrong(self):
        return self.wrong is not None and self.form in NAMED and self.parts > 1


def _holds(dtype, column):
    with np.errstate(all="ignore"):
        same = np.array_equal(column.astype(dtype).astype("f8"), column)
    small = dtype not in ("i8", "i1", "?") or np.abs(column).max(initial=0) <= 2**53
    return same and small


@st.composite
def layouts(draw):
    wrong = draw(st.sampled_from([None, None, None, "name", "more", "less"]))
    return Layout(draw(st.sampled_from(FORMS)), draw(st.integers(0, 10**6)), draw(st.integers(1, 4)), wrong)


def stored(layout, X, y, folder):
    """The rows as files of a folder, or as chunks, and what was read of them."""
    frames = {"pandas": pandas.DataFrame, "polars": polars.DataFrame, "Arrow": polars.DataFrame}
    chunks = []
    for k, (names, columns, begin, end) in enumerate(layout.written(X)):
        table = dict(zip(names, columns, strict=True))
        if layout.form == "Parquet":
            polars.DataFrame(table).with_columns(y=polars.Series(y[begin:end])).write_parquet(f"{folder}/{k}.parquet")
        elif layout.form == "NumPy files":
            np.save(f"{folder}/{k}.npy", np.column_stack(columns))
        elif layout.form == "CSR":
            chunks.append((sp.csr_array(np.column_stack(columns)), y[begin:end]))
        else:
            frame = frames[layout.form](table)
            chunks.append((frame.to_arrow() if layout.form == "Arrow" else frame, y[begin:end]))
    if chunks:
        return mercer.stored_rows(chunks)
    return mercer.stored_rows(folder, target="y" if layout.form == "Parquet" else None)


@pytest.mark.parametrize("machine", CHECKS)
@pytest.mark.filterwarnings("ignore")
def test_no_claim_about_stored_rows_is_false(machine):
    @seed(list(CHECKS).index(machine))
    @settings(max_examples=_EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(problem=problems(machine, "core", ("gaussian", "linear", "polynomial", "laplacian")), layout=layouts())
    def attempt(problem, layout):
        precomputed = problem.kernel == "precomputed"
        problem = replace(problem, kernel="gaussian", dtype="f8") if precomputed else replace(problem, csr=False)
        with hundred_digits(), patch.object(gram, "OUTER_ROWS", 12), TemporaryDirectory() as folder:
            s = setting(problem)
            if layout.is_wrong:
                with pytest.raises(ValueError, match=r"are not those of|has no column names"):
                    stored(layout, s.X, s.labels, folder)
                return
            rows = stored(layout, s.X, s.labels, folder)
            assert rows.names == (tuple(layout.names[: problem.d]) if layout.form in NAMED else None)
            parts = [one.load() for one in rows.X.sources]
            np.testing.assert_array_equal(np.vstack([p.toarray() if sp.issparse(p) else p for p in parts]), s.X)
            before = len(REFUSED)
            assert not CHECKS[machine][0](replace(s, given=rows.X))
            tried.append(len(REFUSED) == before)

    tried = []
    attempt()
    assert sum(tried) >= len(tried) / 3, "most problems were refused, so this shows little"


@pytest.mark.thorough
@pytest.mark.parametrize("machine", ["SVC", "SVR", "RLSRegressor", "LinearSVC"])
@pytest.mark.filterwarnings("ignore")
def test_no_claim_about_dask_frames_is_false(machine):
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    frames = pytest.importorskip("dask.dataframe")
    from mercer.places.chunked.dask import ENGINE  # needs Dask

    @seed(0)
    @settings(max_examples=10, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(problem=problems(machine, "core", ("gaussian", "linear", "polynomial")), layout=layouts())
    def attempt(problem, layout):
        problem = replace(problem, kernel="linear" if problem.kernel == "precomputed" else problem.kernel)
        problem, layout = replace(problem, csr=False, dtype="f8"), replace(layout, form="pandas", wrong=None, parts=1)
        with hundred_digits(), patch.object(gram, "OUTER_ROWS", 12):
            s = setting(problem)
            names, columns, *_ = next(layout.written(s.X))
            frame = frames.from_pandas(pandas.DataFrame(dict(zip(names, columns, strict=True))), npartitions=3)
            samples = ENGINE.samples(frame)
            assert samples.names == tuple(names)
            assert not CHECKS[machine][0](replace(s, given=samples))
            wrong = frame.rename(columns={names[0]: "other"})
            model = mercer.RLSRegressor(kernel="linear").fit(samples, s.targets)
            with pytest.raises(ValueError, match="feature names should match"):
                model.predict(wrong)

    with (
        distributed.LocalCluster(n_workers=1, processes=False, threads_per_worker=2, dashboard_address=None) as made,
        distributed.Client(made),
    ):
        attempt()
