"""TunedSVR chooses what scikit-learn's GridSearchCV chooses with scikit-learn's SVR.

scikit-learn's checks, weights and pictures: tests/model_selection/test_tuned.py. Tools: tests/tools.
The search, skipping and faults: tests/model_selection/test_tune.py, tests/model_selection/test_faults.py.
Scores: tests/model_selection/test_scores.py. Criteria without folds: tests/model_selection/test_criteria.py.
Intervals around it: tests/calibration/test_learnt_again.py. The machine itself: tests/estimators/test_svr.py.
"""

import numpy as np
import pytest
from sklearn import svm
from sklearn.model_selection import GridSearchCV, KFold

from mercer import SVR, TunedSVR

# LIBSVM keeps kernel values as float32, which a large C multiplies; with a small C the intercept is not unique.
GRID = {"C": [1.0, 3.0, 10.0], "epsilon": [0.1, 0.3]}
FOLDS = KFold(3, shuffle=True, random_state=0)
rng = np.random.default_rng(1)
X = rng.normal(size=(70, 2))
Y = np.sin(2 * X[:, 0]) + 0.5 * rng.normal(size=70)


@pytest.mark.filterwarnings("ignore:the best score is at the edge of the grid")
@pytest.mark.parametrize("scoring", [None, "neg_mean_absolute_error"])
def test_scores_and_choice_are_those_of_grid_search(scoring):
    machine = {"gamma": 0.5, "tol": 1e-8}
    model = TunedSVR(GRID, estimator=SVR(**machine), cv=FOLDS, scoring=scoring, skip=False).fit(X, Y)
    peer = GridSearchCV(svm.SVR(**machine), GRID, cv=FOLDS, scoring=scoring).fit(X, Y)
    theirs = dict(zip(map(str, peer.cv_results_["params"]), peer.cv_results_["mean_test_score"], strict=True))
    for point, score in zip(model.cv_results_["params"], model.cv_results_["mean_test_score"], strict=True):
        assert score == pytest.approx(theirs[str(point)], abs=1e-4), point
    assert model.best_params_ == peer.best_params_
    np.testing.assert_allclose(model.predict(X), peer.predict(X), atol=1e-4)
