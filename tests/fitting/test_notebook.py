"""What a notebook shows of an estimator: scikit-learn's picture, and the certificate once there is one."""

import html
import re

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_html_repr

import mercer.estimators
from mercer import SVC, KernelPCA, RLSRegressor, TunedSVC, tabular

X = np.random.default_rng(0).normal(size=(30, 2))
y = (X[:, 0] > 0).astype(int)


def shown(estimator):
    """The words of the certificate in the picture, or None."""
    found = re.findall(r'<div class="mercer-certificate"[^>]*>(.*?)</div>', estimator._repr_html_(), flags=re.DOTALL)
    assert len(found) <= 1
    return html.unescape(found[0]) if found else None


@pytest.mark.parametrize("name", mercer.estimators.__all__)
def test_every_estimator_shows_its_certificate(name):
    model = getattr(mercer.estimators, name)()
    assert shown(model) is None
    model.fit(X, y)
    assert shown(model) == f"certificate: {model.stop_reason_}\n{model.certificate_}"
    assert shown(clone(model)) is None


def test_both_ways_to_ask_agree_and_the_picture_stays_scikit_learns():
    model = SVC().fit(X, y)
    page = model._repr_mimebundle_()["text/html"]
    without = re.sub(r'<div class="mercer-certificate".*?</div>', "", page, flags=re.DOTALL)
    numbers = r"\b(sk-[a-z-]*id-|sk-container-id-)\d+"
    assert re.sub(numbers, "", without) == re.sub(numbers, "", estimator_html_repr(model))
    assert page.count("mercer-certificate") == 1
    with config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert list(model._repr_mimebundle_()) == ["text/plain"]


def test_words_are_escaped():
    model = SVC().fit(X, y)
    model.stop_reason_ = "<script>alert(1)</script>"
    assert "<script>alert" not in model._repr_html_()
    assert shown(model).startswith("certificate: <script>alert(1)</script>\n")


def test_an_unfinished_fit_looks_different():
    with pytest.warns(ConvergenceWarning):
        early = SVC(C=1e3, max_iter=1).fit(X, np.arange(30) % 2)
    done, stopped = SVC().fit(X, y)._repr_html_(), early._repr_html_()
    colours = [re.search(r"border-left:3px solid (#\w+)", page)[1] for page in (done, stopped)]
    assert colours[0] != colours[1]
    assert shown(early).startswith("certificate: max_iter\n")


def test_what_has_no_certificate_and_what_stands_around_it():
    assert shown(KernelPCA(2).fit(X)) is None
    around = make_pipeline(StandardScaler(), RLSRegressor()).fit(X, y)
    assert "mercer-certificate" not in around._repr_html_()
    assert shown(around[-1]) is not None


@pytest.mark.parametrize(
    "model", [TunedSVC({"C": [1.0]}, cv=2), tabular(SVC())], ids=lambda model: type(model).__name__
)
def test_estimators_that_hold_another(model):
    assert shown(model) is None
    model.fit(X, y)
    inner = model if hasattr(model, "certificate_") else model.estimator_
    assert shown(model).endswith(str(inner.certificate_))
