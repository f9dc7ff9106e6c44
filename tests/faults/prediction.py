"""Slips between a fitted machine and its answers."""

from faults.mutant import m

PREDICTION = [
    m(
        "a decision value of zero is a vote for the first class",
        "mercer/data/labels.py",
        "np.ascontiguousarray((values > 0).T)",
        "np.ascontiguousarray((values >= 0).T)",
        "tests/data",
    ),
    m(
        "confidence outvotes a vote",
        "mercer/data/labels.py",
        "confidence / (3 * (np.abs(confidence) + 1))",
        "confidence / (np.abs(confidence) + 1)",
        "tests/data",
    ),
    m(
        "of two classes neither wins at f = 0",
        "mercer/data/labels.py",
        "(values.reshape(-1) >= 0)",
        "(values.reshape(-1) > 0)",
        "tests/data",
    ),
    m(
        "far float32 rows are predicted in float32",
        "mercer/gram/evaluation.py",
        "_FLOAT32_ERROR = 1e-4",
        "_FLOAT32_ERROR = 1e4",
        "tests/test_expansion.py",
    ),
    m(
        "rows of a later block go to the first",
        "mercer/gram/evaluation.py",
        "out[some.start + rows] += self._values(",
        "out[rows] += self._values(",
        "tests/test_expansion.py",
    ),
    m(
        "the factor of a linear kernel is lost",
        "mercer/gram/evaluation.py",
        "else scale * weight_vectors(",
        "else weight_vectors(",
        "tests/test_expansion.py",
    ),
]
