"""The folded answers of the lecture pages are true: each is computed again from the state of the page above it."""

import re
from pathlib import Path
from urllib.parse import parse_qsl

import numpy as np
import pytest
from scipy.stats import norm

from mercer import SVC, SVR, datasets, kernels, steps, svm_path, theory
from mercer.runtime.errors import NotSeparableError

ROOT = Path(__file__).parents[2]
SETS = (ROOT / "src/mercer/notes/toy/web/sets.js").read_text(encoding="utf-8")
PAGES = ("igel", "li", "mozharovskyi", "rosasco", "shalev_shwartz")
ANSWER = re.compile(
    r"^<!-- live: #(\S*), .*? -->\n\n<details class=\"answer\"><summary>(.*?)</summary>\n\n(.*?)\n\n</details>$",
    re.MULTILINE | re.DOTALL,
)
LIVE = re.compile(r"^<!-- live: ", re.MULTILINE)
CHECKS = {}
pytestmark = pytest.mark.filterwarnings("ignore:SVC stopped before tol")  # tol=1e-9 is below the rounding floor


def page(name):
    return (ROOT / f"docs/notes_{name}.md").read_text(encoding="utf-8")


def answers(name):
    """Return state and text of each answer, by its question."""
    return {
        question: (dict(parse_qsl(state)), " ".join(text.split()))
        for state, question, text in ANSWER.findall(page(name))
    }


def answer(name, beginning):
    """Register the check of the answer whose question begins so."""

    def register(check):
        CHECKS[name, beginning] = check
        return check

    return register


def points(state):
    """Return the points of a state with two classes, and their labels: the first class is +1."""
    text = state.get("points") or re.search(rf'"{state["set"]}": {{.*?points: "(.*?)"', SETS, re.DOTALL)[1]
    rows = np.array([[float(value) for value in point.split(",")] for point in text.split(";")])
    return rows[:, :2], np.where(rows[:, 2] == 0, 1, -1)


def fit(X, y, kernel="linear", C=1.0):
    return SVC(kernel=kernel, C=C, tol=1e-9).fit(X, y)


def hard(state, **moved):
    """Return the hard margin machine, with the point (1, −1) moved to another place."""
    X, y = points(state)
    if moved:
        X[np.all(X == (1, -1), axis=1)] = moved["to"]
    return fit(X, y, C=np.inf)


def wrong(model, X, y):
    return int(np.sum(model.predict(X) != y))


def radial(gamma):
    return kernels.Gaussian(gamma=gamma)


def window():
    """Return a grid over the part of the plane that the page shows."""
    return np.stack(np.meshgrid(np.linspace(-4, 4, 321), np.linspace(-3, 3, 241)), axis=-1).reshape(-1, 2)


def location_risk(model):
    """Return the exact risk of a line on the page's set "location": 0.8 times samples around their mean."""
    example = datasets.location(60, distance=2.5)
    means = [0.8 * (np.array(mean) - example.X.mean(axis=0)) for mean in ((0.0, 0.0), (2.5, 0.0))]
    w, b = model.coef_[0], model.intercept_[0]
    below, above = ((w @ mean + b) / (0.8 * np.linalg.norm(w)) for mean in means)
    return 0.5 * norm.cdf(below) + 0.5 * norm.cdf(-above)


@answer("igel", "Does the border come nearer")
def _(state):
    X, y = points(state)
    bayes = datasets.location(60, distance=2.5).bayes_risk
    return [f"{location_risk(fit(X, y, C=C)):.4f}" for C in (1, 1000, 0.03)] + [f"{bayes:.4f}"]


