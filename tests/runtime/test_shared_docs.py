"""Shared paragraphs stand in docstrings at the depth of their place, which Python 3.13 takes away."""

import inspect
import textwrap

import pytest

from mercer.runtime.shared_docs import shared_docs

TEXT = """One line.

    Parameters
    ----------
    x : float
        A number.
    %(trace and n)s
    """


@pytest.mark.parametrize("depth", [0, 4, 8])
def test_paragraphs_are_indented_as_their_place_is(depth):
    def thing():
        """To be replaced."""

    first, _, rest = TEXT.partition("\n")
    thing.__doc__ = first + "\n" + textwrap.indent(textwrap.dedent(rest), " " * depth)
    lines = inspect.getdoc(shared_docs(thing)).splitlines()
    assert lines[-6:] == [
        *("x : float", "    A number."),
        *("trace : float", "    Trace of the kernel matrix, tr K = Σ k(x_i, x_i)."),
        *("n : int", "    Number of samples."),
    ]
