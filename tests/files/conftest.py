"""A place for a model file, and the smallest interesting one."""

import numpy as np
import pytest

import mercer
from mercer import SVC


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.mercer"


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The smallest interesting file, with the model that it holds."""
    path = tmp_path_factory.mktemp("small") / "model.mercer"
    model = SVC(C=1.0).fit(np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.5]]), [0, 1, 1])
    mercer.save(model, path)
    return path.read_bytes(), model
