"""Classes of integer labels by counting, against np.unique."""

import numpy as np
import pytest

from mercer import _core
from mercer.samples.labels import read_labels

SMALLEST, LARGEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


@pytest.mark.parametrize("least", [SMALLEST, -7, 0, LARGEST - 20])
def test_classes_and_codes_are_those_of_sorting(least):
    labels = least + np.random.default_rng(0).choice([0, 3, 4, 20], 50)
    classes, codes = np.unique(labels, return_inverse=True)
    found_classes, found_codes = _core.class_codes(labels, 22)
    assert (found_classes == classes).all()
    assert (found_codes == codes).all()
    assert len(_core.class_codes(labels, 21)[0]) == 0  # the labels span 21 integers


def test_a_wide_span_and_no_labels_have_no_classes():
    assert len(_core.class_codes(np.array([SMALLEST, LARGEST]), 1000)[0]) == 0
    assert len(_core.class_codes(np.zeros(0, dtype=np.int64), 1000)[0]) == 0
    assert len(_core.class_codes(np.array([1, 1]), 0)[0]) == 0


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64"])
def test_classes_keep_the_type_of_the_labels(dtype):
    y = np.repeat(np.array([5, 7, 100], dtype=dtype), 40)
    classes, codes = read_labels(y)
    assert classes.dtype == dtype
    assert classes.tolist() == [5, 7, 100]
    assert codes.dtype == np.intp
    assert (codes == np.repeat(np.arange(3), 40)).all()


def test_unsigned_labels_beyond_int64_are_not_wrapped():
    y = np.repeat(np.array([0, 2**64 - 1], dtype=np.uint64), 5)
    assert read_labels(y)[0].tolist() == [0, 2**64 - 1]
