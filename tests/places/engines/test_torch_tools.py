"""Every tool, and with `-m thorough` every method that takes samples, on torch's devices: this machine's answers."""

import numpy as np
import pytest

import mercer
from mercer.kernels import Gaussian
from places.engines import test_opaque
from places.engines.test_opaque import METHODS, TOOLS, called, fitted

torch = pytest.importorskip("torch", reason="torch is not installed: python -m pip install 'mercer[torch]'")

pytestmark = pytest.mark.filterwarnings("ignore")
rng = np.random.default_rng(0)
# Strings, and samples changed by a Python function, are refused (test_torch_machines.py).
REFUSED = ("kernel on strings", "strings", "distance after compression")


def placed(device):
    def place(array):
        if test_opaque.sp.issparse(array):
            return array
        return torch.tensor(np.asarray(array), device="cpu" if device == "torch-cpu" else device)

    return place


def numbers(found):
    """All numbers that an answer holds, of tensors too."""
    if isinstance(found, torch.Tensor):
        found = found.cpu().numpy()
    elif isinstance(found, list | tuple):
        return [value for item in found for value in numbers(item)]
    return test_opaque.numbers(found)


def here(run):
    with mercer.config_context(device="cpu"):
        return run(lambda array: array)


@pytest.mark.parametrize("name", [name for name in TOOLS if name not in REFUSED])
def test_every_tool_gives_this_machines_answer(name, device):
    expected, found = here(TOOLS[name]), TOOLS[name](placed(device))
    assert numbers(expected)
    if name == "retrain":  # the search for positions has many ends, and begins in the order of samples
        assert 0.3 < numbers(found)[0] / numbers(expected)[0] < 3
        return
    np.testing.assert_allclose(numbers(found), numbers(expected), rtol=1e-4, atol=1e-4)


def test_compressed_machines_keep_their_bound_for_sparse_samples(device):
    assert test_opaque.bounded(placed(device), Gaussian(0.4), test_opaque.sp.csr_array)


SPARSE = rng.normal(size=(60, 8)) * (rng.random((60, 8)) < 0.4)
SIGNS = (SPARSE[:, 0] + SPARSE[:, 1] > 0).astype(int)
ON_CSR = {
    "tune": lambda X: mercer.tune(mercer.SVC(), X, SIGNS, grid={"C": [1, 10], "gamma": [0.1, 1]}).best_score_,
    "svm_path": lambda X: mercer.svm_path(X, SIGNS, C_max=4.0).C_,
    "linear_path": lambda X: mercer.linear_path(X, SIGNS, Cs=[0.1, 1.0]).coef,
    "calibrate": lambda X: mercer.SVC(tol=1e-8).fit(X, SIGNS).calibrate(X, SIGNS).predict_proba(X),
    "explain": lambda X: mercer.SVC(tol=1e-8).fit(X, SIGNS).explain(X, background=X).values,
    "leave_one_out": lambda X: mercer.leave_one_out(mercer.SVC(tol=1e-8).fit(X, SIGNS), X, SIGNS).values,
    "KernelPCA": lambda X: abs(mercer.KernelPCA(n_components=2).fit(X).transform(X)),
    "KernelKMeans": lambda X: mercer.KernelKMeans(n_clusters=2, random_state=0).fit(X).inertia_,
    "mmd_test": lambda X: mercer.mmd_test(X, X, random_state=0).statistic,
    "pairs": lambda X: mercer.SVC(tol=1e-8).fit(X, np.arange(60) % 3).decision_function(X),
    "joint": lambda X: (
        mercer.LinearSVC(multiclass="crammer_singer", bias=False, tol=1e-8)
        .fit(X, np.arange(60) % 3)
        .decision_function(X)
    ),
    "a path of λ": lambda X: mercer.RLSRegressorCV().fit(X, SPARSE[:, 0]).lam_,
    "a restart": lambda X: (
        mercer.SVC(tol=1e-8, warm_start=True).fit(X, SIGNS).partial_fit(X, SIGNS).decision_function(X)
    ),
}


@pytest.mark.parametrize("name", ON_CSR)
def test_tools_on_sparse_samples(name, device):
    csr = test_opaque.sp.csr_array(SPARSE)
    tensor = placed(device)(SPARSE).to_sparse_csr()
    with mercer.config_context(device="cpu"):
        expected = ON_CSR[name](csr)
    for given in (csr, tensor):
        np.testing.assert_allclose(numbers(ON_CSR[name](given)), numbers(expected), rtol=1e-4, atol=1e-4)


@pytest.mark.thorough
@pytest.mark.parametrize(("make", "name"), METHODS)
def test_every_method_gives_this_machines_answer(make, name, device):
    place = placed(device)
    model, target = here(lambda place: fitted(make, place))
    there, _ = fitted(make, place)
    if not hasattr(model, name):
        pytest.skip("not with these parameters")
    try:
        expected = here(lambda place: called(model, name, place, target))
    except (ValueError, TypeError) as error:  # what a machine refuses, it refuses everywhere
        with pytest.raises(type(error)):
            called(there, name, place, target)
        return
    found = called(there, name, place, target)
    if isinstance(expected, np.ndarray) and expected.dtype.kind in "biuf" and name != "gradient_importance":
        assert isinstance(found, torch.Tensor)
    if make in (mercer.KernelKMeans, mercer.SpectralClustering) and name == "predict":  # clusters have no order
        found, expected = (np.asarray(numbers(part)) for part in (found, expected))
        found, expected = found[:, None] == found, expected[:, None] == expected
    if make is mercer.KernelKMeans and name == "transform":
        found, expected = (np.sort(np.reshape(numbers(part), (-1, 2))) for part in (found, expected))
    if make is mercer.PegasosSVC and name not in ("predict", "score"):  # which samples are drawn depends on their order
        assert np.isfinite(numbers(found)).all()
        return
    np.testing.assert_allclose(numbers(found), numbers(expected), rtol=1e-3, atol=1e-3)
