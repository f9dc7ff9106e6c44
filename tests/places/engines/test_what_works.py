"""The table of what works where, its columns of engines: torch on the processor, and Dask on two processes."""

import pytest

from tools.declaration import TOOLS
from tools.judge import expect_declared
from tools.rows import ROWS

pytestmark = pytest.mark.filterwarnings("ignore")
FIRST = {row.estimator: row for row in reversed(ROWS)}
ON_DASK = [
    pytest.param(row, id=str(row), marks=[] if row is FIRST[row.estimator] else pytest.mark.thorough) for row in ROWS
]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_on_a_device(row):
    pytest.importorskip("torch")
    expect_declared([TOOLS["device"]], row)


@pytest.fixture(scope="module")
def client():
    pytest.importorskip("dask.dataframe", reason="Dask is not installed: python -m pip install 'mercer[dask]'")
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        yield client


@pytest.mark.xdist_group("dask")
@pytest.mark.parametrize("row", ON_DASK)
def test_on_a_cluster(row, client):
    expect_declared([TOOLS["dask"]], row)