@answer("igel", "What does γ = 50 fit")
def _(state):
    X, y = points(state)
    near = min(np.linalg.norm(a - b) for a in X[y > 0] for b in X[y < 0])
    mean = datasets.location_scale(60, distance=0.0, scale=2.0).X.mean(axis=0)
    new = datasets.location_scale(2000, distance=0.0, scale=2.0, random_state=9)
    fits = [fit(X, y, radial(gamma), 10.0) for gamma in (50, 0.5, 0.1)]
    errors = [np.mean(model.predict(0.55 * (new.X - mean)) != new.y) for model in fits]
    return [
        f"{len(y) - wrong(fits[0], X, y)} of the {len(y)}",
        f"{near:.2f} away",
        f"{errors[0]:.0%}".replace("%", " %"),
    ] + [f"{error:.0%}".replace("%", " %") for error in (*errors[1:], new.bayes_risk)]


@answer("igel", "From which γ on")
def _(state):
    X, y = points(state)
    errors = {gamma: wrong(fit(X, y, radial(gamma), 10.0), X, y) for gamma in (0.1, 0.2, 0.3, 0.5, 2.0, 10.0)}
    assert errors[0.2] > 0
    assert not any(errors[gamma] for gamma in (0.3, 0.5, 2.0, 10.0))
    last = fit(X, y, radial(10.0), 10.0)
    np.testing.assert_allclose(last.decision_function(X), y, atol=1e-5)
    bound = 2 * last.rkhs_norm_ / len(y) * np.sqrt(len(y))
    return [
        f"errs on {errors[0.1]} of the {len(y)}",
        f"= {last.rkhs_norm_:.0f} =",
        rf"$\frac{{2B}}{{n}}\sqrt{{\mathrm{{tr}}\,K}}$ is {bound:.0f}",
    ]


@answer("igel", "Which of the two labels")
def _(state):
    X, y = points(state)
    f = fit(X, y, radial(0.5), 10.0).decision_function([[0.0, 1.5]])[0]
    return [f"$f = {f:.2f}$: class {1 if f > 0 else 2}"]


@answer("igel", "Does the violation fall")
def _(state):
    run = steps(*points(state), kernel="linear", C=1.0, tol=1e-3)
    assert np.all(np.diff([step.dual for step in run]) >= 0)
    assert np.sum(np.diff([step.violation for step in run]) > 0) > 2
    return [f"the {len(run)} steps"]


@answer("igel", "By how much does the margin")
def _(state):
    margins = [1 / hard(state, to=place).rkhs_norm_ for place in ((1, -1), (0, -1), (-0.5, -1))]
    a, b, c = map(np.array, ((-1.5, -1.0), (-1.0, 0.5), (1.0, -1.0)))
    across = abs(np.linalg.det([b - a, c - a])) / np.linalg.norm(b - a)
    assert margins[0] == pytest.approx(across / 2)
    return [f"{margin:.3f}" for margin in margins]


@answer("igel", "Why does degree 1 fail")
def _(state):
    X, y = points(state)
    line, square = (fit(X, y, kernels.Polynomial(degree, 1.0, 1.0), 100.0) for degree in (1, 2))
    assert wrong(line, X, y) == 3
    np.testing.assert_allclose(line.decision_function(X), -1, atol=1e-6)
    np.testing.assert_allclose(square.decision_function(X), 5 / 3 - 2 / 3 * X[:, 0] ** 2, atol=1e-6)
    return ["$f = -1$ everywhere and three errors", r"\frac53 - \frac23 x^2"]


def meeting_hulls(state):
    """Check the two combinations with which a hard margin is refused."""
    X, y = points(state)
    X[np.all(X == (1, -1), axis=1)] = (-1.8, 0.2)
    with pytest.raises(NotSeparableError) as refused:
        fit(X, y, C=np.inf)
    (rows, weights), (others, their_weights) = refused.value.combinations
    np.testing.assert_allclose(weights @ X[rows], their_weights @ X[others], atol=1e-8)
    assert {*y[rows]}.isdisjoint(y[others])
    return []


@answer("igel", "Why is there no hard margin")
def _(state):
    return meeting_hulls(state)


