"""The two data sets that the promises are checked on."""

import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.preprocessing import scale


@pytest.fixture(scope="module")
def two():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), y


@pytest.fixture(scope="module")
def three():
    X, y = load_iris(return_X_y=True)
    return scale(X), y
