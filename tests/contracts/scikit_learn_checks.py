"""scikit-learn's checks of an estimator, in one test: a test for each of them costs more than most of them do."""

import re
import traceback
from unittest import SkipTest

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator


def of_each(estimators):
    """A decorator: the test takes each `estimator`, and is named after it."""
    return pytest.mark.parametrize("estimator", estimators, ids=_name)


def of_each_in_turns(forms, turns):
    """A decorator for forms of estimators that are checked in full elsewhere: a check is made on one form in `turns`.

    Neighbours share the checks among them. With ``-m thorough`` every form is given all of them.
    """
    shares = [pytest.param(form, (k % turns, turns), id=_name(form)) for k, form in enumerate(forms)]
    whole = [pytest.param(form, (0, 1), id=_name(form) + "-all", marks=pytest.mark.thorough) for form in forms]
    return pytest.mark.parametrize(("estimator", "share"), [*shares, *whole])


def hold(estimator, expected=(), share=(0, 1)):
    """Assert that the estimator passes every check of its share, but for those `expected` to fail, which must."""
    first, turns = share
    broken = []
    for k, (instance, check) in enumerate(estimator_checks_generator(estimator)):
        if k % turns != first:
            continue
        name = check.func.__name__
        told = f"{name} {check.keywords or ''}"
        try:
            check(instance)
        except SkipTest:  # what the check needs is not installed
            continue
        except Exception:
            if name not in expected:
                broken.append(f"{told}\n{traceback.format_exc()}")
        else:
            if name in expected:
                broken.append(f"{told}: passes, though it was expected to fail")
    assert not broken, "\n\n".join(broken)


def _name(estimator):
    return re.sub(r"\s", "", str(estimator))
