"""Every public estimator on fewer vectors: within the proven bound of its own answers, or refused by name."""

import numpy as np
import pytest

import mercer
from mercer.inspection.displays import PathDisplay
from reference.every_estimator import CLASSES, NUMBERS, ROWS, X, estimators, fitted, values

pytestmark = [
    pytest.mark.filterwarnings("ignore::mercer.runtime.errors.NonPSDKernelWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:the best score is at the edge"),
]
# They predict from no vectors of one f, or tell variances besides. All others are compressed, a new one too.
REFUSED = {
    *("CalibratedClassifier", "CalibratedRegressor", "GaussianProcessClassifier", "GaussianProcessRegressor"),
    *("GaussianSeries", "KernelCCA", "KernelKMeans", "KernelPCA", "LinearSVC", "LinearSVR", "Monomials", "Nystrom"),
    *("PegasosSVC", "RandomFourier", "RelevanceVectorRegressor", "SpectralClustering"),
}


@pytest.mark.parametrize("name", sorted(estimators()))
def test_bound_or_refusal(name, tmp_path):
    for told, model in fitted(name).items():
        if name in REFUSED:
            with pytest.raises(TypeError, match=name):
                mercer.compress(model, 8)
            continue
        small = mercer.compress(model, 8, X=X)
        machine = mercer.unwrap(small).machine
        assert type(machine) is type(mercer.unwrap(model).machine), told
        rows = mercer.unwrap(model).rows(ROWS)
        bound = machine.compression_.bound(rows).reshape(len(ROWS), -1)
        scale = mercer.unwrap(model).unit[1]
        assert (np.abs(values(small, ROWS) - values(model, ROWS)) <= bound * scale * (1 + 1e-9)).all(), told
        mercer.save(small, tmp_path / "small.mercer")
        again = mercer.load(tmp_path / "small.mercer")
        np.testing.assert_array_equal(again.predict(ROWS), small.predict(ROWS), err_msg=told)


@pytest.mark.parametrize("make", [mercer.GaussianProcessRegressor, mercer.RelevanceVectorRegressor])
def test_picture_of_what_cannot_be_compressed(make):
    pytest.importorskip("matplotlib")
    with pytest.raises(TypeError, match=f"{make.__name__} cannot be compressed"):
        PathDisplay.from_compression(make().fit(X, NUMBERS), X, NUMBERS)


def test_mean_of_a_process_as_the_message_says():
    """What the refusal advises gives the mean of the process, on fewer vectors."""
    model = mercer.GaussianProcessRegressor().fit(X, NUMBERS)
    mean = mercer.RLSRegressor(model.lam_, kernel=model.kernel_, bias=False).fit(X, NUMBERS)
    np.testing.assert_allclose(mean.predict(ROWS), model.predict(ROWS), atol=1e-8)
    assert mercer.compress(mean, 8).compression_.n_vectors == 8


def test_weights_of_kernels_stay():
    model = mercer.MKLClassifier().fit(X, CLASSES[2])
    small = mercer.compress(model, 8, X=X, y=CLASSES[2], retrain="loss")
    np.testing.assert_array_equal(small.weights_, model.weights_)
    assert str(small.kernel_) == str(model.kernel_)
