"""Pictures that a page asks for by name: <!-- figure: name, what it shows -->. The build draws them into docs/_build.

Each function draws one; what it draws is computed here, from the library, so that no picture outlives what it shows.
figures.mplstyle has the look of them all.
"""

import re
import sys
import tempfile
from pathlib import Path

import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import scale

import mercer
from mercer import SVC, NystromRLS, PegasosSVC, RLSRegressor, datasets, kernels, steps, theory, unsupervised
from mercer.inspection.displays import DecisionDisplay

sys.path.insert(0, str(Path(__file__).parent / "pictures"))
import diagrams
import overview
from diagrams import cluster, course_of_a_fit, formats, tables, which_estimator  # noqa: F401  pages name them
from overview import explained, fast, proven, speed_rows  # noqa: F401  pictures of the first page

HERE = Path(__file__).parent
MADE = HERE / "_build/figures"
STYLE = HERE / "figures.mplstyle"
BLUE, ORANGE, GREEN, PURPLE, GREY = "C0", "C1", "C2", "C3", "#777777"


def new(columns=1, width=6.4, height=3.6, **more):
    return plt.subplots(1, columns, figsize=(width, height), layout="constrained", **more)


def label_ticks(axis, values):
    """Label a logarithmic axis at these values alone."""
    axis.set_ticks(values, [f"{value:g}" for value in values])
    axis.set_ticks([], minor=True)


def complexity():
    figure, axes = new()
    ns, drawn, bounds = [20, 40, 80, 160, 320], [], []
    for n in ns:
        K = kernels.Gaussian(gamma=0.5)(np.random.default_rng(0).normal(size=(n, 2)))
        found = theory.ball_complexity(K, norm=1.0)
        drawn.append(found.value)
        bounds.append(found.bound.value)
    axes.loglog(ns, bounds, "--", color=GREY, label=r"bound $2B/n\,\sqrt{\mathrm{tr}\,K}$")
    axes.loglog(ns, drawn, "o-", color=BLUE, label="complexity, by drawing signs")
    axes.set(xlabel="samples n", ylabel="Rademacher complexity")
    label_ticks(axes.xaxis, ns)
    label_ticks(axes.yaxis, [0.1, 0.2, 0.4])
    axes.legend()
    return figure


def no_free_lunch():
    """Of all labellings of six points, four of them seen: how often a learner errs on the other two."""
    figure, axes = new(2, height=2.8, sharey=True)
    labellings = np.array(np.meshgrid(*[[0, 1]] * 6)).reshape(6, -1).T
    nearest = labellings[:, [3, 3]]  # both unseen points have the fourth as their neighbour
    contrary = 1 - nearest
    for ax, guess, name in zip(axes, (nearest, contrary), ("the nearest point's label", "the contrary"), strict=True):
        errors = (guess != labellings[:, 4:]).mean(axis=1)
        shares, counts = np.unique(errors, return_counts=True)
        ax.bar(shares, counts, width=0.3, color=BLUE)
        ax.axvline(errors.mean(), color=ORANGE, label=f"mean {errors.mean():g}")
        ax.set(title=f"answers {name}", xlabel="error on unseen points", xticks=shares, ylim=(0, 42))
        ax.legend(loc="upper right")
    axes[0].set_ylabel("labellings, of 64")
    return figure


def dichotomies():
    figure, axes = new()
    for d, colour in ((5, BLUE), (20, ORANGE), (80, GREEN)):
        ns = np.arange(1, 4 * d + 1)
        axes.plot(ns / d, [theory.dichotomies(d, int(n)) / 2 ** int(n) for n in ns], color=colour, label=f"d = {d}")
    axes.axvline(2, color=GREY, linestyle=":")
    axes.set(xlabel="n/d, points for each dimension", ylabel=r"$\Phi(d, n)\,/\,2^n$")
    axes.legend()
    return figure


