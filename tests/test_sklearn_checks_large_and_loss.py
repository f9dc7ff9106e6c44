"""scikit-learn's own checks for the machines on landmarks and those of any loss, without exceptions."""

from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import KernelMachineClassifier, KernelMachineRegressor, NystromRLS, NystromRLSClassifier


@parametrize_with_checks(
    [
        KernelMachineClassifier(),
        KernelMachineClassifier("squared_hinge"),
        KernelMachineClassifier("hinge", tol=1e-9),
        KernelMachineClassifier("squared"),
        KernelMachineRegressor(),
        KernelMachineRegressor("squared", bias=False),
        NystromRLS(),
        NystromRLSClassifier(),
        NystromRLS(n_landmarks=20),
        NystromRLSClassifier(landmarks="leverage", lam=0.1),
    ]
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_no_tag_skips_a_check():
    for estimator in (NystromRLS(), NystromRLSClassifier()):
        tags = get_tags(estimator)
        assert not any((tags._skip_test, tags.no_validation, tags.non_deterministic, tags.input_tags.allow_nan))
        assert tags.input_tags.sparse
    assert get_tags(NystromRLS()).target_tags.multi_output
    assert not get_tags(NystromRLS()).regressor_tags.poor_score
    assert not get_tags(NystromRLSClassifier()).classifier_tags.poor_score
