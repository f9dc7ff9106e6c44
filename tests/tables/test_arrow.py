"""Arrow's tables, which are indexed by column: every tool that takes a part of the rows answers as for an array."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer.files.export.c.export import export_c
from mercer.kernels import Gaussian
from mercer.tables.frame import part_of

pa = pytest.importorskip("pyarrow")

RNG = np.random.default_rng(8)
X = RNG.normal(size=(50, 3))
Z = X[:, 0] + 0.3 * RNG.normal(size=50)
Y = np.where(Z > 0, "up", "down")
TABLE = pa.table({f"c{j}": X[:, j] for j in range(3)})


TOOLS = {
    "classifier": lambda samples: mercer.SVC().fit(samples, Y).calibrate(samples, Y).predict_proba(samples),
    "regressor": lambda samples: mercer.SVR().fit(samples, Z).calibrate(samples, Z, cv=5).predict_interval(samples),
    "landmarks": lambda samples: (
        mercer.NystromRLS(random_state=0).fit(samples, Z).calibrate(samples, Z, cv=4).predict_interval(samples)
    ),
}


@pytest.mark.parametrize("tool", TOOLS)
def test_tables_give_the_numbers_of_arrays(tool):
    np.testing.assert_array_equal(np.asarray(TOOLS[tool](TABLE)), np.asarray(TOOLS[tool](X)))


@pytest.mark.filterwarnings("ignore:the best score is at the edge")
def test_search_of_a_pipeline():
    pipeline = make_pipeline(StandardScaler(), mercer.SVC())
    here, there = (mercer.tune(pipeline, samples, Y, grid={"svc__C": [0.1, 1.0, 10.0]}, cv=3) for samples in (TABLE, X))
    assert here.best_params_ == there.best_params_
    assert here.best_score_ == there.best_score_
    assert list(here.best_estimator_.feature_names_in_) == TABLE.column_names


def test_exported_code_takes_the_figure_from_a_table():
    machine = mercer.SVC(kernel=Gaussian(0.5)).fit(TABLE, Y)
    assert export_c(machine, X=TABLE) == export_c(machine, X=TABLE.to_pandas())
    with pytest.raises(ValueError, match="Feature names"):
        export_c(machine, X=TABLE.rename_columns(["c0", "c2", "c1"]))


def test_kernel_matrix_in_frames():
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    pl = pytest.importorskip("polars")
    columns = {f"k{j}": K[:, j] for j in range(len(K))}
    rows, chosen = np.array([4, 0, 7]), np.array([9, 2])
    for matrix in (pa.table(columns), pl.DataFrame(columns)):
        np.testing.assert_array_equal(part_of(matrix, rows, chosen).to_pandas(), K[np.ix_(rows, chosen)])
        found = mercer.SVC(kernel="precomputed").fit(matrix, Y).calibrate(matrix, Y, cv=3).predict_proba(matrix)
        np.testing.assert_array_equal(
            found, mercer.SVC(kernel="precomputed").fit(K, Y).calibrate(K, Y, cv=3).predict_proba(K)
        )
