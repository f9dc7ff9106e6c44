"""Every machine on torch's devices, against reference values: where data may live, what is refused, how fits end."""

import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import mercer
from contracts.named import named
from contracts.names_contract import check_names_contract
from mercer.kernels import Gaussian, Laplacian, Linear, Matern, Polynomial, Sigmoid
from test_architecture import CELLS, KINDS, REFERENCES, by_hand, problem, target_of

torch = pytest.importorskip("torch", reason="torch is not installed: python -m pip install 'mercer[torch]'")
from mercer.places.torch import gram as torch_gram  # noqa: E402  # after the skip without torch
from mercer.places.torch.numbers import matmul  # noqa: E402  # after the skip without torch

pytestmark = pytest.mark.filterwarnings("ignore")
rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
y = (X[:, 0] + 0.4 * rng.normal(size=60) > 0).astype(int)
NEW = rng.normal(size=(9, 3))


@pytest.fixture
def float32_solves(monkeypatch):
    """Small problems are solved in float32 too."""
    monkeypatch.setattr(torch_gram, "_FLOAT64_ROWS", 1)


def tensor(array, device):
    return torch.as_tensor(np.asarray(array), device="cpu" if device == "torch-cpu" else device)


def here(answer):
    """What a machine said of tensors, as an array."""
    assert isinstance(answer, torch.Tensor)
    return answer.cpu().numpy()


# --- the house matrix -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "kind"), [cell for cell in CELLS if cell[1] != "callable"])
def test_every_machine_reaches_the_reference_value(name, kind, device, float32_solves):
    reference = REFERENCES[name]
    X, y = problem()
    X = X.astype(np.float32).astype(np.float64)
    target = target_of(reference.target, X, y)
    options = {} if kind == "rows" else {"kernel": KINDS[kind]()}
    K = X @ X.T if kind == "rows" else by_hand(X, X) if kind == "precomputed" else options["kernel"](X)
    for data in ("tensors", "host", "float32", "weighted"):
        given, exact = (K if kind == "precomputed" else X), K
        if data == "float32":
            given = given.astype(np.float32)
            exact = given.astype(np.float64) if kind == "precomputed" else K
        weight = np.arange(len(y)) % 4 * 0.5 if data == "weighted" else np.ones(len(y))
        used = weight > 0
        with named(data):
            place = np.asarray if data == "host" else lambda array: tensor(array, device)
            model = reference.model(**options)
            model.fit(place(given), place(target), sample_weight=place(weight))
            value = reference.value(exact[np.ix_(used, used)], target[used], weight[used])
            assert reference.right(model.certificate_, value), (model.certificate_, value)
            assert model.converged_


@pytest.mark.parametrize(
    "kernel",
    [
        Gaussian(0.3),
        2 * Gaussian(0.3) + 0.5,
        Linear(),
        Polynomial(3, 0.5, 1.0),
        Laplacian(0.4),
        "cosine",
        Matern(nu=np.inf, length_scale=1.5),
        (Linear() + 1).normalised(),
        (0.3 * Linear()).exp() * Laplacian(0.2),
    ],
    ids=repr,
)
def test_every_recipe_gives_the_same_machine(kernel, device, float32_solves):
    there = mercer.SVC(kernel=kernel, tol=1e-8).fit(tensor(X, device), y)
    with mercer.config_context(device="cpu"):
        core = mercer.SVC(kernel=kernel, tol=1e-8).fit(X, y)
        assert there.certificate_.dual == pytest.approx(core.certificate_.dual, rel=1e-6)
        f = core.decision_function(NEW)
    np.testing.assert_allclose(here(there.decision_function(tensor(NEW, device))), f, atol=1e-5)


