"""mercer beside files that LIBSVM wrote: trains, predicts and converts, and says how far apart the two are.

    python tests/cli/golden_libsvm.py FOLDER

FOLDER holds heart_scale and heart.*.model, heart.*.predict, three_class.model, precomputed.model, empty_sv.model as
svm-train and svm-predict of LIBSVM 3.37 write them. The option -e 1e-9 rows need the package libsvm-official.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import io
import os
import re
import sys
import tempfile
from pathlib import Path

import numpy as np

from mercer.cli.main import main as mercer
from mercer.files.libsvm_estimator import estimator_from_libsvm, libsvm_from_estimator
from mercer.files.libsvm_model import format_libsvm_model, read_libsvm_model

RUNS = {
    "m1": "",
    "m_l": "-t 0",
    "m_p": "-t 1 -r 1",
    "m_g": "-t 3",
    "m_s1": "-s 1",
    "m_s2": "-s 2",
    "m_s3": "-s 3",
    "m_s4": "-s 4",
}
OBJECTIVES = {
    "m1": -100.877288,
    "m_l": -92.473356,
    "m_p": -82.394992,
    "m_g": -110.099362,
    "m_s1": 9.563391,
    "m_s2": 3366.935440,
    "m_s3": -95.509946,
    "m_s4": -107.405042,
}
PREDICTIONS = {"1": "", "2": "-b 1", "_s1": "", "_s2": "", "_s3": "", "_s4": "", "_r": "-b 1", "_oc": "-b 1"}


def run(*words: str) -> tuple[int, str]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()) as errors:
        code = mercer(list(words))
    return code, out.getvalue() if code == 0 else errors.getvalue().strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    folder = parser.parse_args().folder
    data = str(folder / "heart_scale")
    with tempfile.TemporaryDirectory() as scratch:
        path = str(Path(scratch) / "out")
        print("train: objective off by (relative), rho off by, support vectors off by; beside LIBSVM at -e 1e-9:")
        print("  objective off by at our default -e, and at -e 1e-9; rho off by at -e 1e-9")
        for name, options in RUNS.items():
            code, told = run("train", *options.split(), data, path)
            if code:
                print(f"  {name:6} {options:12} {told}")
                continue
            theirs, ours = read_libsvm_model(folder / f"heart.{name}.model"), read_libsvm_model(path)
            off = abs(objective(told) - OBJECTIVES[name]) / abs(OBJECTIVES[name])
            more = len(ours.coefficients) - len(theirs.coefficients)
            rho = abs(ours.rho - theirs.rho).max()
            print(f"  {name:6} {options:12} {off:.1e}  {rho:.1e}  {more:+d}{tight(options, data, path)}")
        print("predict: the same bytes, or values off by")
        for name, options in PREDICTIONS.items():
            code, told = run("predict", *options.split(), data, str(folder / f"heart.m{name}.model"), path)
            ours, theirs = Path(path).read_text(), (folder / f"heart.o{name}.predict").read_text()
            same = "the same bytes" if ours == theirs else f"{difference(ours, theirs):.1e}"
            print(f"  m{name:5} {options:12} {same if code == 0 else told}")
        print("file → estimator → file")
        for model in sorted(folder.glob("*.model")):
            try:
                again = format_libsvm_model(libsvm_from_estimator(estimator_from_libsvm(read_libsvm_model(model))))
                print(f"  {model.name:20} {'the same bytes' if again == model.read_bytes() else 'DIFFERENT'}")
            except NotImplementedError as error:
                same = format_libsvm_model(read_libsvm_model(model)) == model.read_bytes()
                print(f"  {model.name:20} read and written: {'the same bytes' if same else 'DIFFERENT'}; {error}")


def tight(options: str, data: str, path: str) -> str:
    """Objective and rho beside LIBSVM's at -e 1e-9."""
    try:
        from libsvm import svmutil
    except ImportError:
        return ""
    y, x = svmutil.svm_read_problem(data)
    sys.stdout.flush()
    # What the C library prints goes around Python's stdout.
    with tempfile.TemporaryFile("w+") as file:
        kept = os.dup(1)
        os.dup2(file.fileno(), 1)
        model = svmutil.svm_train(y, x, f"{options} -e 1e-9")
        ctypes.CDLL(None).fflush(None)
        os.dup2(kept, 1)
        os.close(kept)
        file.seek(0)
        theirs = objective(file.read())
    svmutil.svm_save_model(path, model)
    rho = read_libsvm_model(path).rho
    _, default = run("train", *options.split(), data, path)
    _, told = run("train", *options.split(), "-e", "1e-9", data, path)
    off = [abs(objective(text) - theirs) / abs(theirs) for text in (default, told)]
    return f"  {off[0]:.1e} {off[1]:.1e}  {abs(read_libsvm_model(path).rho - rho).max():.1e}"


def objective(text: str) -> float:
    # svm-train always prints it; a text without it should fail loudly.
    return float(re.search(r"obj = (\S+),", text)[1])  # type: ignore[index]  # every training prints it


def difference(a: str, b: str) -> float:
    return float(np.abs(np.array(a.split(), dtype=float) - np.array(b.split(), dtype=float)).max())


if __name__ == "__main__":
    main()
