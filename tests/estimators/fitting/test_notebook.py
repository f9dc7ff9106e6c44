"""What a notebook shows of an estimator: scikit-learn's picture, and the certificate once there is one."""

import html
import re

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_html_repr

import mercer.estimators
from mercer import (
    SVC,
    CalibratedClassifier,
    KernelPCA,
    RLSRegressor,
    TunedSVC,
    compress,
    leave_one_out,
    mmd_test,
    tabular,
)
from mercer.kernels import Gaussian

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
    page, scikit_learns = model._repr_mimebundle_()["text/html"], estimator_html_repr(model)
    certificate_or_number = r'<div class="mercer-certificate".*?</div>|\b(sk-[a-z-]*id-|sk-container-id-)\d+'
    bare = [re.sub(certificate_or_number, "", one, flags=re.DOTALL) for one in (page, scikit_learns)]
    assert bare[0] == bare[1]
    assert page.count("mercer-certificate") == 1
    assert page.index("mercer-certificate") > page.index("fitted-att-type")  # below everything else
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


def test_what_has_no_certificate():
    assert shown(KernelPCA(2).fit(X)) is None


@pytest.mark.parametrize(
    "around",
    [make_pipeline(StandardScaler(), RLSRegressor()), GridSearchCV(RLSRegressor(), {"lam": [0.1, 1.0]}, cv=2)],
    ids=lambda model: type(model).__name__,
)
def test_a_machine_inside_another_picture(around):
    assert shown(around) is None
    around.fit(X, y)
    machine = around[-1] if hasattr(around, "steps") else around.best_estimator_
    assert shown(around) == shown(machine) == f"certificate: converged\n{machine.certificate_}"


def test_a_compressed_machine_says_so():
    small = compress(SVC().fit(X, y), 3)
    assert shown(small) == repr(small.compression_)


def test_results_are_told_in_a_notebook():
    """IPython asks an object for its text by _repr_pretty_."""

    class Printer:
        def text(self, words):
            self.words = words

    model = SVC().fit(X, y)
    results = [model.certificate_, model.explain(X[:3], X), model.reasons(X[:1])[0], mmd_test(X[:9], X[9:])]
    for result in results:
        printer = Printer()
        result._repr_pretty_(printer, False)
        assert printer.words == str(result)
        assert "array(" not in printer.words
    assert repr(model.partial_dependence(X, 0)) == "PartialDependence(x0 at 30 values, output 1)"
    left_out = leave_one_out(model, X, y)
    assert repr(left_out).startswith(f"LeaveOneOutResult(30 samples, share of errors {left_out.error:.4g}, ")


@pytest.mark.parametrize(
    "model",
    [TunedSVC({"C": [1.0]}, cv=2), tabular(SVC()), CalibratedClassifier(SVC())],
    ids=lambda model: type(model).__name__,
)
def test_estimators_that_hold_another(model):
    assert shown(model) is None
    model.fit(X, y)
    inner = model if hasattr(model, "certificate_") else model.estimator_
    assert shown(model).endswith(str(inner.certificate_))


def test_a_kernel_of_many_parts_has_no_row_for_each():
    kernel = Gaussian(0.1)
    for _ in range(7):
        kernel = kernel + kernel
    few, many = SVC(kernel=Gaussian(0.1) + Gaussian(0.2)), SVC(kernel=kernel)
    assert "kernel__left__gamma" in few._repr_html_()
    assert "kernel__left" not in many._repr_html_()
    assert len(many._repr_html_()) < 2 * len(few._repr_html_())
    assert "kernel__left" not in make_pipeline(StandardScaler(), many)._repr_html_()
