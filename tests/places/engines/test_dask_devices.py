"""Workers of a Dask cluster that compute on a device; torch's CPU device stands in for a card."""

import gc
import sys
from itertools import pairwise

import numpy as np
import pytest

import mercer
from mercer.kernels import Gaussian, Matern
from mercer.places.chunked import gram as chunked_gram

distributed = pytest.importorskip("distributed", reason="Dask is not installed: python -m pip install 'mercer[dask]'")
torch = pytest.importorskip("torch", reason="torch is not installed: python -m pip install 'mercer[torch]'")
dask = pytest.importorskip("dask")
import dask.array as da  # noqa: E402  # after the skip without Dask

from mercer.places.chunked import worker_device  # noqa: E402  # after the skip without Dask

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.xdist_group("dask")]
SIZES = (150, 1, 249)
KERNEL = Gaussian(gamma=0.3)
rng = np.random.default_rng(7)
X = rng.normal(size=(400, 4))
y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=400) > 0, 1, -1)


@pytest.fixture(scope="module")
def client():
    """A client of two workers with MERCER_DEVICE=torch-cpu."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, env={"MERCER_DEVICE": "torch-cpu"}
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(autouse=True)
def small_working_sets(monkeypatch):
    monkeypatch.setattr(chunked_gram, "OUTER_ROWS", 100)


def host_chunks():
    return da.from_array(X, chunks=(SIZES, 4))


def tensor_chunks(dtype=torch.float64):
    ends = np.cumsum((0, *SIZES))
    parts = [dask.delayed(torch.tensor)(X[a:b], dtype=dtype) for a, b in pairwise(ends)]
    return da.concatenate([da.from_delayed(p, (n, 4), np.float64) for p, n in zip(parts, SIZES, strict=True)])


def exact_values(model):
    """Primal and dual value of an SVC with C = 1 at its own coefficients, in twice the precision."""
    beta = np.zeros(len(y), dtype=np.longdouble)
    beta[model.support_] = model.dual_coef_[0]
    distances = ((X[:, None, :].astype(np.longdouble) - X) ** 2).sum(axis=2)
    f = np.exp(np.longdouble(-0.3) * distances) @ beta
    half_norm, b = beta @ f / 2, np.longdouble(model.intercept_[0])
    return half_norm + np.maximum(0, 1 - y * (f + b)).sum(), (y * beta).sum() - half_norm


@pytest.mark.parametrize("chunks", [host_chunks, tensor_chunks])
def test_certificates_are_true_and_close(client, chunks):
    model = mercer.SVC(kernel=KERNEL, tol=1e-5).fit(chunks(), y)
    primal, dual = exact_values(model)
    certificate = model.certificate_
    assert certificate.primal >= primal
    assert certificate.dual <= dual + 1e-12 * primal  # the equality holds up to rounding
    assert certificate.gap <= 1e-4 * certificate.dual
    reference = mercer.SVC(kernel=KERNEL, tol=1e-5).fit(X, y)
    assert certificate.dual == pytest.approx(reference.certificate_.dual, rel=1e-6)
    np.testing.assert_allclose(
        np.asarray(model.decision_function(chunks()).compute()), model.decision_function(X), atol=1e-10
    )


class Copies:
    """An engine that counts the copies that it makes of samples."""

    made = 0

    def samples(self, rows):
        self.made += 1
        return rows.copy()


def test_a_chunk_is_copied_once_and_the_copy_goes_with_it(monkeypatch):
    engine, rows = Copies(), X.copy()
    monkeypatch.setattr(worker_device, "configured_engine", lambda: engine)
    first, second = worker_device.on_worker_device(rows), worker_device.on_worker_device(rows)
    assert first is second
    assert engine.made == 1
    other = X.copy()
    assert worker_device.on_worker_device(other) is not first
    assert len(worker_device._copies) == 2
    del rows, other
    gc.collect()
    assert not worker_device._copies


def test_a_tensor_is_used_where_it_is():
    with mercer.config_context(device="torch-cpu"):
        tensor = torch.tensor(X)
        assert worker_device.on_worker_device(tensor).rows.data_ptr() == tensor.data_ptr()


def test_the_products_are_those_of_the_device(client):
    client.restart()
    assert not any(client.run(_torch_computes).values())
    mercer.SVC(kernel=KERNEL).fit(host_chunks(), y)
    assert all(client.run(_torch_computes).values())


def _torch_computes():
    """Return whether this worker has imported what computes kernel values with torch."""
    return "mercer.places.torch.gram" in sys.modules


@pytest.mark.parametrize("dtype", [torch.float16, torch.int64])
def test_other_numbers_on_a_device_are_refused(client, dtype):
    with pytest.raises(ValueError, match="on a device; give float32 or float64"):
        mercer.SVC(kernel=KERNEL).fit(tensor_chunks(dtype), y)


def test_a_kernel_that_the_device_cannot_compute_is_refused(client):
    with pytest.raises(TypeError, match="no formula that a device can compute"):
        mercer.SVC(kernel=Matern()).fit(tensor_chunks(), y)


def test_the_client_of_the_context_is_used(client):
    with distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=None) as cluster:
        current = distributed.Client(cluster)  # the newest client is Dask's current one
        with current, mercer.config_context(client=client):
            model = mercer.SVC(kernel=KERNEL).fit(host_chunks(), y)
            assert not current.get_task_stream()
        assert model.converged_
    with (
        pytest.raises(TypeError, match=r"must be a distributed\.Client;"),
        mercer.config_context(client="tcp://host:1"),
    ):
        pass
