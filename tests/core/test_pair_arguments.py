"""What the core refuses of pairs of blocks: layouts that do not fit, arrays that are too short."""

import numpy as np
import pytest

from mercer import _core
from mercer.kernels import Gaussian
from mercer.places.host.prepared import PreparedSamples


def arguments():
    """What `solve_pairs` and `add_pairs` of the core take for three samples against two."""
    samples = PreparedSamples.of(Gaussian(gamma=1.0), np.arange(10.0).reshape(5, 2), 1).all_samples(np.float64)
    layout = {
        "members": np.arange(5),
        "starts": np.array([0, 3, 5]),
        "blocks": np.array([0, 1]),
        "offsets": np.array([0, 5]),
    }
    return samples, layout


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("members", np.array([0, 1, 2, 3, 5]), "out of range"),
        ("members", np.arange(4), "starts must rise from 0"),
        ("starts", np.array([0, 4, 3, 5]), "starts must rise from 0"),
        ("starts", np.array([], dtype=np.int64), "starts must rise from 0"),
        ("blocks", np.array([0, 2]), "out of range"),
        ("blocks", np.array([0]), "two blocks per pair"),
        ("offsets", np.array([0, 4]), "as many variables as its blocks have samples"),
        ("offsets", np.array([1, 5]), "offsets must rise from 0"),
        ("offsets", np.array([], dtype=np.int64), "offsets must rise from 0"),
        ("offsets", [0, 1], "offsets must be a contiguous"),
    ],
)
def test_the_core_refuses_layouts_that_do_not_fit(name, value, message):
    samples, layout = arguments()
    total = np.zeros(5)
    assert samples.add_pairs(*layout.values(), np.array([1.0, 1.0, 1.0, 0.0, 1.0]), total.copy(), 1) == 20
    assert samples.add_pairs(*layout.values(), np.ones(5), total, 1) == 25
    assert (total > 1 - 1e-15).all()
    layout[name] = value
    with pytest.raises(ValueError, match=message):
        samples.add_pairs(*layout.values(), np.ones(5), np.zeros(5), 1)


@pytest.mark.parametrize("k", range(6))
def test_the_core_refuses_arrays_that_are_too_short(k):
    samples, layout = arguments()
    arrays = [
        np.ones(5),
        np.array([1.0, 1, 1, -1, -1]),
        np.zeros(5),
        np.repeat([0.0, -1.0], [3, 2]),
        np.ones(5),
        np.zeros(5),
    ]
    samples.solve_pairs(*layout.values(), *arrays, True, 1e-3, 100, 1.0, 1)
    arrays[k] = arrays[k][:4].copy()
    with pytest.raises(ValueError, match="4 elements, but 5 are needed"):
        samples.solve_pairs(*layout.values(), *arrays, True, 1e-3, 100, 1.0, 1)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("rows", np.array([0, 1, 2]), "rows holds an index that is out of range"),
        ("sizes", np.ones(2), "sizes has 2 elements, but 1 are needed"),
        ("reach", np.ones(3), "reach has 3 elements, but 2 are needed"),
        ("offsets", np.array([0, 4]), "offsets must not decrease"),
        ("offsets", np.array([], dtype=np.int64), "offsets must have one element more"),
        ("u", np.ones(2), "u has 2 elements, but 3 are needed"),
        ("n_threads", 0, "n_threads must be at least 1"),
    ],
)
def test_the_core_refuses_points_to_certify_that_do_not_fit(name, value, message):
    variables = {each: np.zeros(3) for each in ("p", "lower", "upper", "d", "u", "beta")}
    rows = {"rows": np.array([0, 1, 1]), "sizes": np.zeros(1), "unit_errors": np.zeros(2), "reach": np.ones(2)}
    given = {"offsets": np.array([0, 3]), **variables, **rows, "paired": True, "n_threads": 1}
    assert _core.pair_findings(**given).shape == (1, 16)
    with pytest.raises(ValueError, match=message):
        _core.pair_findings(**{**given, name: value})