@pytest.mark.parametrize("bias", [True, False])
def test_conjugate_gradients_are_those_of_the_core(bias, device):
    """Above 1,000 rows products are float32; several outputs, weights, and samples that appear twice."""
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(1200, 3)).astype(np.float32)
    rows[1100:] = rows[:100]
    Y = np.column_stack([np.sin(rows[:, 0]), rows[:, 1] * rows[:, 2]]) + 0.1 * rng.normal(size=(1200, 2))
    weight = rng.integers(0, 3, 1200) + 0.5
    options = {"lam": 0.02, "gamma": 0.4, "bias": bias}
    there = mercer.RLSRegressor(solver="cg", **options).fit(tensor(rows, device), Y, weight)
    with mercer.config_context(device="cpu"):
        core = mercer.RLSRegressor(solver="cholesky", **options).fit(rows, Y, weight)
        f = core.predict(rows)
    assert there.solver_ == "cg"
    assert there.converged_
    assert there.certificate_.dual <= core.certificate_.primal
    assert there.certificate_.primal == pytest.approx(core.certificate_.primal, rel=1e-7)
    np.testing.assert_allclose(here(there.predict(tensor(rows, device))), f, atol=1e-4)


def test_an_indefinite_kernel_ends_in_a_stationary_point(device):
    model = mercer.SVC(kernel=Sigmoid(2.0, -1.0), tol=1e-6).fit(tensor(X, device), y)
    assert model.certificate_.proves == "stationarity"


# --- where things live ------------------------------------------------------------------------------------------------


def test_a_trained_machine_lives_here_and_predicts_anywhere(tmp_path, device):
    model = mercer.SVC(tol=1e-8).fit(tensor(X, device), tensor(y, device))
    expected = here(model.decision_function(tensor(NEW, device)))
    assert isinstance(model.support_vectors_, np.ndarray)
    assert clone(model).get_params() == mercer.SVC(tol=1e-8).get_params()
    mercer.save(model, tmp_path / "model.mercer")
    with open(tmp_path / "model.pickle", "wb") as file:
        pickle.dump(model, file)
    np.save(tmp_path / "new.npy", NEW)
    child = textwrap.dedent(
        f"""
        import pickle, sys

        class WithoutTorch:
            def find_spec(self, name, path=None, target=None):
                if name.partition(".")[0] == "torch":
                    raise ModuleNotFoundError("there is no torch here", name="torch")

        sys.meta_path.insert(0, WithoutTorch())
        import numpy as np, mercer
        folder = {str(tmp_path)!r}
        for model in (mercer.load(folder + "/model.mercer"), pickle.load(open(folder + "/model.pickle", "rb"))):
            print(*map(repr, model.decision_function(np.load(folder + "/new.npy")).tolist()))
            assert model.certificate_.proves == "optimality"
        """
    )
    lines = subprocess.run([sys.executable, "-c", child], capture_output=True, text=True, check=True).stdout.split("\n")
    for line in lines[:2]:
        np.testing.assert_allclose([float(word) for word in line.split()], expected, atol=1e-8)


def test_a_tensor_in_this_machines_memory_is_an_array_elsewhere():
    model = mercer.SVC(tol=1e-8).fit(torch.as_tensor(X), torch.as_tensor(y))
    np.testing.assert_array_equal(
        model.decision_function(torch.as_tensor(NEW)), mercer.SVC(tol=1e-8).fit(X, y).decision_function(NEW)
    )


def test_the_same_bits_twice(device, float32_solves):
    def numbers():
        model = mercer.SVC(tol=1e-6).fit(tensor(X.astype(np.float32), device), y)
        ridge = mercer.RLSRegressor().fit(tensor(X, device), X[:, 0])
        return [model.certificate_.primal, model.certificate_.gap, ridge.certificate_.gap, model.dual_coef_.tolist()], [
            machine.predict(tensor(NEW, device)).tolist() for machine in (model, ridge)
        ]

    assert numbers() == numbers()


# --- what is refused --------------------------------------------------------------------------------------------------


