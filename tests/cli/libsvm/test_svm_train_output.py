"""What ``mercer train`` and ``predict`` print and write, beside what LIBSVM itself does on the same file."""

import re

import numpy as np
import pytest
from sklearn.datasets import load_diabetes

from cli.commands import run
from mercer.files.libsvm_text import write_libsvm


@pytest.fixture
def svm_train(libsvm):
    """LIBSVM's own lines, as svm-train prints them."""
    from libsvm.svm import PRINT_STRING_FUN

    def lines(file, options):
        y, X = libsvm.svm_read_problem(file)
        parameters, printed = libsvm.svm_parameter(options), []
        parameters.print_func = PRINT_STRING_FUN(lambda text: printed.append(text.decode()))
        libsvm.svm_train(libsvm.svm_problem(y, X), parameters)
        return "".join(printed)

    return lines


def figures(printed):
    """(name, value) of each ``name = value`` in the order of printing; iterations are each program's own."""
    found = re.findall(r"(nu|C|epsilon|obj|rho|nSV|nBSV) = (-?[0-9.]+)", printed)
    return [name for name, _ in found], np.array([float(value) for _, value in found])


@pytest.mark.parametrize(
    ("data", "options"),
    [
        *(("two", f"-s {s}") for s in range(5)),
        *(("two", f"-s {s} -t 0 -c 0.1") for s in (0, 1, 3, 4)),
        *(("two", f"-s {s} -t 1 -r 1 -d 2") for s in (1, 2)),
        ("two", "-s 0 -w1 10 -w-1 2"),
        ("two", "-s 1 -n 0.1"),
        ("two", "-s 1 -n 0.3 -t 0"),
        ("two", "-s 2 -n 0.2 -g 0.1"),
        ("two", "-s 3 -c 5 -p 0.3"),
        ("two", "-s 4 -c 10 -n 0.2"),
        ("three", "-s 0 -w7 3 -w-2 0.1"),
        ("three", "-s 1"),
        ("three", "-s 1 -n 0.2 -g 2"),
    ],
)
def test_every_figure_is_svm_trains(data, options, svm_train, request, capsys):
    """Kernel values in float32, as LIBSVM keeps them, move the objective by some 1e-7 of it."""
    request.getfixturevalue(data)
    run("train", *options.split(), "-e", "1e-9", data)
    names, ours = figures(capsys.readouterr().out)
    their_names, theirs = figures(svm_train(data, f"{options} -e 1e-9"))
    assert names == their_names
    assert "obj" in names
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=2e-6)


@pytest.mark.parametrize("options", ["-s 3 -c 100", "-s 4 -t 0 -c 10"])
def test_values_of_a_regression_differ_by_rounding_only(folder, options, libsvm):
    """Sums are taken in another order than LIBSVM's, so that the last of 17 digits may be another."""
    X, y = load_diabetes(return_X_y=True)
    write_libsvm(target="data", X=X * 10, y=y)
    run("train", "-q", *options.split(), "data", "model")
    run("predict", "-q", "data", "model", "out")
    theirs = libsvm.svm_predict(*libsvm.svm_read_problem("data"), libsvm.svm_load_model("model"), "-q")[0]
    np.testing.assert_allclose(np.loadtxt("out"), theirs, rtol=0, atol=1e-14 * len(y) * np.abs(theirs).max())
