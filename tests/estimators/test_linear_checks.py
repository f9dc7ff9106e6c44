"""scikit-learn's own checks for the linear machines, without exceptions and without a tag that skips any."""

from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import LinearSVC, LinearSVR


@parametrize_with_checks(
    [LinearSVC(), LinearSVR(), LinearSVC(loss="hinge", solver="dual"), LinearSVR(loss="squared_epsilon_insensitive")]
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_no_tag_skips_a_check():
    for estimator in (LinearSVC(), LinearSVR()):
        tags = get_tags(estimator)
        assert not tags._skip_test
        assert not tags.no_validation
        assert not tags.non_deterministic
        assert tags.input_tags.sparse
        assert not (tags.classifier_tags or tags.regressor_tags).poor_score