@answer("igel", "How does α move")
def _(state):
    X, y = points(state)
    breakpoints = (path := svm_path(X, y, kernel="linear")).C_
    growth = path.alpha(10.0) - path.alpha(5.0)
    assert np.sum((growth > 1e-9) & (growth < 5 - 1e-9)) == 3  # the free ones
    assert growth.min() > -1e-9
    for C in (10.0, 1000.0):
        assert fit(X, y, C=C).rkhs_norm_ == pytest.approx(fit(X, y, C=3.7).rkhs_norm_, rel=1e-6)
    return [f"{np.sum((breakpoints > 0.01) & (breakpoints < 1))} breakpoints", f"{breakpoints.max():.2f}"]


@answer("igel", "How far does ‖w‖ fall")
def _(state):
    X, y = points(state)
    now, less = (fit(X, y, kernels.Polynomial(2, 1.0, 1.0), C) for C in (1.0, 0.1))
    return [
        f"From {now.rkhs_norm_:.2f} to {less.rkhs_norm_:.2f}",
        f"from {wrong(now, X, y)} to {wrong(less, X, y)} of {len(y)}",
    ]


@answer("igel", "Which rule needs")
def _(state):
    rules = ("most violating", "second order", "maximum gain")
    counts = [len(steps(*points(state), kernel="linear", C=1.0, rule=rule, tol=1e-3)) for rule in rules]
    return [f"pair needs about {round(counts[0], -1)} steps", f"rule {counts[1]} and", f"gain {counts[2]}"]


@answer("igel", "How many are left")
def _(state):
    X, y = points(state)
    fits = [fit(X, y, C=C) for C in (0.1, 1, 100)]
    counts = [len(model.support_) for model in fits]
    return [
        f"{counts[0]} of {len(y)} at $C = 0.1$, {counts[1]} at $C = 1$ and {counts[2]} at",
        f"errs on {wrong(fits[2], X, y)} samples",
    ]


@answer("li", "What happens to γ")
@answer("mozharovskyi", "What happens to M")
def _(state):
    meeting_hulls(state)
    return [f"{1 / hard(state, to=place).rkhs_norm_:.3f}" for place in ((-0.5, -1), (1, -1))]


@answer("li", "Which drags change")
def _(state):
    X, y = points(state)
    written = np.array([[3.0, 0.0], [6.0, 0.5], [1.0, 1.0], [1.0, -1.0]]) - [3, 0]
    np.testing.assert_array_equal(X, written)
    model = fit(X, y, C=np.inf)
    assert model.rkhs_norm_ == pytest.approx(1)
    assert 1 not in model.support_
    X[0] = (1, 0)
    assert fit(X, y, C=np.inf).rkhs_norm_ == pytest.approx(2 / 3)
    return [r"margin 1.5 and $\|w\| = \frac23$"]


@answer("li", "Why does nothing change without")
def _(state):
    X, y = points(state)
    whole = hard(state)
    margins = [1 / fit(np.delete(X, i, 0), np.delete(y, i), C=np.inf).rkhs_norm_ for i in range(len(y))]
    others = np.setdiff1d(np.arange(len(y)), whole.support_)
    assert len(others) == 4
    np.testing.assert_allclose(np.array(margins)[others], 1 / whole.rkhs_norm_, rtol=1e-9)
    return [f"{1 / whole.rkhs_norm_:.3f}", *(f"{margins[i]:.2f}" for i in whole.support_)]


@answer("li", "Why does degree 3")
def _(state):
    X, y = points(state)
    errors = [wrong(fit(X, y, kernels.Polynomial(d, 1.0, c), 10.0), X, y) for d, c in ((3, 0.0), (2, 0.0), (3, 1.0))]
    assert errors[1:] == [0, 0]
    return [f"{errors[0]} of {len(y)} samples are wrong"]


@answer("li", "Where are the α")
def _(state):
    X, y = points(state)
    model = fit(X, y, C=0.01)
    np.testing.assert_allclose(np.abs(model.dual_coef_), 0.01)
    assert np.sum(y[model.support_] > 0) == np.sum(y > 0) == 28
    return [f"{len(model.support_)} of {len(y)}", f"{np.sum(y > 0)} of each class"]


