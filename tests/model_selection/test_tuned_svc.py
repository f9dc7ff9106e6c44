"""TunedSVC chooses what scikit-learn's GridSearchCV chooses with scikit-learn's SVC.

scikit-learn's checks, files, copies, pipelines and pictures: tests/model_selection/test_tuned.py. Tools: tests/tools.
The search, skipping and faults: tests/model_selection/test_tune.py, tests/model_selection/test_faults.py.
Scores: tests/model_selection/test_scores.py. Grids made from the data: tests/model_selection/test_choice.py.
Criteria without folds: tests/model_selection/test_criteria.py. Fits of folds: tests/model_selection/held_out.
Claims of a search: tests/claims/test_false_claims_of_folds.py. The machine itself: tests/estimators/test_svc.py.
"""

import numpy as np
import pytest
from sklearn import svm
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from mercer import SVC, TunedSVC

GRID = {"C": [0.1, 1.0, 10.0], "gamma": [0.03, 0.3]}
FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)
rng = np.random.default_rng(0)
X = rng.normal(size=(90, 3))
SIGNAL = X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=90)


@pytest.mark.filterwarnings("ignore:the best score is at the edge of the grid")
@pytest.mark.parametrize("edges", [[1.0], [0.3, 1.5]], ids=["two classes", "three classes"])
def test_scores_and_choice_are_those_of_grid_search(edges):
    y = np.digitize(SIGNAL, edges)
    model = TunedSVC(GRID, estimator=SVC(tol=1e-6), cv=FOLDS, skip=False).fit(X, y)
    peer = GridSearchCV(svm.SVC(tol=1e-6), GRID, cv=FOLDS).fit(X, y)
    theirs = dict(zip(map(str, peer.cv_results_["params"]), peer.cv_results_["mean_test_score"], strict=True))
    for point, score in zip(model.cv_results_["params"], model.cv_results_["mean_test_score"], strict=True):
        assert score == pytest.approx(theirs[str(point)], abs=1e-12), point
    assert model.best_score_ == pytest.approx(peer.best_score_, abs=1e-12)


def test_predictions_are_those_of_scikit_learns_machine_at_the_chosen_point():
    y = np.digitize(SIGNAL, [1.0])
    model = TunedSVC(GRID, estimator=SVC(tol=1e-6), cv=FOLDS).fit(X, y)
    peer = svm.SVC(tol=1e-6, **model.best_params_).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), peer.decision_function(X), atol=1e-4)
