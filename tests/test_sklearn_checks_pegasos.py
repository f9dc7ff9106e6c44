"""scikit-learn's own checks of PegasosSVC, without exceptions: both forms, every way to average."""

import pytest
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from mercer import PegasosSVC


@parametrize_with_checks([PegasosSVC(), PegasosSVC(sampling="passes", project=True)])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@parametrize_with_checks([PegasosSVC(lam=1e-2, kernel="rbf"), PegasosSVC(lam=1e-2, average="last")])
def test_scikit_learns_checks_of_other_forms(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", [PegasosSVC(), PegasosSVC(kernel="rbf")], ids=["linear", "kernel"])
def test_no_tag_skips_a_check(estimator):
    tags = get_tags(estimator)
    assert not tags._skip_test
    assert not tags.no_validation
    assert not tags.non_deterministic
    assert not tags.classifier_tags.poor_score
    assert tags.classifier_tags.multi_class
    assert tags.input_tags.sparse
    names = {check.func.__name__ for _, check in estimator_checks_generator(estimator)}
    assert {
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
        "check_estimators_partial_fit_n_features",
        "check_fit_idempotent",
    } <= names