def pegasos():
    figure, axes = new()
    X, y = datasets.location(200, distance=2.5, random_state=3)
    alpha, epochs = 0.05, [1, 2, 4, 8, 16, 32, 64]
    best = SVC(C=1 / (alpha * 200), kernel="linear", bias=False, tol=1e-9).fit(X, y).certificate_.dual * alpha

    def above(average, epochs, seed):
        model = PegasosSVC(alpha=alpha, average=average, bias=False, max_iter=epochs, tol=1e-12, random_state=seed)
        return model.fit(X, y).objective_ - best

    for average, colour in (("all", BLUE), ("suffix", GREEN), ("last", ORANGE)):
        means = [np.mean([above(average, epoch, seed) for seed in range(5)]) for epoch in epochs]
        axes.loglog(epochs, means, "o-", color=colour, label=f'average="{average}"')
    axes.set(xlabel="passes over the samples", ylabel="objective above the optimum")
    label_ticks(axes.xaxis, epochs)
    axes.legend()
    return figure


def duality():
    figure, axes = new()
    X, y = datasets.location(60, distance=2.0)
    found = steps(X, y, kernel=kernels.Gaussian(gamma=0.5), C=1.0, rule="second order", tol=1e-6)
    K, C = found.problem.K, 1.0
    primal = []
    for step in found.steps:
        f = K @ (step.alpha * y)
        b = (
            np.median((y - f)[(step.alpha > 0) & (step.alpha < C)])
            if ((step.alpha > 0) & (step.alpha < C)).any()
            else 0
        )
        primal.append(0.5 * (step.alpha * y) @ f + C * np.maximum(0, 1 - y * (f + b)).sum())
    axes.plot(np.minimum.accumulate(primal), color=ORANGE, label="primal value, the least so far")
    axes.plot([step.dual for step in found.steps], color=BLUE, label="dual value")
    axes.set(xlabel="step", ylabel="objective", ylim=(0, 1.5 * found.dual))
    axes.legend()
    return figure


def _regions(ax, model, X, y, title):
    """Regions of the largest f, and the border of two classes where the difference of their f is 0."""
    left, right = X.min(axis=0) - 0.8, X.max(axis=0) + 0.8
    across, down = np.meshgrid(np.linspace(left[0], right[0], 220), np.linspace(left[1], right[1], 220))
    places = np.column_stack([across.ravel(), down.ravel()])
    f = model.decision_function(places).reshape(220, 220, -1)
    best = f.argmax(axis=2)
    colours = (BLUE, ORANGE, GREEN)
    ax.contourf(across, down, best, levels=[-0.5, 0.5, 1.5, 2.5], colors=colours, alpha=0.2)
    for a in range(3):
        for b in range(a + 1, 3):
            difference = f[:, :, a] - f[:, :, b]
            third = f[:, :, 3 - a - b] > np.maximum(f[:, :, a], f[:, :, b])
            ax.contour(across, down, np.where(third, np.nan, difference), levels=[0.0], colors="black", linewidths=1.4)
    for c, (colour, mark) in enumerate(zip(colours, "os^", strict=True)):
        ax.plot(*X[y == c].T, mark, color=colour, markersize=4, markeredgecolor="white", markeredgewidth=0.5)
    ax.set(title=title, xticks=[], yticks=[])


def several_classes():
    figure, axes = new(3, width=9, height=3.2)
    rng = np.random.default_rng(4)
    middles = np.array([[-1.6, -0.8], [1.6, -0.6], [0.1, 1.6]])
    y = np.repeat([0, 1, 2], 30)
    X = middles[y] + rng.normal(scale=0.85, size=(90, 2))
    for ax, way in zip(axes, ("ovr", "crammer-singer", "weston-watkins"), strict=True):
        model = SVC(C=3, kernel=kernels.Gaussian(gamma=0.3), multiclass=way).fit(X, y)
        _regions(ax, model, X, y, f'multiclass="{way}"')
    return figure