@answer("li", "How many of the steps")
def _(state):
    run = steps(*points(state), kernel="linear", C=1.0, tol=1e-3, method="li")
    free = np.sum((run.alpha > 0) & (run.alpha < 1))
    return [f"{sum(step.clipped for step in run)} of {len(run)}", f"only {free} of the {len(run.alpha)}"]


@answer("mozharovskyi", "What does degree 1 make")
def _(state):
    X, y = points(state)
    line, conic = (wrong(fit(X, y, kernels.Polynomial(degree, 1.0, 1.0)), X, y) for degree in (1, 2))
    return [f"{line} of {len(y)} samples are wrong, against {conic} with"]


@answer("mozharovskyi", "Are there four points")
def _(state):
    X = points(state)[0]
    signs = np.array(np.meshgrid(*[[-1, 1]] * 3)).reshape(3, -1).T
    for labels in signs[np.abs(signs.sum(axis=1)) < 3]:  # all but those with one class
        assert wrong(fit(X, labels, C=np.inf), X, labels) == 0
    return [f"`theory.dichotomies(3, 4)` = {theory.dichotomies(3, 4)}"]


@answer("mozharovskyi", "Which kernels divide")
def _(state):
    X, y = points(state)

    def errors(kernel):
        return wrong(fit(X, y, kernel, 10.0), X, y)

    assert errors("linear") == errors(kernels.Polynomial(1, 1.0, 1.0)) > 0
    good = [kernels.Polynomial(2, 1.0, 1.0), radial(0.5), radial(50.0)]
    assert [errors(kernel) for kernel in (*good, kernels.Polynomial(3, 1.0, 1.0), kernels.Laplacian(gamma=0.5))] == [
        0
    ] * 5
    counts = [len(fit(X, y, kernel, 10.0).support_) for kernel in good]
    return [
        f"errs on {errors('linear')} of {len(y)}",
        f"{errors(radial(0.01))} errors at $\\gamma = 0.01$",
        f"needs {counts[0]} support vectors",
        f"needs {counts[1]},",
        f"becomes one, {counts[2]}.",
    ]


@answer("mozharovskyi", "Does a large C")
def _(state):
    X, y = points(state)
    fewest = theory.fewest_errors(X, y)
    assert fewest.proven
    last = svm_path(X, y, kernel="linear").C_.max()
    return [f"{last:.2f}", f"errs on {wrong(fit(X, y, C=100.0), X, y)} samples", f"a line with {fewest.least} errors"]


@answer("mozharovskyi", "How much of the plane")
def _(state):
    X, y = points(state)
    grid = window()
    side = {gamma: fit(X, y, radial(gamma)).decision_function(grid) > 0 for gamma in (0.01, 0.5, 1.0, 2.0, 100.0)}
    moved = {gamma: np.mean(side[gamma] != side[1.0]) for gamma in side}
    assert not side[0.01].any()
    assert moved[0.01] == pytest.approx(0.9, abs=0.02)
    assert moved[100.0] == pytest.approx(0.9, abs=0.02)
    return [f"{100 * moved[0.5]:.1f} % of the window", f"{100 * moved[2.0]:.1f} %.", "about 90 %"]


def sine_fit(state, C, epsilon):
    rows, _ = points(state)
    return SVR(kernel=radial(1.0), C=C, epsilon=epsilon, tol=1e-9).fit(rows[:, :1], rows[:, 1])


@answer("rosasco", "How flat does f")
def _(state):
    grid = np.linspace(-4, 4, 401)[:, None]
    ranges = [sine_fit(state, C, 0.3).predict(grid) for C in (10.0, 0.01)]
    texts = [f"{f.min():.2f} to {f.max():.2f}".replace("-", "−") for f in ranges]
    return [f"{texts[0]} at $C = 10$", f"{texts[1]} at $C = 0.01$", f"{1 / 20:g} to {1 / 0.02:g}"]


@answer("rosasco", "How many support vectors")
def _(state):
    counts = [len(sine_fit(state, 10.0, epsilon).support_) for epsilon in (0.3, 0.0)]
    return [f"{counts[0]} of 50", f"all {counts[1]}"]


