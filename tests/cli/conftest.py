"""A folder to work in, and two data sets as files of it."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.preprocessing import scale

from mercer.files.libsvm_text import write_libsvm


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def two(folder):
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X[::6]).round(4)
    y = np.where(y[::6], 1, -1)
    write_libsvm(X, y, "two")
    return X, y


@pytest.fixture
def three(folder):
    X, y = load_iris(return_X_y=True)
    rows = np.random.default_rng(0).permutation(150)
    X, y = (X[rows] - 4) / 4, np.array([30, 7, -2])[y[rows]]  # LIBSVM's kernel values are float32: keep them small
    write_libsvm(X, y, "three")
    return X, y


@pytest.fixture
def libsvm():
    return pytest.importorskip("libsvm.svmutil")
