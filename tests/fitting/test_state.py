"""A machine whose attributes contradict each other is refused when its file is read."""

import numpy as np
import pytest

from bad_inputs.given import pegasos
from mercer.errors import ModelFormatError
from mercer.fitting.state import check_state

CONTRADICTIONS = {
    "_theta_": np.zeros((1, 2)),
    "_total_": np.full((1, 4), np.nan),
    "_marks_": np.zeros((1, 4)),
    "intercept_": np.zeros(2),
    "t_": -1,
    "n_iter_": 1.5,
    "classes_": np.array([0]),
    "class_weight_": np.ones(3),
}


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        *((kernel, name) for kernel in ("linear", "rbf") for name in CONTRADICTIONS),
        ("linear", "coef_"),
        ("rbf", "dual_coef_"),
    ],
)
def test_a_file_that_contradicts_itself_is_refused(kernel, name):
    model = pegasos(kernel=kernel)
    check_state(model)
    setattr(model, name, CONTRADICTIONS.get(name, np.zeros((1, 7))))
    with pytest.raises(ModelFormatError):
        check_state(model)
