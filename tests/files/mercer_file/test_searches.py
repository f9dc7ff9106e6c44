"""Searches in files: the table of their points comes back as scikit-learn makes it."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV

import mercer
from mercer.runtime.errors import ModelFormatError
from reference.address_space import address_space
from reference.forgery import put_together, taken_apart

X, y = make_classification(60, 5, random_state=0)
GRIDS = [{"C": [1.0, 10.0], "kernel": ["linear"]}, {"C": [1.0], "gamma": [0.1, 1.0]}]


def test_a_parameter_that_a_point_lacks_is_masked_as_by_scikit_learn(path):
    model = mercer.TunedSVC(GRIDS, cv=3).fit(X, y)
    mercer.save(model, path)
    found = mercer.load(path).cv_results_
    theirs = GridSearchCV(mercer.SVC(), GRIDS, cv=3).fit(X, y).cv_results_
    order = [theirs["params"].index(point) for point in found["params"]]
    for name in ("param_C", "param_gamma", "param_kernel"):
        mask = np.ma.getmaskarray(theirs[name])[order]
        np.testing.assert_array_equal(np.ma.getmaskarray(found[name]), mask)
        assert found[name][~mask].tolist() == theirs[name][order][~mask].tolist()
    assert np.ma.getmaskarray(found["param_gamma"]).sum() == 2


def test_points_with_names_of_their_own_are_refused_before_they_make_columns(path):
    mercer.save(mercer.TunedSVC(GRIDS, cv=3).fit(X, y), path)
    document, arrays = taken_apart(path.read_bytes())
    results = document["content"]["model"]["fitted"]["cv_results_"]
    results["params"] = [{f"p{k}": 0} for k in range(20_000)]
    path.write_bytes(put_together(document, arrays))
    with address_space(1 << 28), pytest.raises(ModelFormatError, match="20000 parameters in 20000 values"):
        mercer.load(path)
