"""A fitted model owns its kernel: nothing that happens to the caller's object afterwards changes what it predicts."""

import numpy as np
import pytest
from sklearn.base import is_classifier

import mercer
from mercer.kernels import Gaussian, Linear

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
LABELS = (X[:, 0] * X[:, 1] > 0).astype(int)
TARGETS = X[:, 0] * X[:, 1]
MACHINES = [name for name in mercer.estimators.__all__ if "kernel" in getattr(mercer, name)().get_params()]


def outputs(model):
    return (model.decision_function if hasattr(model, "decision_function") else model.predict)(X)


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("composite", [False, True], ids=["plain", "composite"])
def test_changing_the_callers_kernel_changes_no_model(tmp_path, name, composite):
    gaussian = Gaussian(gamma=1.0)
    kernel = gaussian + 0.1 * Linear() if composite else gaussian
    machine = getattr(mercer, name)(kernel=kernel)
    model = machine.fit(X, LABELS if is_classifier(machine) else TARGETS)
    before = outputs(model)
    gaussian.set_params(gamma=7.0)  # before anything was predicted from the file, and after it was from the model
    np.testing.assert_array_equal(outputs(model), before)
    mercer.save(model, tmp_path / "model.mercer")
    np.testing.assert_array_equal(outputs(mercer.load(tmp_path / "model.mercer")), before)


def test_models_that_share_a_kernel_object_are_apart():
    kernel = Gaussian(gamma=1.0)
    kept = [mercer.SVC(kernel=kernel).set_params(kernel__gamma=gamma).fit(X, LABELS) for gamma in (0.01, 1.0, 10.0)]
    alone = [mercer.SVC(gamma=gamma).fit(X, LABELS) for gamma in (0.01, 1.0, 10.0)]
    for model, other in zip(kept, alone, strict=True):
        np.testing.assert_array_equal(outputs(model), outputs(other))


def test_a_parameter_set_after_the_fit_waits_for_the_next():
    model = mercer.SVC(kernel=Gaussian(gamma=1.0)).fit(X, LABELS)
    model.set_params(kernel__gamma=7.0)
    np.testing.assert_array_equal(outputs(model), outputs(mercer.SVC(gamma=1.0).fit(X, LABELS)))
    assert model.kernel_.gamma == 1.0