@answer("rosasco", "How do the two paths")
def _(state):
    breakpoints = svm_path(*points(state), kernel="linear").C_
    return [f"{len(breakpoints)} breakpoints", f"{breakpoints.max():.2f}"]


@answer("rosasco", "What becomes of the shortest")
def _(state):
    meeting_hulls(state)
    return [f"{2 / hard(state, to=place).rkhs_norm_:.2f}" for place in ((1, -1), (-0.5, -1))]


@answer("shalev_shwartz", "Why does nothing change when")
def _(state):
    X, y = points(state)
    model = hard(state)
    on = np.isclose(model.margins(X, y).geometric_margins, 1 / model.rkhs_norm_, rtol=1e-6)
    assert on.sum() == 3
    return [f"{1 / model.rkhs_norm_:.3f}", *(f"$({x:g}, {z:g})$" for x, z in X[on])]


@answer("shalev_shwartz", "Which of the constraints")
def _(state):
    return meeting_hulls(state)


@answer("shalev_shwartz", "Which λ are")
def _(state):
    X, y = points(state)
    breakpoints = svm_path(X, y, kernel="linear").C_
    first, last = breakpoints.min(), breakpoints.max()
    np.testing.assert_allclose(np.abs(fit(X, y, C=0.99 * first).dual_coef_), 0.99 * first)
    return [f"{first:.4f}", f"{1 / (2 * first * len(y)):.2f}", f"{last:.2f}", f"{1 / (2 * last * len(y)):.4f}"]


@answer("shalev_shwartz", "How far does the line")
def _(state):
    X, y = points(state)

    def place(model):
        w, b = model.coef_[0], model.intercept_[0]
        return f"({-b / w[0]:.2f}, 0)", f"{np.degrees(np.arctan2(w[1], w[0])):.1f}°"

    whole = fit(X, y)
    kept = fit(X[whole.support_], y[whole.support_])
    np.testing.assert_allclose(kept.coef_, whole.coef_, rtol=1e-6)
    found = [place(whole), place(fit(X[:30], y[:30])), place(fit(X[30:], y[30:]))]
    return [text for pair in found for text in pair] + [f"the {len(y) - len(whole.support_)} samples"]


@answer("shalev_shwartz", "What does the primal value")
def _(state):
    X, y = points(state)
    values = [fit(X, y, C=C).certificate_.primal for C in (0.1, 1.0)]
    scaled = [value / (C * len(y)) for value, C in zip(values, (0.1, 1.0), strict=True)]
    return [f"from {values[0]:.2f} to {values[1]:.2f}", f"from {scaled[0]:.3f} to {scaled[1]:.3f}"]


@answer("shalev_shwartz", "Why does the linear kernel")
def _(state):
    X, y = points(state)
    model = fit(X, y, kernels.Polynomial(2, 1.0, 1.0), 10.0)
    assert wrong(model, X, y) == 0
    return [f"{wrong(fit(X, y, C=10.0), X, y)} of {len(y)} samples", f"{len(model.support_)} support vectors"]


@answer("shalev_shwartz", "Why are the two values")
def _(state):
    proof = hard(state).certificate_
    assert proof.primal == pytest.approx(proof.dual)
    return [f"{proof.primal:.4f}", f"{1 / hard(state).rkhs_norm_:.3f}"]


@pytest.mark.parametrize("name", PAGES)
def test_every_question_has_an_answer_that_is_checked(name):
    found = answers(name)
    assert len(found) == len(LIVE.findall(page(name)))
    checked = [beginning for other, beginning in CHECKS if other == name]
    assert len(checked) == len(found)
    assert all(sum(question.startswith(beginning) for question in found) == 1 for beginning in checked)


@pytest.mark.parametrize(("name", "beginning"), CHECKS, ids=lambda text: text.replace(" ", "-"))
def test_an_answer_is_true(name, beginning):
    ((state, text),) = [entry for question, entry in answers(name).items() if question.startswith(beginning)]
    missing = [words for words in CHECKS[name, beginning](state) if words not in text]
    assert not missing
