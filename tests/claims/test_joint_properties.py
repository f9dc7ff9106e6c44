"""Invariants of the joint multi-class machines on drawn problems."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import SVC
from reference.multiclass import BIASES, MACHINES, NUMBERS, clouds, dual_by_qp
from reference.problems import gram_matrix


@st.composite
def problems(draw):
    seed, n_classes = draw(st.integers(0, 2**32 - 1)), draw(st.integers(2, 5))
    n = draw(st.integers(max(6, n_classes + 1), 30))
    X, y = clouds(seed, n=n, n_classes=n_classes, n_features=draw(st.integers(1, 4)))
    kernel = draw(st.sampled_from(list(NUMBERS)))
    options = {
        "C": 10 ** draw(st.floats(-2, 1)),
        "kernel": kernel,
        "multiclass": draw(st.sampled_from(list(MACHINES))),
        "bias": draw(st.sampled_from(BIASES)),
        "tol": 1e-6,
        "max_time": 5.0,
        **NUMBERS[kernel],
    }
    return X, y, options


def same_function(one, other, X, options):
    """Optima of one strictly concave problem differ, in f, by at most √(2·gap·k(x, x)) each."""
    size = np.sqrt(np.diag(gram_matrix(options["kernel"], X, **NUMBERS[options["kernel"]])) + 1.0).max()
    bound = 2 * size * sum(math.sqrt(2 * max(m.certificate_.gap, 0.0)) for m in (one, other))
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=bound + 1e-7 * (1 + size**2))


@settings(max_examples=40)
@given(problems(), st.randoms(use_true_random=False))
def test_integer_weights_are_repeats_and_zero_is_removed(drawn, random):
    X, y, options = drawn
    weight = np.array([random.randint(0, 3) for _ in y], dtype=float)
    weight[: y.max() + 1] = 1.0
    rows = np.repeat(np.arange(len(y)), weight.astype(int))
    weighted = SVC(**options).fit(X, y, sample_weight=weight)
    repeated = SVC(**options).fit(X[rows], y[rows])
    np.testing.assert_array_equal(weighted.decision_function(X), repeated.decision_function(X))
    assert not np.isin(weighted.support_, np.flatnonzero(weight == 0)).any()


def hinges(f, y, machine):
    """Σ_i max or Σ over the other classes k of max(0, 1 + f_k − f_y)."""
    rows = np.arange(len(y))
    slack = np.maximum(1 + f - f[rows, y][:, None], 0)
    slack[rows, y] = 0
    return (slack.max(axis=1) if machine == "crammer-singer" else slack.sum(axis=1)).sum()


@settings(max_examples=40)
@given(problems(), st.integers(0, 2**32 - 1))
def test_order_of_rows_threads_and_names_of_classes_do_not_matter(drawn, seed):
    X, y, options = drawn
    rng = np.random.default_rng(seed)
    model = SVC(**options).fit(X, y)
    order = rng.permutation(len(y))
    shuffled = SVC(**options, n_jobs=2).fit(X[order], y[order])
    np.testing.assert_array_equal(model.decision_function(X), shuffled.decision_function(X))
    # Other names put the classes into another order, which the optimum does not know of.
    names = rng.permutation(y.max() + 1)
    renamed = SVC(**options).fit(X, names[y])
    f, g = model.decision_function(X), renamed.decision_function(X)
    if y.max() > 1:
        size = np.sqrt(np.diag(gram_matrix(options["kernel"], X, **NUMBERS[options["kernel"]])) + 1.0).max()
        bound = 2 * size * sum(math.sqrt(2 * m.certificate_.gap) for m in (model, renamed)) + 1e-7 * (1 + size**2)
        other = g[:, names]
        if options["bias"] is True:  # several biases may be optimal where no multiplier is free; none costs more
            own, theirs = (hinges(h, y, options["multiclass"]) for h in (f, other))
            gap = max(m.certificate_.gap for m in (model, renamed))
            assert abs(own - theirs) <= 2 * len(y) * y.max() * bound + gap / options["C"]
            other = other - (other - f).mean(axis=0)
        np.testing.assert_allclose(other, f, atol=bound)
        np.testing.assert_allclose(f.sum(axis=1), 0.0, atol=1e-9 * (1 + np.abs(f).max()))


@settings(max_examples=40)
@given(problems())
def test_the_gap_bounds_the_distance_to_the_quadratic_program(drawn):
    X, y, options = drawn
    n_classes = int(y.max()) + 1
    model = SVC(**{**options, "tol": 1e-2}).fit(X, y)
    K = gram_matrix(options["kernel"], X, **NUMBERS[options["kernel"]])
    C = np.full(len(y), options["C"])
    value, _ = dual_by_qp(K, y, C, n_classes, machine=options["multiclass"], bias=options["bias"])
    certificate, slack = model.certificate_, 1e-6 * (1 + abs(value))
    assert certificate.dual <= value + slack
    assert value <= certificate.primal + slack
    assert certificate.gap >= 0
    assert certificate.gap == pytest.approx(certificate.primal - certificate.dual, abs=1e-9 * (1 + abs(value)))
    # What tol promises of the gap: every multiplier is worth at most its violation.
    assert (
        certificate.gap <= 1e-2 * C.sum() * (1 if options["multiclass"] == "crammer-singer" else n_classes - 1) + 1e-9
    )


@settings(max_examples=40)
@given(problems(), st.sampled_from([0.25, 3.0]))
def test_scaling_the_kernel_is_scaling_C(drawn, a):
    X, y, options = drawn
    K = gram_matrix(options["kernel"], X, **NUMBERS[options["kernel"]])
    options = {**options, "kernel": "precomputed", "bias": False}
    one = SVC(**options).fit(K, y)
    other = SVC(**{**options, "C": options["C"] / a}).fit(a * K, y)
    size = np.sqrt(np.diag(K).max() + 1.0)
    bound = 2 * size * (math.sqrt(2 * one.certificate_.gap) + math.sqrt(2 * a * other.certificate_.gap))
    np.testing.assert_allclose(
        one.decision_function(K), other.decision_function(a * K), atol=bound + 1e-7 * (1 + size**2)
    )


@settings(max_examples=40)
@given(problems())
def test_every_fit_ends_and_repeats_itself(drawn):
    X, y, options = drawn
    model, again = SVC(**options).fit(X, y), SVC(**options).fit(X, y)
    assert model.stop_reason_ in ("converged", "rounding floor")
    np.testing.assert_array_equal(model.dual_coef_, again.dual_coef_)
    same_function(model, again, X, options)
