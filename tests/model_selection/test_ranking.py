"""`tune` of a ranking: fits and scores within queries, against folds that are fitted and counted by hand."""

import itertools

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, KFold, LeaveOneGroupOut
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import SVR, RankSVM, Tabular, tune

pytestmark = pytest.mark.filterwarnings("ignore:the best score is at the edge")

RNG = np.random.default_rng(3)
QID = np.repeat(np.arange(6), 8)
X = RNG.normal(size=(48, 3))
# Grades of a query have an offset of their own, so that grades of different queries cannot be compared.
Y = (X[:, 0] + 0.5 * X[:, 1] + 0.3 * RNG.normal(size=48)).round(1) + 20.0 * RNG.normal(size=6)[QID]
GRID = {"C": [0.003, 0.1, 10.0]}


def right_pairs(model, rows):
    """The share of pairs of a query in the right order, counted one by one."""
    f = model.predict(X[rows])
    counts = []
    for i, j in itertools.combinations(range(len(rows)), 2):
        if QID[rows[i]] == QID[rows[j]] and Y[rows[i]] != Y[rows[j]]:
            counts.append((f[i] > f[j]) == (Y[rows[i]] > Y[rows[j]]))
    return np.mean(counts)


def by_hand(make, splits):
    means = []
    for C in GRID["C"]:
        scores = [right_pairs(make(C, train), test) for train, test in splits]
        means.append(np.mean(scores))
    return means


def ranked(C, rows):
    return RankSVM(C=C).fit(X[rows], Y[rows], qid=QID[rows])


@pytest.mark.parametrize(
    ("cv", "folds"),
    [(4, GroupKFold(4, shuffle=True, random_state=0)), (LeaveOneGroupOut(), LeaveOneGroupOut())],
    ids=["number", "splitter"],
)
def test_scores_are_those_of_whole_queries_left_out(cv, folds):
    found = tune(RankSVM(), X, Y, qid=QID, grid=GRID, cv=cv)
    expected = by_hand(ranked, list(folds.split(X, Y, QID)))
    np.testing.assert_allclose(found.cv_results_["mean_test_score"], expected, atol=1e-12)
    assert found.best_params_["C"] == GRID["C"][int(np.argmax(expected))]
    whole = RankSVM(**found.best_params_).fit(X, Y, qid=QID)
    np.testing.assert_array_equal(found.best_estimator_.predict(X), whole.predict(X))


def test_groups_of_their_own_make_the_folds():
    halves = QID // 3
    found = tune(RankSVM(), X, Y, qid=QID, groups=halves, grid=GRID, cv=LeaveOneGroupOut())
    expected = by_hand(ranked, list(LeaveOneGroupOut().split(X, Y, halves)))
    np.testing.assert_allclose(found.cv_results_["mean_test_score"], expected, atol=1e-12)


def test_a_pipeline_and_a_score_of_ones_own():
    def scaled(C, rows):
        return make_pipeline(StandardScaler(), RankSVM(C=C)).fit(X[rows], Y[rows], ranksvm__qid=QID[rows])

    splits = list(GroupKFold(3).split(X, Y, QID))
    expected = by_hand(scaled, splits)
    pipeline = make_pipeline(StandardScaler(), RankSVM())
    found = tune(pipeline, X, Y, qid=QID, grid=GRID, cv=splits)
    np.testing.assert_allclose(found.cv_results_["mean_test_score"], expected, atol=1e-12)
    np.testing.assert_array_equal(
        found.best_estimator_.predict(X), scaled(found.best_params_["ranksvm__C"], slice(None)).predict(X)
    )

    def least_of_a_query(model, samples, y, qid):
        return min(model.score(samples[qid == q], y[qid == q]) for q in np.unique(qid))

    found = tune(RankSVM(), X, Y, qid=QID, grid={"C": [0.1]}, cv=splits, scoring=least_of_a_query)
    least = [min(right_pairs(ranked(0.1, t), h[QID[h] == q]) for q in np.unique(QID[h])) for t, h in splits]
    np.testing.assert_allclose(found.best_score_, np.mean(least))


def test_what_would_compare_samples_of_different_queries_is_refused():
    with pytest.raises(ValueError, match="Pass qid="):
        tune(RankSVM(), X, Y, groups=QID, grid=GRID)
    with pytest.raises(ValueError, match="compares samples of different queries"):
        tune(RankSVM(), X, Y, qid=QID, grid=GRID, scoring="r2")
    with pytest.raises(TypeError, match="qid is for RankSVM"):
        tune(SVR(), X, Y, qid=QID, grid=GRID)
    with pytest.raises(TypeError, match="Tabular does not pass qid"):
        tune(Tabular(RankSVM()), X, Y, qid=QID, grid=GRID)
    with pytest.raises(ValueError, match="qid needs criterion='folds'"):
        tune(RankSVM(), X, Y, qid=QID, grid=GRID, criterion="loo")


def test_without_queries_all_samples_are_compared():
    found = tune(RankSVM(), X, Y, grid={"C": [0.1]}, cv=KFold(3))
    scores = [RankSVM(C=0.1).fit(X[t], Y[t]).score(X[h], Y[h]) for t, h in KFold(3).split(X)]
    np.testing.assert_allclose(found.best_score_, np.mean(scores))
