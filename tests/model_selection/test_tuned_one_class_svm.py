"""TunedOneClassSVM: balanced accuracy with labels, and without them how close the held-out outliers are to ν.

scikit-learn's checks, tools of the best machine and pictures: tests/model_selection/test_tuned.py. Tools: tests/tools.
The search, skipping and faults: tests/model_selection/test_tune.py, tests/model_selection/test_faults.py.
Fits of folds: tests/model_selection/held_out, tests/solvers/dual/test_one_class.py.
Claims of a search: tests/claims/test_false_claims_of_folds.py.
The machine itself: tests/estimators/test_one_class_svm.py.
"""

import numpy as np
import pytest
from sklearn import svm
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import KFold

from mercer import OneClassSVM, TunedOneClassSVM

rng = np.random.default_rng(2)
X = np.r_[rng.normal(size=(80, 2)), rng.uniform(-3, 3, size=(16, 2))]
LABELS = np.repeat([1, -1], [80, 16])
NUS = [0.02, 0.1, 0.2, 0.5]
FOLDS = KFold(4, shuffle=True, random_state=1)


def scores(score):
    """The mean over the folds of a score of scikit-learn's machine, for each ν."""
    means = []
    for nu in NUS:
        fits = [(svm.OneClassSVM(nu=nu, gamma=0.3, tol=1e-8).fit(X[rest]), held) for rest, held in FOLDS.split(X)]
        means.append(np.mean([score(nu, fit.predict(X[held]), LABELS[held]) for fit, held in fits]))
    return means


@pytest.mark.filterwarnings("ignore:the best score is at the edge of the grid")
@pytest.mark.parametrize("labelled", [True, False])
def test_scores_and_choice_are_those_of_loops_over_scikit_learns_machine(labelled):
    def score(nu, predicted, labels):
        return balanced_accuracy_score(labels, predicted) if labelled else -abs((predicted < 0).mean() - nu)

    search = TunedOneClassSVM({"nu": NUS}, estimator=OneClassSVM(gamma=0.3, tol=1e-8), cv=FOLDS, skip=False)
    model = search.fit(X, LABELS if labelled else None)
    expected = scores(score)
    np.testing.assert_allclose(model.cv_results_["mean_test_score"], expected, atol=1e-12)
    assert model.best_params_ == {"nu": NUS[int(np.argmax(expected))]}