def test_what_a_device_does_not_compute_is_refused_with_the_remedy(device):
    remedy = r"mercer\.config_context\(device='cpu'\)"
    with pytest.raises(TypeError, match=rf"has no formula that a device can compute; .*{remedy}"):
        mercer.SVC(kernel=by_hand).fit(X, y)
    weighted = [Gaussian(0.3).scaled_by(lambda rows: rows[:, 0]), Gaussian(0.3).of(lambda rows: rows[:, :2])]
    for kernel in ("matern", "chi2", "rational_quadratic", "tanimoto", *weighted):
        with pytest.raises(TypeError, match=rf"has no formula that a device can compute; .*{remedy}"):
            mercer.SVC(kernel=kernel).fit(np.abs(X), y)
    with pytest.raises(TypeError, match=remedy):
        mercer.SVC(kernel="spectrum").fit(["abab", "bbaa"] * 30, y)
    for dtype in (torch.float16, torch.bfloat16, torch.complex64):
        with pytest.raises(TypeError, match="give float32 or float64"):
            mercer.SVC().fit(tensor(X, device).to(dtype), y)


def test_bad_samples_are_refused_where_they_live(device):
    broken = X.copy()
    broken[4, 1] = np.nan
    with pytest.raises(ValueError, match=r"contains NaN: X\[4, 1\]"):
        mercer.SVC().fit(tensor(broken, device), y)
    with pytest.raises(ValueError, match="its shape is"):
        mercer.SVC().fit(tensor(X[:, 0], device), y)
    model = mercer.SVC().fit(tensor(X, device), y)
    with pytest.raises(ValueError, match="expecting 3 features"):
        model.predict(tensor(X[:, :2], device))
    with pytest.raises(ValueError, match="not symmetric"):
        mercer.SVC(kernel="precomputed").fit(tensor(rng.normal(size=(60, 60)), device), y)
    with pytest.raises(FloatingPointError, match="overflows"):
        mercer.SVC(kernel=Linear() * Laplacian(1.0)).fit(tensor(1e200 * X, device), y)


@pytest.mark.parametrize("name", ["cuda", "xpu", "mps"])
def test_a_device_that_is_not_there_is_named(name):
    if name == "cuda" and torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    with mercer.config_context(device=name), pytest.raises(ValueError, match=f"'{name}'"):
        mercer.SVC().fit(X, y)


# --- torch's own switches ---------------------------------------------------------------------------------------------

SWITCHES = [
    "torch.set_float32_matmul_precision('high')",
    "torch.set_float32_matmul_precision('medium')",
    "torch.backends.cuda.matmul.fp32_precision = 'tf32'",
    "torch.backends.fp32_precision = 'tf32'",
]


def test_fewer_digits_that_a_user_allows_torch_change_no_number(device):
    """In a process of its own: some of torch's switches cannot be put back."""
    child = textwrap.dedent(
        f"""
        import numpy as np, torch, mercer
        from mercer.places.torch import gram
        gram._FLOAT64_ROWS = 1
        rng = np.random.default_rng(0)
        X = rng.normal(size=(300, 40)).astype(np.float32)
        y, c = (X[:, 0] > 0).astype(int), rng.normal(size=300)

        def numbers():
            with mercer.config_context(device={device!r}):
                model = mercer.SVC(gamma=0.01).fit(X, y)
                there = gram.TorchGram.of(mercer.kernels.Gaussian(0.1), ENGINE.samples(X), 10**9, 1, 0.0)
                proven = [part.tolist() for part in there.product_bound(c)]
                return proven, model.certificate_, model.decision_function(X)

        from mercer.places.torch import ENGINE
        before = numbers()
        for switch in {SWITCHES!r}:
            exec(switch)
            after = numbers()
            assert after[0] == before[0], switch
            assert after[1].gap <= 1e-3 * after[1].primal + 2 * before[1].gap, switch
            assert np.abs(after[2] - before[2]).max() < 1e-3, switch
        """
    )
    subprocess.run([sys.executable, "-c", child], check=True)


