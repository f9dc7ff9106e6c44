"""The seven rules of Rademacher complexity, on finite classes whose complexities are enumerated."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mercer import theory
from mercer.notes.theory import finite_complexity
from mercer.notes.theory.complexity import ComplexityBound

tables = hnp.arrays(
    np.float64, st.tuples(st.integers(1, 5), st.just(6)), elements=st.integers(-8, 8).map(lambda i: i / 8)
)
rows = hnp.arrays(np.float64, 6, elements=st.integers(-8, 8).map(lambda i: i / 8))


def exactly(table):
    """R̂ of a class, over all sign vectors, as a bound."""
    value = finite_complexity(table).value
    return ComplexityBound("R̂", value, {"R̂": value})


def holds(table, bound):
    return finite_complexity(table).value <= bound.value * (1 + 1e-12) + 1e-12


@settings(max_examples=60)
@given(table=tables, other=tables, h=rows, c=st.floats(-5, 5), seed=st.integers(0, 99))
def test_rules(table, other, h, c, seed):
    own = exactly(table)
    assert holds(table[:1], own)  # a part of the class
    mixture = np.random.default_rng(seed).dirichlet(np.ones(len(table)), size=4) @ table
    assert holds(np.vstack([table, mixture]), own)  # its convex hull
    assert own.multiple(c).value == pytest.approx(finite_complexity(c * table).value, abs=1e-12)
    for outer, lipschitz in ((np.sin, 1.0), (lambda t: np.maximum(t, 0.0), 1.0), (lambda t: t**2, 2.0), (np.abs, 1.0)):
        assert holds(outer(table), own.contraction(lipschitz, zero_at_zero=True))
    assert holds(table + h, own.shift(h))
    assert holds(np.vstack([table, other]), own.union(exactly(other)))
    near = np.clip(table, h - 1, h + 1)
    for q in (1, 2, 3.5):
        assert holds(np.abs(near - h) ** q, exactly(near).power(h, q))


def test_contraction_needs_a_zero_at_zero():
    """A constant has no complexity as a class of its own sign, but one as a function."""
    bound = exactly(np.zeros((1, 6))).contraction(1.0, zero_at_zero=False)
    assert not holds(np.cos(np.zeros((1, 6))), bound)
    assert bound.applies is False


def test_rules_carry_assumptions():
    ball = theory.trace_bound(100.0, 50, norm=2.0)
    there = ball.multiple(-3.0).contraction(1.0, zero_at_zero=True)
    assert there.value == pytest.approx(6 * ball.value)
    assert [a.text for a in there.assumptions] == [
        "the kernel is positive semi-definite",
        "the outer function A has A(0) = 0",
    ]
    both = ball.union(ball)
    assert len(both.assumptions) == 1
    assert both.value == 2 * ball.value
    assert ball.union().value == ball.value
    surely = ComplexityBound("R̂", 1.0, {"R̂": 1.0}, delta=0.01)
    assert surely.union(ball, surely).delta == 0.02  # each may fail
    assert surely.shift(np.ones(4)).terms == {"R̂(F)": 1.0, "2√(Ê h²/n)": 1.0}
    with pytest.raises(ValueError, match="at least 1"):
        ball.power(np.zeros(50), 0.5)
    with pytest.raises(ValueError, match="one finite value per sample"):
        ball.shift([np.nan])
