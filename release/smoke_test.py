"""Try an installed mercer in half a minute: every wheel and the source distribution must pass this on its platform.

    python release/smoke_test.py

It needs mercer and what mercer needs, nothing else.
"""

import contextlib
import io
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import sklearn.svm
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import _core


def check_versions():
    """Print what a bug report would show, and refuse a core without wide registers on processors that have them."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        mercer.show_versions()
    print(printed.getvalue())
    assert f"  mercer                {mercer.__version__}\n" in printed.getvalue()
    levels = _core.levels()
    wide = {"x86_64": "avx2", "amd64": "avx2", "arm64": "neon", "aarch64": "neon"}.get(platform.machine().lower())
    assert wide is None or wide in levels, f"the core has the levels {levels}, without {wide}"


def check_training(X, y):
    """Return a model that scikit-learn's agrees with, and whose certificate proves its optimality."""
    model = mercer.SVC(C=10).fit(X, y)
    other = sklearn.svm.SVC(C=10, tol=1e-6).fit(X, y)
    assert model.converged_
    assert model.certificate_.relative_gap < 1e-3
    assert mercer.certify(other, X, y).relative_gap < 1e-5
    # Both optima are within the same strip of each other's decision values.
    np.testing.assert_allclose(model.decision_function(X), other.decision_function(X), atol=0.02)
    return model


def check_files(model, X, y, folder):
    """Save, load and predict again; read data and a model as LIBSVM writes them."""
    mercer.save(model, folder / "model.mercer")
    again = mercer.load(folder / "model.mercer")
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))

    mercer.libsvm.write_libsvm(X, y, folder / "data.txt")
    rows, labels = mercer.libsvm.read_libsvm(folder / "data.txt")
    np.testing.assert_array_equal(rows.toarray(), X)
    np.testing.assert_array_equal(labels, y)
    mercer.save(model, folder / "libsvm.model")
    theirs = mercer.load(folder / "libsvm.model")
    # LIBSVM writes support vectors with eight digits.
    np.testing.assert_allclose(theirs.decision_function(X), model.decision_function(X), atol=1e-5)


def check_commands(y, folder):
    """Train, predict and write the page from the command line, which needs the files that are no modules."""

    def run(*words):
        return subprocess.run(
            [sys.executable, "-m", "mercer", *words], cwd=folder, check=True, capture_output=True, encoding="utf-8"
        ).stdout

    assert run("--version") == f"mercer {mercer.__version__}\n"
    assert "optimal to within" in run("train")  # a data set of scikit-learn's
    assert "Total nSV" in run("train", "data.txt", "--output", "trained.mercer")  # as LIBSVM reports it
    run("predict", "data.txt", "trained.mercer", "answers.txt")
    answers = np.loadtxt(folder / "answers.txt")
    assert np.mean(answers == y) > 0.95
    run("toy", "--output", "toy.html")
    assert (folder / "toy.html").stat().st_size > 100_000


def main():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    check_versions()
    with tempfile.TemporaryDirectory() as name:
        model = check_training(X, y)
        check_files(model, X, y, Path(name))
        check_commands(y, Path(name))
    print(f"mercer {mercer.__version__} passed on {platform.platform()}, Python {platform.python_version()}")


if __name__ == "__main__":
    main()