def landmarks():
    figure, axes = new()
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(1200, 2))
    truth = np.sin(2 * X[:, 0]) + np.cos(X[:, 1])
    y = truth + 0.2 * rng.normal(size=1200)
    kernel = kernels.Gaussian(gamma=1.0)
    full = RLSRegressor(kernel=kernel, lam=0.1).fit(X, y).predict(X)

    def distance(m, way, seed):
        model = NystromRLS(kernel=kernel, lam=0.1, n_landmarks=m, landmarks=way, random_state=seed)
        return np.sqrt(np.mean((model.fit(X, y).predict(X) - full) ** 2))

    ms = [10, 20, 40, 80, 160, 320]
    for way, colour in (("uniform", BLUE), ("leverage", ORANGE)):
        away = [np.mean([distance(m, way, seed) for seed in range(3)]) for m in ms]
        axes.loglog(ms, away, "o-", color=colour, label=f'landmarks="{way}"')
    axes.set(xlabel="landmarks M, of 1,200 samples", ylabel="distance from all samples' fit")
    label_ticks(axes.xaxis, ms)
    axes.legend()
    return figure


def flat_and_curved():
    """Three answers to many rows: a flat border, landmarks, steps along a stream."""
    figure, axes = new(3, width=9, height=3.2)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 2))
    y = np.where(X[:, 0] ** 2 + X[:, 1] > 0.5, 1, 0)
    across, down = np.meshgrid(np.linspace(-3, 3, 150), np.linspace(-3, 3, 150))
    places = np.column_stack([across.ravel(), down.ravel()])
    models = {
        "LinearSVC": mercer.LinearSVC(),
        "NystromRLSClassifier": mercer.NystromRLSClassifier(lam=1e-2, n_landmarks=100, random_state=0),
        "PegasosSVC": PegasosSVC(alpha=1e-3, max_iter=5, random_state=0),
    }
    for ax, (name, model) in zip(axes, models.items(), strict=True):
        shown = model.fit(X, y).predict(places).reshape(across.shape)
        ax.contourf(across, down, shown, levels=[-0.5, 0.5, 1.5], colors=(BLUE, ORANGE), alpha=0.25)
        for label, colour in ((0, BLUE), (1, ORANGE)):
            ax.plot(*X[:400][y[:400] == label].T, ".", color=colour, markersize=3)
        ax.set(title=f"{name}: {model.score(X, y):.0%}", xticks=[], yticks=[], xlim=(-3, 3), ylim=(-3, 3))
    return figure


