"""Slips between a model and its file, ours or another program's."""

from faults.mutant import m

FILES = [
    m(
        "pairs that change direction keep their rho",
        "mercer/files/libsvm_estimator.py",
        "rho=sign * model.rho[source]",
        "rho=model.rho[source]",
        "tests/files/test_libsvm_model.py",
    ),
    m(
        "pairs that change direction keep their probabilities",
        "mercer/files/libsvm_estimator.py",
        "sign * model.prob_b[source]",
        "model.prob_b[source]",
        "tests/files/test_libsvm_model.py",
    ),
    m(
        "an array in Fortran's order is read in C's",
        "mercer/files/mercer_file/container.py",
        'order="F" if entry.order == "F" else "C"',
        'order="C"',
        "tests/files/mercer_file/test_container.py::test_round_trip",
    ),
    m(
        "a checksum is not compared",
        "mercer/files/mercer_file/container.py",
        "if digest.hexdigest() != entry.sha256:",
        "if len(digest.hexdigest()) != len(entry.sha256):",
        "tests/files/mercer_file/test_container.py::test_every_byte_flipped",
    ),
    m(
        "a bias of another scale is written as it is",
        "mercer/files/liblinear_estimator.py",
        "[w.T, (b / B)[None]]",
        "[w.T, b[None]]",
        "tests/files/test_liblinear_estimator.py",
    ),
    m(
        "C and ONNX files lose the constant of a kernel",
        "mercer/files/exported_parts.py",
        "return np.asarray(b + constant * np.asarray(coefficients.sum(axis=0)).ravel())",
        "return np.asarray(b)",
        "tests/files/test_onnx_export.py",
        "tests/files/test_onnx_machines.py",
    ),
]
