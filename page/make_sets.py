"""Write src/mercer/notes/toy/web/sets.js: the examples of mercer.datasets, and a few more, as the page's data sets."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from mercer import datasets

TARGET = Path(__file__).resolve().parent.parent / "src/mercer/notes/toy/web/sets.js"


def classes(example: datasets.Example) -> tuple[np.ndarray, np.ndarray]:
    """Points in the plane, the label +1 as the first class."""
    X = example.X if example.X.shape[1] == 2 else np.column_stack([example.X[:, 0], np.zeros(len(example.X))])
    return X, np.where(example.y > 0, 0, 1)


def sets() -> dict[str, tuple[str, dict[str, object], np.ndarray, np.ndarray]]:
    """Name: the task, what is set for it, points and classes."""
    rng = np.random.default_rng(0)
    blobs = np.concatenate([rng.normal(centre, 0.55, (16, 2)) for centre in ((-2, -1.2), (2, -1.0), (0, 1.6))])
    corners = np.concatenate(
        [rng.normal(centre, 0.6, (12, 2)) for centre in ((-2, 1.4), (2, 1.4), (-2, -1.4), (2, -1.4))]
    )
    x = np.sort(rng.uniform(-3.8, 3.8, 50))
    sine = np.column_stack([x, 1.5 * np.sin(1.5 * x) + rng.normal(0, 0.25, 50)])
    cloud = np.concatenate([rng.normal(0, 0.8, (45, 2)), rng.uniform((-3.8, -2.8), (3.8, 2.8), (6, 2))])
    none = np.zeros(0, dtype=int)
    others = np.random.default_rng(1)
    chess = others.uniform((-3.4, -2.4), (3.4, 2.4), (70, 2))
    chess = chess[np.abs(chess).min(axis=1) > 0.25]
    turn = np.linspace(0.6, 3.4 * np.pi, 38)
    arm = np.column_stack([np.cos(turn), np.sin(turn)]) * (0.22 * turn + 0.1)[:, None]
    spiral = np.concatenate([arm, -arm]) + others.normal(0, 0.04, (76, 2))
    return {
        "rings": ("classify", {"kernels": ["rbf"], "gamma": 0.5, "C": 10}, *classes(datasets.rings(60))),
        "xor": ("classify", {"kernels": ["rbf"], "gamma": 0.5, "C": 10}, chess, np.where(chess.prod(axis=1) > 0, 0, 1)),
        "spiral": ("classify", {"kernels": ["rbf"], "gamma": 3, "C": 100}, spiral, np.repeat([0, 1], 38)),
        "location": (
            "classify",
            {"kernels": ["linear"], "C": 1},
            *shifted(classes(datasets.location(60, distance=2.5))),
        ),
        "location and scale": (
            "classify",
            {"kernels": ["poly"], "degree": 2, "gamma": 1, "coef0": 1, "C": 1},
            *shifted(classes(datasets.location_scale(60, distance=0.0, scale=2.0)), scale=0.55),
        ),
        "interval": (
            "classify",
            {"kernels": ["poly"], "degree": 2, "gamma": 1, "coef0": 1, "C": 100},
            *classes(datasets.interval()),
        ),
        "three classes": ("classify", {"kernels": ["rbf"], "gamma": 0.5, "C": 10}, blobs, np.repeat([0, 1, 2], 16)),
        "four classes": ("classify", {"kernels": ["rbf"], "gamma": 0.5, "C": 10}, corners, np.repeat([0, 1, 2, 3], 12)),
        "sine": ("regress", {"kernels": ["rbf"], "gamma": 1, "C": 10, "epsilon": 0.3}, sine, none),
        "cloud": ("novelty", {"kernels": ["rbf"], "gamma": 0.5, "nu": 0.15}, cloud, none),
    }  # fmt: skip


def shifted(of: tuple[np.ndarray, np.ndarray], scale: float = 0.8) -> tuple[np.ndarray, np.ndarray]:
    """The points around the middle of the page, and in it."""
    X, c = of
    return scale * (X - X.mean(axis=0)), c


def main() -> None:
    lines = [
        "// Data sets of the notes and a few more, written by page/make_sets.py: x, y and class of each point.",
        "",
        "export const SETS = {",
    ]
    for name, (task, settings, X, c) in sets().items():
        X = np.clip(np.round(X, 2), (-3.99, -2.99), (3.99, 2.99)) + 0.0
        c = c if len(c) else np.zeros(len(X), dtype=int)
        points = ";".join(f"{a:g},{b:g},{k}" for (a, b), k in zip(X, c, strict=True))
        values = ", ".join(f"{key}: {json.dumps(value)}" for key, value in settings.items())
        lines += [f'  "{name}": {{', f'    task: "{task}", {values},', f'    points: "{points}",', "  },"]
    TARGET.write_text("\n".join([*lines, "};", ""]))


if __name__ == "__main__":
    main()
