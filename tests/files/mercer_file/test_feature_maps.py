"""Maps of features in files: the same features bit for bit, and forged ones refused."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_classification
from sklearn.pipeline import make_pipeline

import mercer
from mercer.inspection.features import GaussianSeries, Monomials, Nystrom, RandomFourier
from mercer.kernels import Gaussian, Linear, Polynomial
from mercer.runtime.errors import ModelFormatError
from reference.forgery import put_together, taken_apart

X, y = make_classification(60, 4, n_informative=3, n_redundant=0, random_state=0)
SPARSE = sp.csr_array(X * (X > 0))
MAPS = {
    "Nystrom": lambda: (Nystrom(n_components=15), X),
    "Nystrom by leverage": lambda: (Nystrom(Gaussian(gamma=0.2), 12, "leverage"), X),
    "Nystrom of CSR": lambda: (Nystrom(n_components=15), SPARSE),
    "RandomFourier": lambda: (RandomFourier(n_components=20), X),
    "RandomFourier, odd": lambda: (RandomFourier(2.0 * Gaussian(gamma=0.2), n_components=21), X),
    "RandomFourier with a matrix": lambda: (RandomFourier(Gaussian(M=np.diag([1.0, 2.0, 3.0, 4.0]))), X),
    "GaussianSeries": lambda: (GaussianSeries(), X),
    "GaussianSeries of 3 terms": lambda: (GaussianSeries(Gaussian(gamma=0.1), n_terms=3), X),
    "Monomials": lambda: (Monomials(Polynomial(degree=2)), X),
    "Monomials, ordered": lambda: (Monomials((Linear() + 1.0) ** 3, ordered=True), X),
    "Monomials of CSR": lambda: (Monomials(Polynomial(degree=3, coef0=0.0)), SPARSE),
}


@pytest.mark.parametrize("case", MAPS)
def test_a_pipeline_with_a_map_predicts_the_same_bits(path, case):
    step, rows = MAPS[case]()
    model = make_pipeline(step, mercer.RLSClassifier()).fit(rows, y)
    mercer.save(model, path)
    again = mercer.load(path)
    assert type(again[0]) is type(step)
    ours, theirs = model[0].transform(rows), again[0].transform(rows)
    np.testing.assert_array_equal(*(part.toarray() if sp.issparse(part) else part for part in (ours, theirs)))
    np.testing.assert_array_equal(again.decision_function(rows), model.decision_function(rows))
    assert again[0].get_feature_names_out().tolist() == model[0].get_feature_names_out().tolist()
    assert vars(again[0]).keys() == vars(model[0]).keys()


def test_a_map_alone_is_refused_in_words(path):
    with pytest.raises(TypeError, match="save it in a Pipeline with one, or alone with pickle"):
        mercer.save(Nystrom().fit(X), path)


@pytest.mark.parametrize(
    ("case", "change", "told"),
    [
        ("Nystrom", lambda step: step["fitted"].update(landmarks_=step["fitted"]["_map"]), "landmarks_ must be"),
        ("Nystrom", lambda step: step["fitted"].update(_map=step["fitted"]["landmarks_"]), "_map must be"),
        ("RandomFourier", lambda step: step["params"].update(n_components=10**12), "do not have 10 frequencies"),
        ("RandomFourier, odd", lambda step: step["fitted"].update(_phase=None), "odd number"),
        ("GaussianSeries", lambda step: step["fitted"].update(n_terms_=10**6), "n_terms_ must be"),
        ("GaussianSeries of 3 terms", lambda step: step["params"].update(n_terms=10**9), "too many|n_terms_ must be"),
        ("Monomials", lambda step: step["fitted"]["kernel_"]["params"].update(degree=5000), "too many monomials"),
        (
            "Monomials",
            lambda step: step["fitted"].update(kernel_={"$": "kernel", "name": "Spectrum", "params": {}}),
            "vectors",
        ),
    ],
)
@pytest.mark.timeout(20)
def test_forged_maps_are_refused(path, case, change, told):
    step, rows = MAPS[case]()
    mercer.save(make_pipeline(step, mercer.RLSClassifier()).fit(rows, y), path)
    document, arrays = taken_apart(path.read_bytes())
    change(document["content"]["model"]["params"]["steps"][0]["items"][1])
    path.write_bytes(put_together(document, arrays))
    with pytest.raises(ModelFormatError, match=told):
        mercer.load(path)
