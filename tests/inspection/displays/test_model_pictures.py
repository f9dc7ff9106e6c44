"""Pictures of a model: what is drawn is what the model says, number by number."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import (
    SVC,
    SVR,
    LinearSVC,
    NuSVC,
    OneClassSVM,
    QuantileSVR,
    RLSClassifier,
    RLSRegressor,
    RLSRegressorCV,
    svm_path,
)
from mercer.inspection.displays import (
    ConvergenceDisplay,
    ConvergenceRecord,
    DecisionDisplay,
    GramDisplay,
    IntervalDisplay,
    MarginDisplay,
    PathDisplay,
    ReliabilityDisplay,
)
from mercer.kernels import Gaussian, Linear, Spectrum

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
pandas = pytest.importorskip("pandas")
X, y = make_moons(80, noise=0.25, random_state=0)
IRIS, SPECIES = load_iris(return_X_y=True)
NAMES = ["sepal length", "sepal width", "petal length", "petal width"]


@pytest.fixture(autouse=True)
def closed():
    yield
    matplotlib.pyplot.close("all")


def drawn(scatter):
    return np.asarray(scatter.get_offsets())


# --- regions -------------------------------------------------------------------------------------------------------


def test_chosen_values_of_other_columns():
    frame = pandas.DataFrame(IRIS, columns=NAMES)
    model = SVC(C=10).fit(frame, SPECIES)
    display = DecisionDisplay.from_estimator(
        model, frame, features=("petal length", "petal width"), at={"sepal length": 7}, resolution=12
    )
    found = display.to_frame()
    rows = pandas.DataFrame(
        {
            "sepal length": 7.0,
            "sepal width": IRIS[:, 1].mean(),
            "petal length": found["petal length"],
            "petal width": found["petal width"],
        }
    )
    np.testing.assert_array_equal(found["class"], model.predict(rows))
    assert display.rest == "at sepal length = 7; at sepal width = 3.06 (mean)"
    by_number = DecisionDisplay.from_estimator(model, frame, features=(2, 3), at={0: 7.0}, resolution=12)
    np.testing.assert_array_equal(by_number.response, display.response)
    for wrong in ({"petal width": 1}, {"sepal": 1}, {9: 1}):
        with pytest.raises(ValueError, match="for columns other than the two that are shown"):
            DecisionDisplay.from_estimator(model, frame, features=(2, 3), at=wrong, resolution=5)


def test_the_grid_as_a_frame():
    model = SVC().fit(X, y)
    found = DecisionDisplay.from_estimator(model, X, y, resolution=7).to_frame()
    assert list(found) == ["feature 0", "feature 1", "class", "f"]
    np.testing.assert_allclose(found["f"], model.decision_function(found[["feature 0", "feature 1"]].to_numpy()))
    assert list(DecisionDisplay.from_estimator(SVR().fit(X, y), X, resolution=3).to_frame()) == [
        "feature 0",
        "feature 1",
        "f",
    ]


# --- margins ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("machine", [SVC(C=2.0, tol=1e-6), NuSVC(0.3, tol=1e-6)], ids=repr)
def test_margins_against_alpha(machine):
    model = machine.fit(X, y)
    display = MarginDisplay.from_estimator(model, X, y)
    signs = np.where(y == 1, 1.0, -1.0)
    np.testing.assert_allclose(display.functional_margins, signs * model.decision_function(X))
    alpha = np.zeros(80)
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    np.testing.assert_allclose(display.alpha, alpha)
    found = display.to_frame()
    assert found["standing"].value_counts().to_dict() == {
        "other": 80 - len(model.support_),
        "free": int(np.sum(display.standings == "free")),
        "bounded": int(np.sum(display.standings == "bounded")),
    }
    if isinstance(model, SVC):  # the three lines of the optimum
        m = found["functional_margin"]
        assert m[found["standing"] == "other"].min() > 1 - 1e-4
        np.testing.assert_allclose(m[found["standing"] == "free"], 1, atol=1e-4)
        assert m[found["standing"] == "bounded"].max() < 1 + 1e-4
    other, free, bounded = display.ax_.collections
    np.testing.assert_allclose(drawn(free), found.loc[found["standing"] == "free", ["functional_margin", "alpha"]])
    assert len(drawn(other)) + len(drawn(bounded)) + len(drawn(free)) == 80


def test_margins_of_one_plane_of_several_and_of_a_pipeline():
    model = make_pipeline(StandardScaler(), SVC(tol=1e-6)).fit(IRIS, SPECIES)
    display = MarginDisplay.from_estimator(model, IRIS, SPECIES, plane=2)
    assert set(display.classes) == {1, 2}
    assert len(display.rows) == 100
    part = SVC(gamma=model[-1].kernel_.gamma, tol=1e-6).fit(model[0].transform(IRIS[50:]), SPECIES[50:])
    alpha = np.zeros(100)
    alpha[part.support_] = np.abs(part.dual_coef_[0])
    np.testing.assert_allclose(display.alpha, alpha, atol=1e-3)
    with pytest.raises(TypeError, match="RLSClassifier has no α"):
        MarginDisplay.from_estimator(RLSClassifier().fit(X, y), X, y)


# --- convergence -----------------------------------------------------------------------------------------------------


def test_convergence_ends_at_the_certificate():
    pytest.importorskip("sklearn.callback")
    data = make_moons(2600, noise=0.3, random_state=0)
    model, record = SVC(C=100.0), ConvergenceRecord()
    model.set_callbacks(record).fit(*data)
    display = ConvergenceDisplay.from_record(record, tol=1e-3)
    found = display.to_frame()
    assert len(found) > 3
    assert found["task"].iloc[-1] == "certificate"
    assert found["gap"].iloc[-1] == model.certificate_.gap
    assert found["violation"].iloc[-1] == model.certificate_.violation
    assert found["gap"].iloc[0] > 100 * found["gap"].iloc[-1]
    model.fit(*data)
    assert record.tasks == found["task"].tolist()  # those of the last fit alone
    assert (found["seconds"].diff().dropna() >= 0).all()
    gap, violation = display.lines_
    np.testing.assert_array_equal(gap.get_ydata(), found["gap"])
    np.testing.assert_array_equal(violation.get_xdata(), found["seconds"])


@pytest.mark.parametrize("machine", [LinearSVC(C=1.0), SVC(multiclass="crammer-singer"), RLSClassifier()], ids=repr)
def test_convergence_of_other_machines(machine):
    pytest.importorskip("sklearn.callback")
    display = ConvergenceDisplay.from_estimator(machine, IRIS, SPECIES)
    assert display.tasks[-1] == "certificate"
    assert np.isfinite(display.gap[-1])
    assert not hasattr(machine, "certificate_")
    with pytest.raises(ValueError, match="seen no fit"):
        ConvergenceDisplay.from_record(ConvergenceRecord())


def test_lines_stand_between_problems():
    tasks = ["0 against 1", "0 against 1", "0 against 2", "0 against 2", "0 against 2", "certificate"]
    display = ConvergenceDisplay(np.arange(6.0), np.ones(6), np.ones(6), tasks).plot()
    assert [line.get_xdata() for line in display.ax_.lines if len(line.get_xdata()) == 2] == [[2.0, 2.0]]
    assert display.ax_.get_title() == "2 problems"


def test_a_fit_that_begins_elsewhere_than_at_zero_says_how_far_it_is():
    """One class begins with Σα = νn: its first gap is that of this start, not of a function that is zero."""
    pytest.importorskip("sklearn.callback")
    record = ConvergenceRecord()
    model = OneClassSVM(nu=0.5).set_callbacks(record).fit(X)
    assert record.gap[0] > 100 * model.certificate_.gap > 0


# --- kernel matrices -------------------------------------------------------------------------------------------------


def test_the_kernel_matrix_ordered_by_class():
    order = np.random.default_rng(0).permutation(150)
    data, species = IRIS[order], SPECIES[order]
    model = SVC(gamma=0.3).fit(data, species)
    display = GramDisplay.from_estimator(model, data, species)
    np.testing.assert_array_equal(species[display.rows], np.sort(species))
    np.testing.assert_allclose(display.image_.get_array(), Gaussian(gamma=0.3)(data[display.rows]))
    assert display.to_frame().loc[3, 7] == pytest.approx(Gaussian(gamma=0.3)(data[[3]], data[[7]])[0, 0])
    assert [tick.get_text() for tick in display.ax_.get_xticklabels()] == ["0", "1", "2"]
    np.testing.assert_array_equal(display.ax_.get_xticks(), [24.5, 74.5, 124.5])
    given = GramDisplay.from_kernel("precomputed", Gaussian(gamma=0.3)(data), species)
    np.testing.assert_allclose(given.K, display.K)


def test_kernel_matrices_of_many_samples_numbers_and_strings():
    some = GramDisplay.from_kernel(Linear(), IRIS - IRIS.mean(axis=0), IRIS[:, 0], max_samples=40)
    assert some.K.shape == (40, 40)
    assert (np.diff(IRIS[some.rows, 0]) >= 0).all()
    assert some.ax_.get_title() == "40 of 150 samples"
    assert some.image_.norm(0.0) == 0.5  # values of both signs
    assert some.ax_.get_ylabel() == "sample, ordered by y"
    words = GramDisplay.from_kernel(Spectrum(1), ["ab", "xy", "ba"], [0, 1, 0])
    np.testing.assert_array_equal(words.rows, [0, 2, 1])
    with pytest.raises(TypeError, match="LinearSVC has no kernel"):
        GramDisplay.from_estimator(LinearSVC().fit(X, y), X, y)
    with pytest.raises(ValueError, match="one value for each of the 80 samples"):
        GramDisplay.from_kernel(Linear(), X, y[:-1])


# --- probabilities and intervals -------------------------------------------------------------------------------------


def test_reliability_counts_what_happened():
    rng = np.random.default_rng(0)
    p = rng.uniform(size=4000)
    happened = rng.uniform(size=4000) < p**2  # said p, was p²
    display = ReliabilityDisplay.from_predictions(happened, p, n_bins=8)
    found = display.to_frame()
    assert found["count"].tolist() == [500] * 8
    order = np.argsort(p)
    np.testing.assert_allclose(found["share"], happened[order].reshape(8, 500).mean(axis=1))
    np.testing.assert_allclose(found["mean_probability"], p[order].reshape(8, 500).mean(axis=1))
    # Integral of p − p² is 1/6.
    assert display.error == pytest.approx(1 / 6, abs=0.03)
    assert (found["high"] < found["mean_probability"]).iloc[1:7].all()
    line = display.ax_.lines[1]
    np.testing.assert_array_equal(line.get_ydata(), found["share"])
    # Wilson's interval of 1 in 10, from the textbook: 0.018 to 0.404.
    few = ReliabilityDisplay(np.array([0.1]), np.array([0.1]), np.array([10]), 1)
    np.testing.assert_allclose((few.low[0], few.high[0]), (0.0179, 0.4042), atol=1e-4)


def test_reliability_of_classifiers():
    two = LogisticRegression().fit(X, np.array(["no", "yes"])[y])
    display = ReliabilityDisplay.from_estimator(two, X, np.array(["no", "yes"])[y], n_bins=4)
    assert display.positive == "yes"
    direct = ReliabilityDisplay.from_predictions(y, two.predict_proba(X)[:, 1], n_bins=4)
    np.testing.assert_array_equal(display.share, direct.share)
    three = LogisticRegression(max_iter=1000).fit(IRIS, SPECIES)
    top = ReliabilityDisplay.from_estimator(three, IRIS, SPECIES, n_bins=3)
    assert top.share @ top.counts / 150 == pytest.approx(three.score(IRIS, SPECIES))
    assert top.ax_.get_ylabel() == "share of correct predictions"
    one = ReliabilityDisplay.from_estimator(three, IRIS, SPECIES, n_bins=3, pos_label=2)
    assert one.share @ one.counts == pytest.approx(50)
    with pytest.raises(TypeError, match="SVC has no probabilities"):
        ReliabilityDisplay.from_estimator(SVC().fit(X, y), X, y)
    with pytest.raises(ValueError, match="pos_label=7"):
        ReliabilityDisplay.from_estimator(three, IRIS, SPECIES, pos_label=7)
    with pytest.raises(ValueError, match="one probability from 0 to 1"):
        ReliabilityDisplay.from_predictions([0, 1], [0.5, 1.5])


def test_equal_probabilities_are_one_bin():
    display = ReliabilityDisplay.from_predictions([0, 1, 1, 1], [0.5] * 4)
    assert display.to_frame()["count"].tolist() == [4]
    assert display.share.tolist() == [0.75]


def test_intervals():
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0, 6, size=(80, 1)), axis=0)
    target = np.sin(x[:, 0]) + 0.2 * rng.normal(size=80)
    model = RLSRegressor(lam=0.1).fit(x, target).calibrate(x, target, cv="leave-one-out")
    display = IntervalDisplay.from_estimator(model, x, target, alpha=0.2)
    low, high = model.predict_interval(x, alpha=0.2)
    found = display.to_frame()
    np.testing.assert_array_equal(found[["low", "high"]], np.column_stack([low, high]))
    np.testing.assert_array_equal(found["feature 0"], x[:, 0])
    np.testing.assert_array_equal(found["inside"], (low <= target) & (target <= high))
    assert display.coverage == found["inside"].mean()
    np.testing.assert_array_equal(display.ax_.lines[0].get_ydata(), model.predict(x))
    inside, outside = display.ax_.collections[-2:]
    assert (len(drawn(inside)), len(drawn(outside))) == (found["inside"].sum(), (~found["inside"]).sum())


def test_intervals_of_quantiles_and_of_many_columns():
    target = IRIS[:, 3]
    model = QuantileSVR([0.9, 0.1, 0.5]).fit(IRIS[:, :3], target)
    display = IntervalDisplay.from_estimator(model, IRIS[:, :3], target)
    table = model.predict(IRIS[:, :3])
    np.testing.assert_array_equal(display.low, table[:, 1])
    np.testing.assert_array_equal(display.prediction, table[:, 2])
    assert display.ax_.get_xlabel() == "rank of the interval's centre"
    along = IntervalDisplay.from_estimator(model, IRIS[:, :3], target, feature=2)
    assert along.ax_.get_xlabel() == "feature 2"
    endless = IntervalDisplay.from_predictions([0.0, 1.0], [-np.inf, 0.0], [1.0, np.inf])
    assert endless.coverage == 1
    assert np.isfinite(endless.ax_.get_ylim()).all()
    with pytest.raises(TypeError, match="SVR has no intervals"):
        IntervalDisplay.from_estimator(SVR().fit(X, y), X)
    with pytest.raises(ValueError, match="lists of the same length"):
        IntervalDisplay.from_predictions([0.0], [0.0, 1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="without y"):
        _ = IntervalDisplay.from_predictions(None, [0.0], [1.0]).coverage


# --- paths -----------------------------------------------------------------------------------------------------------


def test_paths_as_frames():
    path = svm_path(X[:30], y[:30], gamma=0.5, C_max=10)
    found = path.plot().to_frame()
    np.testing.assert_array_equal(found["C"], path.C_)
    np.testing.assert_array_equal(found["n_support"], path.n_support_)
    ridge = RLSRegressorCV(5).fit(IRIS[:, :2], IRIS[:, 2:])
    display = PathDisplay.from_ridge_path(ridge)
    table = display.to_frame()
    np.testing.assert_array_equal(table["loo_error 1"], ridge.path_.loo_errors[:, 1])
    np.testing.assert_array_equal(table["lam"], ridge.path_.lams)
    np.testing.assert_array_equal(display.lines_[0][1].get_ydata(), np.sqrt(ridge.path_.loo_errors[:, 1]))
    np.testing.assert_array_equal(display.lines_[2][0].get_ydata(), ridge.path_.dof)
    assert display.axes_[0].get_legend().get_texts()[0].get_text() == f"λ = {ridge.path_.lam:.3g}"
    assert type(ridge.path_.plot()) is type(path.plot()) is PathDisplay
