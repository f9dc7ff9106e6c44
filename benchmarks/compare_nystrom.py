"""NystromRLS against scikit-learn's Nystroem + Ridge: same kernel, λ and number of landmarks, in one run.

    python benchmarks/compare_nystrom.py --data FOLDER [--only kin40k_reg] [--memory 2000000] [--json FILE]

FOLDER holds kin40k_reg.npz and protein_reg.npz (X, y, Xtest, ytest); features are standardised with the training rows'
mean and deviation. Every repeat draws landmarks anew (the seed is its number), for both competitors; the test errors
are means over the repeats. --memory trains on that many generated rows, in a process of its own, and prints its extra
peak memory.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from harness import forget_peak, interleave, machine, peak_kilobytes, progress, same_threads_for_all, save_json, table

# γ and λ: round numbers, set by hand and not tuned for either competitor.
SETTINGS = {"kin40k_reg": (0.1, 0.01), "protein_reg": (0.3, 1.0)}
LANDMARKS = 2000
PACKAGES = ("mercer", "scikit-learn", "numpy", "scipy")


def load(folder: Path, name: str) -> tuple[np.ndarray, ...]:
    """Standardised training and test samples with their targets."""
    with np.load(folder / f"{name}.npz") as file:
        X, y, Xtest, ytest = (file[key].astype(np.float64) for key in ("X", "y", "Xtest", "ytest"))
    mean, deviation = X.mean(axis=0), X.std(axis=0)
    deviation[deviation == 0] = 1.0
    return (X - mean) / deviation, y.ravel(), (Xtest - mean) / deviation, ytest.ravel()


def compare(folder: Path, name: str, repeats: int) -> dict[str, Any]:
    """Seconds and test errors of both on one data set."""
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline

    from mercer import NystromRLS

    gamma, lam = SETTINGS[name]
    X, y, Xtest, ytest = load(folder, name)
    errors: dict[str, list[float]] = {"mercer": [], "scikit-learn": []}
    seeds = {key: iter(range(10)) for key in errors}

    def fit(who: str) -> Any:
        seed = next(seeds[who])
        if who == "mercer":
            model = NystromRLS(lam, n_landmarks=LANDMARKS, gamma=gamma, random_state=seed)
        else:
            map_ = Nystroem(kernel="rbf", gamma=gamma, n_components=LANDMARKS, random_state=seed)
            model = make_pipeline(map_, Ridge(alpha=lam))
        fitted[who] = model.fit(X, y)
        return fitted[who]

    fitted: dict[str, Any] = {}
    timings: dict[str, Any] = {}
    for _ in range(repeats):
        # The default argument binds the loop variable, which the checker takes for a parameter.
        once = interleave({who: lambda who=who: fit(who) for who in errors}, 1)  # type: ignore[misc]
        for who, timing in once.items():
            timings.setdefault(who, []).extend(timing.seconds[:1])
            errors[who].append(float(np.sqrt(np.mean((fitted[who].predict(Xtest) - ytest) ** 2))))
    model = fitted["mercer"]
    best = {who: min(seconds) for who, seconds in timings.items()}
    return {
        "data": name,
        "n": len(y),
        "gamma": gamma,
        "lam": lam,
        "seconds": timings,
        "rmse": {who: float(np.mean(values)) for who, values in errors.items()},
        "times faster": best["scikit-learn"] / best["mercer"],
        "rmse ratio": float(np.mean(errors["mercer"]) / np.mean(errors["scikit-learn"])),
        "iterations": model.n_iter_,
        "method": model.method_,
        "relative gap": model.certificate_.relative_gap,
    }


def generated(n: int, start: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a smooth function of ten features with noise; every chunk has a seed of its own."""
    rng = np.random.default_rng(start)
    X = rng.normal(size=(n, 10))
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n)


def train_in_memory(n: int, landmarks: int, streamed: bool) -> dict[str, Any]:
    """Extra peak memory and seconds of one fit, after a small warm-up."""
    from mercer import NystromRLS

    size = 100_000

    def chunks() -> Any:
        return (generated(min(size, n - start), start) for start in range(0, n, size))

    small = generated(5000, 1)
    NystromRLS(0.1, n_landmarks=50, gamma=0.05).fit(*small)
    data: tuple[Any, ...] = (chunks,)
    if not streamed:
        parts = list(chunks())
        data = (np.concatenate([X for X, _ in parts]), np.concatenate([y for _, y in parts]))
        del parts
    forget_peak()
    before, begin = peak_kilobytes(), time.perf_counter()
    model = NystromRLS(0.1, n_landmarks=landmarks, gamma=0.05, random_state=0).fit(*data)
    seconds = time.perf_counter() - begin
    extra = (peak_kilobytes() - before) * 1024 / 1e6
    X, y = generated(20_000, -n % 2**31)
    return {
        "rows": n,
        "landmarks": landmarks,
        "streamed": streamed,
        "extra megabytes": extra,
        "seconds": seconds,
        "iterations": model.n_iter_,
        "method": model.method_,
        "relative gap": model.certificate_.relative_gap,
        "test rmse": float(np.sqrt(np.mean((model.predict(X) - y) ** 2))),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--only", choices=SETTINGS)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--memory", type=int, help="rows to generate and train on")
    parser.add_argument("--landmarks", type=int, default=LANDMARKS, help="for --memory")
    parser.add_argument("--streamed", action="store_true", help="for --memory: chunks made anew for every pass")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--json")
    args = parser.parse_args()
    same_threads_for_all(args.threads)
    if args.child:
        print(json.dumps(train_in_memory(args.memory, args.landmarks, args.streamed)))
        return
    results: dict[str, Any] = {"machine": machine(PACKAGES, args.threads), "comparisons": [], "memory": None}
    if args.data is not None:
        for name in [args.only] if args.only else SETTINGS:
            progress(f"{name} …")
            results["comparisons"].append(compare(args.data, name, args.repeats))
        header = ("data", "n", "mercer s", "scikit-learn s", "times faster", "RMSE mercer", "RMSE scikit-learn", "gap")
        rows = [
            (
                row["data"],
                row["n"],
                f"{min(row['seconds']['mercer']):.2f}",
                f"{min(row['seconds']['scikit-learn']):.2f}",
                f"{row['times faster']:.1f}",
                f"{row['rmse']['mercer']:.4f}",
                f"{row['rmse']['scikit-learn']:.4f}",
                f"{row['relative gap']:.0e}",
            )
            for row in results["comparisons"]
        ]
        print(table(header, rows))
    if args.memory:
        order = [sys.executable, __file__, "--child", "--memory", str(args.memory), "--landmarks", str(args.landmarks)]
        done = subprocess.run([*order, *["--streamed"] * args.streamed], capture_output=True, text=True, check=True)
        results["memory"] = json.loads(done.stdout.splitlines()[-1])
        print(json.dumps(results["memory"], indent=1))
    save_json(results, args.json)


if __name__ == "__main__":
    main()
