"""Arrays of other libraries on torch's devices: through DLPack, and under scikit-learn's array API dispatch."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

import mercer
import mercer.estimators
from mercer.samples.engine import engine_of

torch = pytest.importorskip("torch", reason="torch is not installed: python -m pip install 'mercer[torch]'")
from mercer.places.torch import ENGINE  # noqa: E402  # after the skip without torch

pytestmark = pytest.mark.filterwarnings("ignore")
rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
y = (X[:, 0] + 0.4 * rng.normal(size=60) > 0).astype(int)


class Elsewhere:
    """An array of another library, which speaks DLPack and nothing else."""

    def __init__(self, tensor):
        self._tensor = tensor

    def __dlpack__(self, **options):
        return self._tensor.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._tensor.__dlpack_device__()


class WithNamespace(Elsewhere):
    """One that names its library too."""

    def __array_namespace__(self, api_version=None):
        class Library:
            @staticmethod
            def from_dlpack(other):
                return WithNamespace(torch.from_dlpack(other))

        return Library


def placed(array, device):
    return torch.tensor(array, device="cpu" if device == "torch-cpu" else device)


@pytest.mark.parametrize("kind", [Elsewhere, WithNamespace])
def test_an_array_that_speaks_dlpack_is_computed_where_it_is(kind, device):
    given, labels = kind(placed(X, device)), kind(placed(y, device))
    model = mercer.SVC(tol=1e-8).fit(given, labels)
    with mercer.config_context(device="cpu"):
        expected = mercer.SVC(tol=1e-8).fit(X, y).decision_function(X)
    found = model.decision_function(given)
    assert isinstance(found, kind if kind is WithNamespace else torch.Tensor)
    np.testing.assert_allclose(torch.from_dlpack(found).cpu().numpy(), expected, atol=1e-6)
    assert model.score(given, labels) == np.mean((expected > 0) == y)
    assert isinstance(model.support_vectors_, np.ndarray)


def test_an_array_in_this_machines_memory_stays_one():
    assert engine_of(Elsewhere(torch.as_tensor(X))) is None
    with mercer.config_context(device="torch-cpu"):
        assert engine_of(Elsewhere(torch.as_tensor(X))) is ENGINE
        assert engine_of(X) is engine_of(3.0) is engine_of(["ab"]) is None


DISPATCH = """
    import numpy as np, torch, mercer, sklearn
    from sklearn.metrics import accuracy_score
    from sklearn.model_selection import GridSearchCV, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    y = (X[:, 0] > 0.2).astype(int)
    place = lambda array: torch.as_tensor(array, device=DEVICE)
    models = [mercer.SVC(), mercer.RLSClassifier(), mercer.LinearSVC(), mercer.NystromRLSClassifier(random_state=0)]
    with sklearn.config_context(array_api_dispatch=True), mercer.config_context(device=CONFIGURED):
        for model in models:
            model.fit(place(X), place(y))
            answers = model.predict(place(X))
            assert isinstance(answers, torch.Tensor), model
            assert accuracy_score(place(y), answers) > 0.9, model
            pipeline = make_pipeline(StandardScaler(), model).fit(place(X), place(y))
            assert isinstance(pipeline.predict(place(X)), torch.Tensor), model
        regressor = mercer.SVR().fit(place(X), place(X[:, 0]))
        assert regressor.score(place(X), place(X[:, 0])) > 0.8
        scores = cross_val_score(mercer.SVC(), place(X), place(y), cv=3)
        search = GridSearchCV(mercer.SVC(), {"C": [1.0, 10.0]}, cv=3).fit(place(X), place(y))
        assert scores.min() > 0.8 and search.best_score_ > 0.8
"""


def test_scikit_learns_array_api_dispatch(device):
    """In a process of its own: SciPy reads SCIPY_ARRAY_API when it is imported."""
    place = "cpu" if device == "torch-cpu" else device
    child = textwrap.dedent(DISPATCH).replace("DEVICE", repr(place)).replace("CONFIGURED", repr(device))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", child], env={**os.environ, "SCIPY_ARRAY_API": "1"}, capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()


SOME = ("SVC", "SVR", "RLSRegressor", "LinearSVC", "NystromRLS", "OneClassSVM")
EVERY = [
    pytest.param(name, marks=() if name in SOME else pytest.mark.thorough)
    for name in (*mercer.estimators.__all__, "KernelPCA", "KernelKMeans")
]


@pytest.mark.parametrize("name", EVERY)
def test_scikit_learns_checks_on_a_device(name, device):
    """Everything that the checks give goes to the device, and comes back as they ask for it."""
    check_estimator(getattr(mercer, name)())


def test_half_precision_is_widened_from_numpy_and_refused_as_a_tensor(device):
    X = np.random.default_rng(0).normal(size=(30, 3)).astype(np.float16)
    y = X[:, 0] > 0
    there, exact = (mercer.SVC(gamma=0.5).fit(rows, y).certificate_ for rows in (X, X.astype(np.float64)))
    assert there == exact
    with pytest.raises(TypeError, match=r"float16; give float32 or float64"):
        mercer.SVC().fit(torch.as_tensor(X, device="cpu" if device == "torch-cpu" else device), y)


DEFAULT_DEVICE = """
    import numpy as np, torch, mercer, sklearn
    from sklearn.metrics import accuracy_score
    from sklearn.model_selection import cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    X = np.random.default_rng(0).normal(size=(90, 3))
    y = (X[:, 0] > 0.2).astype(int)
    place = torch.as_tensor
    with sklearn.config_context(array_api_dispatch=True):
        for model in (mercer.SVC(), mercer.RLSClassifier(), mercer.LinearSVC(), mercer.OneClassSVM(), mercer.SVR()):
            answers = sklearn.clone(model).fit(place(X), place(y), sample_weight=place(np.ones(90))).predict(place(X))
            np.testing.assert_array_equal(answers, sklearn.clone(model).fit(X, y).predict(X))
        assert accuracy_score(place(y), mercer.SVC().fit(place(X), place(y)).predict(place(X))) > 0.9
        pipeline = make_pipeline(StandardScaler(), mercer.SVC()).fit(place(X), place(y))
        assert pipeline.score(place(X), place(y)) > 0.9
        assert cross_val_score(mercer.SVC(), place(X), place(y), cv=3).min() > 0.8
"""


def test_array_api_dispatch_with_tensors_in_the_hosts_memory():
    """Without a device, where a tensor counts as an array: the answers are those of the array."""
    pytest.importorskip("torch")
    child, environment = textwrap.dedent(DEFAULT_DEVICE), {**os.environ, "SCIPY_ARRAY_API": "1"}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", child], env=environment, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
