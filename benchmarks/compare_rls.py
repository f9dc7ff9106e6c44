"""mercer's regularized least squares against scikit-learn's KernelRidge, and its λ-path against one eigh.

    python benchmarks/compare_rls.py --data FOLDER              everything, some minutes on an idle machine
    python benchmarks/compare_rls.py --data FOLDER --only fit --sizes 5000

Same rows, same λ, same Gaussian kernel, both without bias. Every fit's extra peak memory is measured in a process of
its own. `--json` keeps every number.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import harness
import numpy as np
import scipy.linalg

LAM, GAMMA, N_LAMS = 0.01, 0.1, 50
SECTIONS = ("fit", "memory", "path")


def load(folder: str, n: int, dtype: str) -> tuple[np.ndarray, ...]:
    """The first n training rows of kin40k and its test rows; without a folder, generated rows of the same shape."""
    if folder:
        with np.load(Path(folder) / "kin40k_reg.npz") as file:
            X, y, Xtest, ytest = (file[name].astype(dtype) for name in ("X", "y", "Xtest", "ytest"))
    else:
        rng = np.random.default_rng(0)
        X, Xtest = rng.normal(size=(n, 8)).astype(dtype), rng.normal(size=(2000, 8)).astype(dtype)
        y, ytest = (np.sin(A).sum(axis=1).astype(dtype) for A in (X, Xtest))
    if len(X) < n:
        raise ValueError(f"kin40k has {len(X)} training rows, {n} were asked for")
    return X[:n], y[:n], Xtest, ytest


def ours() -> Any:
    from mercer import RLSRegressor

    return RLSRegressor(LAM, kernel="rbf", gamma=GAMMA, bias=False)


def theirs() -> Any:
    from sklearn.kernel_ridge import KernelRidge

    return KernelRidge(alpha=LAM, kernel="rbf", gamma=GAMMA)


MODELS = {"mercer": ours, "scikit-learn": theirs}


def _fit(model: Any, X: np.ndarray, y: np.ndarray) -> Any:
    return model().fit(X, y)


def fit_section(folder: str, sizes: list[int], dtypes: list[str], repeats: int) -> list[dict[str, Any]]:
    """Seconds and test error, in turns."""
    rows = []
    for n in sizes:
        for dtype in dtypes:
            X, y, Xtest, ytest = load(folder, n, dtype)
            timings = harness.interleave({name: partial(_fit, model, X, y) for name, model in MODELS.items()}, repeats)
            row: dict[str, Any] = {"n": n, "dtype": dtype}
            for name, timing in timings.items():
                row[name] = timing.to_dict()
                if not timing.error:
                    error = timing.result.predict(Xtest) - ytest
                    row[name]["rmse"] = float(np.sqrt(np.mean(error.astype(np.float64) ** 2)))
            model = timings["mercer"].result
            row["mercer"] |= {"factor": model.factor_precision_, "violation": model.certificate_.violation}
            row["speedup"] = timings["scikit-learn"].best / timings["mercer"].best
            rows.append(row)
            harness.progress(f"fit {n} {dtype}: {row['speedup']:.2f} times faster")
    return rows


def memory_section(folder: str, sizes: list[int], dtypes: list[str]) -> list[dict[str, Any]]:
    """Extra peak memory of one fit, each in a fresh process."""
    rows = []
    for n in sizes:
        for dtype in dtypes:
            row: dict[str, Any] = {"n": n, "dtype": dtype}
            for name in MODELS:
                order = json.dumps({"competitor": name, "folder": folder, "n": n, "dtype": dtype})
                done = subprocess.run(
                    [sys.executable, __file__, "--measure", order], capture_output=True, text=True, check=True
                )
                row[name] = json.loads(done.stdout.splitlines()[-1])["megabytes"]
            row["share"] = row["mercer"] / row["scikit-learn"]
            rows.append(row)
            harness.progress(f"memory {n} {dtype}: {row['share']:.2f} of scikit-learn's")
    return rows


def measure(competitor: str, folder: str, n: int, dtype: str) -> dict[str, float]:
    """In this process: VmHWM after a fit minus VmHWM after loading and a small warm-up."""
    X, y, _, _ = load(folder, n, dtype)
    MODELS[competitor]().fit(X[:600], y[:600])
    harness.forget_peak()
    before = harness.peak_kilobytes()
    MODELS[competitor]().fit(X, y)
    return {"megabytes": (harness.peak_kilobytes() - before) * 1024 / 1e6}


def path_section(folder: str, n: int) -> dict[str, Any]:
    """50 values of λ with leave-one-out, against one eigh of the same matrix."""
    from mercer import RLSRegressorCV
    from mercer.kernels import Gaussian

    X, y, _, _ = load(folder, n, "float64")
    K = Gaussian(gamma=GAMMA)(X)
    out: dict[str, Any] = {"n": n, "lams": N_LAMS}
    for name, call in (
        ("eigh", lambda: scipy.linalg.eigh(K)),
        ("path", lambda: RLSRegressorCV(N_LAMS, gamma=GAMMA, bias=False).fit(X, y)),
        ("path with bias", lambda: RLSRegressorCV(N_LAMS, gamma=GAMMA).fit(X, y)),
    ):
        begin = time.perf_counter()
        call()
        out[name] = time.perf_counter() - begin
    out["ratio"], out["ratio with bias"] = out["path"] / out["eigh"], out["path with bias"] / out["eigh"]
    return out


def report(results: dict[str, Any]) -> str:
    """The results as Markdown."""
    parts = []
    if rows := results.get("fit"):
        header = (
            "rows",
            "input",
            "mercer s",
            "KernelRidge s",
            "times faster",
            "RMSE",
            "its RMSE",
            "factor",
            "residual",
        )
        body = [
            (
                f"{r['n']:,}",
                r["dtype"],
                f"{r['mercer']['best']:.2f}",
                f"{r['scikit-learn']['best']:.2f}",
                f"{r['speedup']:.2f}",
                f"{r['mercer']['rmse']:.6f}",
                f"{r['scikit-learn']['rmse']:.6f}",
                r["mercer"]["factor"],
                f"{r['mercer']['violation']:.0e}",
            )
            for r in rows
        ]
        parts.append("## One λ\n\n" + harness.table(header, body))
    if rows := results.get("memory"):
        body = [
            (f"{r['n']:,}", r["dtype"], f"{r['mercer']:.0f}", f"{r['scikit-learn']:.0f}", f"{r['share']:.2f}")
            for r in rows
        ]
        header = ("rows", "input", "mercer MB", "KernelRidge MB", "share")
        parts.append("## Extra peak memory\n\n" + harness.table(header, body))
    if r := results.get("path"):
        header = ("rows", "λ", "one eigh s", "path s", "ratio", "path with bias s", "ratio")
        cells = ("eigh", "path", "ratio", "path with bias", "ratio with bias")
        body = [(f"{r['n']:,}", r["lams"], *(f"{r[name]:.2f}" for name in cells))]
        parts.append("## Fifty λ with leave-one-out\n\n" + harness.table(header, body))
    return "\n\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", default="", metavar="FOLDER", help="where kin40k_reg.npz is; else generated rows")
    parser.add_argument("--only", default=",".join(SECTIONS), help=f"of {','.join(SECTIONS)}")
    parser.add_argument("--sizes", default="5000,10000")
    parser.add_argument("--dtypes", default="float64,float32")
    parser.add_argument("--path-size", type=int, default=5000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(**json.loads(options.measure))))
        return
    harness.same_threads_for_all(options.threads)
    sizes, dtypes = [int(n) for n in options.sizes.split(",")], options.dtypes.split(",")
    results: dict[str, Any] = {
        "machine": harness.machine(("mercer", "scikit-learn", "scipy", "numpy"), options.threads)
    }
    wanted = options.only.split(",")
    if "fit" in wanted:
        results["fit"] = fit_section(options.data, sizes, dtypes, options.repeats)
    if "memory" in wanted:
        results["memory"] = memory_section(options.data, sizes, dtypes)
    if "path" in wanted:
        results["path"] = path_section(options.data, options.path_size)
    print(report(results))
    harness.save_json(results, options.json)


if __name__ == "__main__":
    main()