def strings():
    figure, axes = new(2, width=7.4, height=3.4)
    rng = np.random.default_rng(0)
    motifs = ["TATAAA", "GGGCGG"]
    texts = []
    for i in range(40):
        letters = "".join(rng.choice(list("ACGT"), size=40))
        at = rng.integers(0, 34)
        texts.append(letters[:at] + motifs[i // 20] * 2 + letters[at + 12 :])
    for ax, length in zip(axes, (2, 5), strict=True):
        ax.imshow(kernels.Spectrum(length, normalise=True)(texts), cmap="viridis")
        ax.set(title=f"Spectrum({length})", xticks=[10, 30], yticks=[10, 30])
        ax.set_xticklabels(motifs)
        ax.set_yticklabels(motifs, rotation=90, va="center")
    return figure


def mixed_table():
    """k(x, ·) of a customer of 43 years with the plan "plus", for a product, a sum and Gower's distance."""
    figure, axes = new(3, width=9, height=2.8, sharey=True)
    age = kernels.Gaussian(gamma=20.0).on([0])
    made = {
        "Gaussian · Categorical": age * kernels.Categorical().on([1]),
        "Gaussian + Categorical": age + kernels.Categorical().on([1]),
        "Gower": kernels.Gower(categorical=[1], gamma=4.0),
    }
    grid = np.linspace(0, 1, 200)
    for ax, (title, kernel) in zip(axes, made.items(), strict=True):
        for plan, (name, colour) in enumerate((("plus", BLUE), ("another plan", ORANGE))):
            values = kernel([[0.4, 0.0]], np.column_stack([grid, np.full(200, float(plan))]))[0]
            ax.plot(18 + 62 * grid, values, color=colour, label=name)
        ax.set(title=title, xlabel="age")
    axes[0].legend(fontsize=8)
    return figure


def your_table():
    """The model of the page: what its first program writes, and `mercer.easy`."""
    page = (HERE / "your_table.md").read_text(encoding="utf-8")
    program = re.search(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[1]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "customers.csv"
        exec(program.replace('"customers.csv"', repr(str(path))), {})
        table = pd.read_csv(path)
    return mercer.easy(table, target="left"), table


def your_table_matters():
    model, _ = your_table()
    display = model.plot("beeswarm")
    display.figure_.set_size_inches(6.4, 3.6)
    return display.figure_


def your_table_decision():
    model, table = your_table()
    figure, axes = new(height=3.8)
    X = table.drop(columns="left").assign(since=pd.to_datetime(table["since"]))
    DecisionDisplay.from_estimator(model.table, X, table["left"], features=("age", "plan"), ax=axes)
    return figure


def kernel_shapes():
    figure, axes = new(2, width=8, height=3.2)
    r = np.linspace(0, 3, 200)[:, None]
    for ax, kinds in zip(
        axes,
        (
            {"Gaussian(gamma=1.0)": kernels.Gaussian(gamma=1.0), "Laplacian(gamma=1.0)": kernels.Laplacian(gamma=1.0),
             "Matern(nu=1.5)": kernels.Matern(nu=1.5), "RationalQuadratic()": kernels.RationalQuadratic()},
            {"Linear()": kernels.Linear(), "Polynomial(2, 1.0, 0.0)": kernels.Polynomial(2, 1.0, 0.0),
             "Polynomial(3, 1.0, 1.0)": kernels.Polynomial(3, 1.0, 1.0)},
        ),
        strict=True,
    ):  # fmt: skip
        radial = ax is axes[0]
        at = r if radial else np.linspace(-1.5, 1.5, 200)[:, None]
        for (name, kernel), colour in zip(kinds.items(), (BLUE, ORANGE, GREEN, PURPLE), strict=False):
            ax.plot(at[:, 0], kernel(at, [[0.0 if radial else 1.0]])[:, 0], color=colour, label=name)
        ax.set(xlabel="distance of x from z" if radial else "x, with z = 1", title="k(x, z)")
        ax.legend(fontsize=8)
    return figure


def speed():
    """Bars of the page's first table."""
    rows = speed_rows()
    figure, axes = new(width=7, height=3.8)
    at = np.arange(len(rows))
    axes.barh(at - 0.2, [row[1] for row in rows], 0.38, color=BLUE, label="scikit-learn")
    axes.barh(at + 0.2, [row[2] for row in rows], 0.38, color=ORANGE, label="scikit-learn-intelex")
    axes.axvline(1, color="black", linewidth=1)
    axes.set(yticks=at, yticklabels=[row[0] for row in rows], xlabel="time to fit, as a multiple of mercer's")
    axes.invert_yaxis()
    axes.legend()
    return figure


def same_alpha():
    """Every α of scikit-learn's machine against ours."""
    from sklearn import svm

    figure, axes = new(width=4.6, height=3.8)
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)
    alphas = []
    for model in (svm.SVC(C=1.0, gamma=0.03, tol=1e-8), SVC(C=1.0, gamma=0.03, tol=1e-8)):
        own = np.zeros(len(X))
        model.fit(X, y)
        own[model.support_] = np.abs(model.dual_coef_[0])
        alphas.append(own)
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=1)
    axes.plot(*alphas, ".", color=BLUE)
    axes.set(xlabel="α of sklearn.svm.SVC", ylabel="α of mercer.SVC", aspect="equal")
    return figure


def solvers():
    """Distance from the optimum by step, of three ways to choose a pair."""
    figure, axes = new()
    X, y = datasets.location(120, distance=2.0)
    for rule, colour in (("most violating", BLUE), ("second order", ORANGE), ("maximum gain", GREEN)):
        found = steps(X, y, kernel=kernels.Gaussian(gamma=0.5), C=10.0, rule=rule, tol=1e-8, max_iter=5000)
        best = found.steps[-1].dual
        below = np.array([best - step.dual for step in found.steps])
        axes.semilogy(below[below > 1e-8], color=colour, label=rule)
    axes.set(xlabel="step", ylabel="dual value below its optimum", ylim=(1e-8, None))
    axes.legend()
    return figure


def prices():
    """The margin and the support vectors as C grows."""
    figure, axes = new()
    X, y = datasets.location(120, distance=2.0)
    Cs = np.geomspace(1e-3, 1e2, 26)
    fits = [SVC(C=float(C), kernel="linear").fit(X, y) for C in Cs]
    axes.semilogx(Cs, [len(model.support_) / 120 for model in fits], color=BLUE, label="share of support vectors")
    axes.semilogx(
        Cs, [np.mean(model.predict(X) != y) for model in fits], color=ORANGE, label="share of training errors"
    )
    axes.semilogx(Cs, [0.2 / model.rkhs_norm_ for model in fits], color=GREEN, label="margin 1/‖w‖, times 0.2")
    axes.set(xlabel="C", ylim=(0, 1.05))
    axes.legend()
    return figure


def a_first_fit():
    """The digits that a machine gets wrong, with what it says."""
    figure, axes = new(6, width=8, height=1.9)
    X, y = load_digits(return_X_y=True)
    model = SVC(C=10).fit(X[:1000] / 16, y[:1000])
    told = model.predict(X[1000:] / 16)
    wrong = np.flatnonzero(told != y[1000:])[:6]
    for ax, i in zip(axes, wrong, strict=True):
        ax.imshow(X[1000 + i].reshape(8, 8), cmap="gray_r")
        ax.set(xticks=[], yticks=[], title=f"{told[i]}, not {y[1000 + i]}")
    return figure


def tour():
    """The tour's machine, on two of its thirty columns."""
    figure, axes = new(width=6.4, height=4)
    data = load_breast_cancer()
    X, y = scale(data.data)[:, [0, 21]], data.target_names[data.target]
    DecisionDisplay.from_estimator(SVC(C=10, gamma=0.3).fit(X, y), X, y, ax=axes)
    axes.set(xlabel=data.feature_names[0], ylabel=data.feature_names[21])
    return figure


def few_labels():
    """Draw two moons with one label each, learned by a Gaussian kernel and by one that follows the samples."""
    figure, axes = new(2, width=7.4, height=2.8, sharey=True)
    turn = np.linspace(0, 2.8, 60)
    moons = np.vstack([np.c_[np.cos(turn), np.sin(turn)], np.c_[1 - np.cos(turn), 0.4 - np.sin(turn)]])
    side, few = np.repeat([0, 1], 60), [30, 90]
    for ax, name, kernel in (
        (axes[0], "Gaussian", kernels.Gaussian(gamma=1.0)),
        (axes[1], "manifold_kernel", unsupervised.manifold_kernel(moons, tau=10.0)),
    ):
        model = SVC(kernel=kernel).fit(moons[few], side[few])
        across, down = np.meshgrid(np.linspace(-1.3, 2.3, 120), np.linspace(-0.9, 1.3, 80))
        answers = model.predict(np.column_stack([across.ravel(), down.ravel()])).reshape(across.shape)
        ax.contourf(across, down, answers, levels=[-0.5, 0.5, 1.5], colors=(BLUE, ORANGE), alpha=0.2)
        ax.plot(*moons.T, ".", color=GREY, markersize=4)
        for i, colour in zip(few, (BLUE, ORANGE), strict=True):
            ax.plot(*moons[i], "o", color=colour, markersize=9, markeredgecolor="black")
        ax.set(title=f"{name}: {model.score(moons, side):.0%}", xticks=[], yticks=[])
    return figure


def active_learning():
    """Draw level sets of a sample, and the error when the machine chooses which samples get a label."""
    figure, axes = new(2, width=8, height=3)
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(150, 2)), rng.normal([4, 1], 0.6, size=(50, 2))])
    across, down = np.meshgrid(np.linspace(-3.5, 6.5, 120), np.linspace(-3.5, 3.5, 90))
    places = np.column_stack([across.ravel(), down.ravel()])
    axes[0].plot(*X.T, ".", color=GREY, markersize=3)
    for nu, colour in ((0.05, BLUE), (0.2, GREEN), (0.5, ORANGE)):
        f = mercer.OneClassSVM(nu=nu, kernel=kernels.Gaussian(sigma=1.6)).fit(X).decision_function(places)
        axes[0].contour(across, down, f.reshape(across.shape), levels=[0.0], colors=[colour])
        axes[0].plot([], [], color=colour, label=f"ν = {nu:g}")
    axes[0].set(title="regions of OneClassSVM", xticks=[], yticks=[])
    axes[0].legend(loc="lower right", fontsize=8)

    def errors(nearest, seed):
        """Return the errors on the pool with 10, 11, ... labels."""
        pool, labels = datasets.location_scale(300, random_state=seed)
        rng = np.random.default_rng(seed)
        asked = [int(np.argmax(labels == c)) for c in np.unique(labels)] + list(range(8))
        found = []
        for _ in range(30):
            machine = SVC(C=1.0, gamma=0.5).fit(pool[asked], labels[asked])
            found.append(np.mean(machine.predict(pool) != labels))
            order = np.abs(machine.signed_distance(pool)) if nearest else rng.random(300)
            order[asked] = np.inf
            asked.append(int(np.argmin(order)))
        return found

    for nearest, colour, name in ((True, BLUE, "the nearest to the plane"), (False, ORANGE, "at random")):
        axes[1].plot(
            np.arange(10, 40), np.mean([errors(nearest, k) for k in range(20)], axis=0), color=colour, label=name
        )
    axes[1].set(xlabel="labels asked for", ylabel="error on the pool, mean of 20", title="next label")
    axes[1].legend()
    return figure