def test_products_have_the_digits_of_their_type(device, monkeypatch):
    A = tensor(rng.normal(size=(200, 300)).astype(np.float32), device)
    true = A.double() @ A.double().T
    monkeypatch.setattr(torch, "get_float32_matmul_precision", lambda: "medium")
    np.testing.assert_allclose(matmul(A, A.T).cpu(), true.cpu(), rtol=0, atol=1e-4)
    assert matmul(A, A.T).dtype == torch.float32


# --- how fits end -----------------------------------------------------------------------------------------------------

MANY = np.random.default_rng(1).normal(size=(3000, 8))
LABELS = np.random.default_rng(2).integers(2, size=3000)


@pytest.mark.parametrize(
    "machine",
    [
        mercer.SVC(C=1e4, tol=1e-12),
        mercer.SVC(C=1e4, tol=1e-12, kernel=Gaussian(0.1) + Gaussian(1.0)),
        mercer.SVR(C=1e4, tol=1e-12),
    ],
    ids=["recipe", "composite", "SVR"],
)
def test_a_fit_ends_in_time_with_a_certificate(machine, device, float32_solves):
    begun = time.monotonic()
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = clone(machine).set_params(max_time=0.5).fit(tensor(MANY, device), LABELS)
    assert time.monotonic() - begun < 10.0
    assert model.stop_reason_ == "max_time"
    assert model.certificate_.gap > 0
    assert len(model.predict(tensor(NEW[:, [0] * 8], device))) == 9


@pytest.mark.alone
@pytest.mark.skipif(os.name != "posix", reason="signals between processes as POSIX has them")
def test_ctrl_c_ends_a_fit(device):
    child = textwrap.dedent(
        f"""
        import time
        import numpy as np, torch, mercer
        from mercer.kernels import Gaussian
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(6000, 8)), rng.integers(2, size=6000)
        with mercer.config_context(device={device!r}):
            mercer.SVC().fit(X[:100], y[:100])
            for kernel in (Gaussian(0.1), Gaussian(0.1) + Gaussian(1.0)):
                model = mercer.SVC(kernel=kernel, C=1e4, tol=1e-12)
                try:
                    print("fitting", flush=True)
                    model.fit(X, y)
                except KeyboardInterrupt:
                    print(time.monotonic(), hasattr(model, "certificate_"), flush=True)
            assert not torch.cuda.is_available() or torch.cuda.memory_allocated() < 2**26
            print(mercer.SVC().fit(X[:100], y[:100]).converged_, flush=True)
        """
    )
    process = subprocess.Popen([sys.executable, "-c", child], stdout=subprocess.PIPE, text=True)
    try:
        for _ in range(2):
            assert process.stdout.readline() == "fitting\n"
            time.sleep(1.0)
            sent = time.monotonic()
            process.send_signal(signal.SIGINT)
            ended, fitted = process.stdout.readline().split()
            assert fitted == "False"
            assert float(ended) - sent < 1.0  # 0.2 s are promised; a busy machine may add what it likes
        assert process.stdout.readline() == "True\n"
    finally:
        process.kill()
        process.communicate()


def test_sums_are_added_and_taken_away(device):
    target, model = X[:, 0] + 0.1 * X[:, 1] ** 2, mercer.RLSRegressor(kernel="linear", lam=0.1)
    weight = np.where(np.arange(60) % 4, 1.5, 0.0)
    model.partial_fit(*(tensor(part, device) for part in (X, target, weight)))
    model.forget(*(tensor(part[20:], device) for part in (X, target, weight)))
    with mercer.config_context(device="cpu"):
        alone = mercer.RLSRegressor(kernel="linear", lam=0.1).fit(X[:20], target[:20], weight[:20])
        np.testing.assert_allclose(model.predict(NEW), alone.predict(NEW), rtol=1e-9)


def test_names_keep_their_contract(device):
    pandas = pytest.importorskip("pandas")
    four = np.column_stack([X, X[:, 0] * X[:, 1]])
    check_names_contract(lambda rows, names: pandas.DataFrame(rows, columns=names), four, y)
