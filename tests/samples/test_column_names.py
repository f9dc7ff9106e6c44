"""Column names that are misspelt, shortened or renamed: which one was meant."""

import pytest

from mercer.samples.column_names import column_suggestion, renamed_column, similar_column


@pytest.mark.parametrize(
    ("name", "names", "meant"),
    [
        ("Prix", ["surface", "prix"], "prix"),
        ("gekuendigt", ["Kunden-Nr", "gekündigt"], "gekündigt"),
        ("date", ["surface", "date de vente"], "date de vente"),
        ("surface_m2", ["surface", "prix"], "surface"),
        ("wait_minutes", ["message", "wait minutes"], "wait minutes"),
        ("Preis", ["preis", "PREIS"], "preis"),  # the first of several that are alike
        ("kündigt", ["Kunden-Nr", "Alter"], None),
        ("z", ["x", "y"], None),
        ("", ["x"], None),
    ],
)
def test_the_column_that_was_meant(name, names, meant):
    assert similar_column(name, names) == meant


def test_the_hints_name_it():
    assert column_suggestion("Prix", ["prix"]) == " (did you mean 'prix'?)"
    assert column_suggestion("z", ["prix"]) == ""
    assert (
        renamed_column(["surface", "b"], ["surface_m2"]) == "; if 'surface_m2' is 'surface' by another name, rename it"
    )
    assert renamed_column(["surface"], ["prix"]) == ""
