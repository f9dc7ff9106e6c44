"""Draw the three pictures of the site's first page, and of README.md side by side: python docs/pictures/overview.py."""

import re
from pathlib import Path

import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

from mercer import SVC, datasets, kernels, steps

HERE = Path(__file__).parent
BLUE, ORANGE, GREY = "C0", "C1", "#777777"


def speed_rows():
    """Return the fits of the first table of docs/speed.md: names, and two libraries' times as multiples of mercer's."""
    text = (HERE.parent / "speed.md").read_text(encoding="utf-8").partition("| geometric mean")[0]
    line = r"^\| (\w+) \| [^|]* \| (\d+) \| [\d,]+ \| [\d.]+ m?s \| ([\d.]+)× \| ([\d.]+)× \|"
    found = re.findall(line, text, re.MULTILINE)
    return [(f"{name}, C = {C}", float(sklearn), float(intelex)) for name, C, sklearn, intelex in found]


def draw_times(axes):
    """Draw the speed-ups over scikit-learn in the first table of docs/speed.md."""
    rows = speed_rows()
    names, ratios = [name for name, *_ in rows], [ratio for _, ratio, _ in rows]
    bars = axes.barh(names, ratios, color=BLUE)
    axes.bar_label(bars, [f"{ratio:.0f}×" for ratio in ratios], padding=3, fontsize=9)
    axes.axvline(1, color=ORANGE)
    axes.set(title="Fast: scikit-learn's time / mercer's", xlim=(0, 1.15 * max(ratios)), xticks=[])
    axes.invert_yaxis()


def draw_proof(axes):
    """Draw the gap between primal and dual value after each step of a training."""
    X, y = datasets.location(60, distance=2.0)
    run = steps(X, y, kernel=kernels.Gaussian(gamma=0.5), C=1.0, rule="second order", tol=1e-6)
    primal = []
    for step in run.steps:
        beta = step.alpha * y
        f = run.problem.K @ beta
        free = (step.alpha > 0) & (step.alpha < 1)
        b = np.median((y - f)[free]) if free.any() else 0.0
        primal.append(0.5 * beta @ f + np.maximum(0, 1 - y * (f + b)).sum())
    gap = np.minimum.accumulate(primal) / np.array([step.dual for step in run.steps]).clip(1e-9) - 1
    shown = np.flatnonzero((gap < 1) & (gap > 1e-7))
    axes.semilogy(shown, gap[shown], color=BLUE, linewidth=2)
    axes.fill_between(shown, 1e-7, gap[shown], color=BLUE, alpha=0.12, linewidth=0)
    axes.text(shown[-1] * 0.38, 10**-5.8, "at most this far\nfrom the optimum", ha="center", color=GREY)
    axes.set(
        title="Proven: a gap with every fit", ylabel="gap / dual value", xlabel="step of the solver", ylim=(1e-7, 1)
    )
    axes.minorticks_off()


def draw_reasons(axes):
    """Draw the largest Shapley values of one prediction."""
    data = load_breast_cancer()
    X, y = scale(data.data), data.target_names[data.target]
    model = SVC(C=10).fit(X, y)
    sample = int(np.argmin(np.abs(model.decision_function(X))))
    values = model.explain(X[sample : sample + 1], background=X[:100]).values[0]
    largest = np.argsort(-np.abs(values))[:8]
    axes.barh(data.feature_names[largest], values[largest], color=[BLUE if v > 0 else ORANGE for v in values[largest]])
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set(title="Explained: exact Shapley values", xlabel="← malignant      benign →", xticks=[])
    axes.invert_yaxis()


def tidy(axes):
    """Leave out the vertical axis, whose labels stand beside the bars."""
    axes.spines["left"].set_visible(False)
    axes.tick_params(left=False)


def draw_alone(draw):
    """Return a figure with one of the three pictures, without its title."""
    figure, axes = plt.subplots(figsize=(3.9, 3.1), layout="constrained")
    draw(axes)
    axes.set_title("")
    tidy(axes)
    return figure


def fast():
    """Return the first picture."""
    figure = draw_alone(draw_times)
    figure.axes[0].set_xlabel("scikit-learn's time / mercer's")
    return figure


def proven():
    """Return the second picture."""
    return draw_alone(draw_proof)


def explained():
    """Return the third picture."""
    return draw_alone(draw_reasons)


if __name__ == "__main__":
    plt.style.use(HERE.parent / "figures.mplstyle")
    plt.rcParams |= {"axes.titleweight": "bold", "figure.facecolor": "white", "savefig.facecolor": "white"}
    figure, panels = plt.subplots(1, 3, figsize=(12.4, 3.4), layout="constrained")
    for draw, axes in zip((draw_times, draw_proof, draw_reasons), panels, strict=True):
        draw(axes)
        tidy(axes)
    figure.savefig(HERE / "overview.png", dpi=110)