def noisy_kernel():
    """Draw the matrix of the page on kernels that you compute, and its eigenvalues with and without noise."""
    page = (HERE / "precomputed.md").read_text(encoding="utf-8")
    first = re.search(r"^```python\n(.*?)^print", page, re.MULTILINE | re.DOTALL)[1]
    names = {}
    exec(first, names)
    order = np.argsort(names["y"][names["train"]], kind="stable")
    K = names["K"][np.ix_(order, order)]
    noise = 0.01 * np.random.default_rng(1).normal(size=K.shape)
    figure, axes = new(2, width=7.4, height=3, width_ratios=[1, 1.3])
    axes[0].imshow(K, cmap="viridis")
    axes[0].set(title="K, sorted by class", xticks=[], yticks=[])
    for matrix, colour, name in ((K, BLUE, "K"), (K + (noise + noise.T) / 2, ORANGE, "K with noise")):
        axes[1].plot(np.linalg.eigvalsh(matrix)[::-1], ".", color=colour, label=name)
    axes[1].axhline(0, color=GREY, linewidth=1)
    axes[1].set(title="eigenvalues", xlabel="number")
    axes[1].set_yscale("symlog", linthresh=0.1)
    axes[1].legend()
    return figure


def draw(name):
    """The picture's file, relative to docs; drawn if this file or the style has changed since."""
    path = MADE / f"{name}.svg"
    changed = max(
        file.stat().st_mtime for file in (Path(__file__), STYLE, Path(overview.__file__), Path(diagrams.__file__))
    )
    if not path.exists() or path.stat().st_mtime < changed:
        MADE.mkdir(parents=True, exist_ok=True)
        with mpl.rc_context():
            plt.style.use(STYLE)
            figure = globals()[name]()
            figure.savefig(path, metadata={"Date": None})
            plt.close(figure)
    return path.relative_to(HERE)
