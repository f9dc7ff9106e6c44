"""Attributes and methods of the objects that functions return are described where the function is documented.

Nobody makes or imports these classes, so the reference does not list them.
"""

import inspect
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

import mercer
from mercer.certificates.lagrangian import Lagrangian
from mercer.estimators.linear import LinearPath
from mercer.estimators.ridge_path import RidgePath
from mercer.estimators.transduction import Transduction
from mercer.estimators.unsupervised.mmd import MMDTest
from mercer.inspection.explain.partial_dependence import PartialDependence
from mercer.inspection.explain.reasons import Reasons
from mercer.inspection.features.expansion import MercerExpansion
from mercer.inspection.features.incomplete_cholesky import IncompleteCholesky
from mercer.kernels.mercer_check import KernelCheck
from mercer.model_selection.learn_kernel import LearntKernel
from mercer.model_selection.paths.estimates import Estimate
from mercer.notes.teaching.record import Step, Steps
from mercer.problems.margins import NearestPoints, SeveralMargins
from mercer.solvers.ipop import QPAnswer
from mercer.tables.formula import FormulaModel

DOCS = Path(__file__).parents[2] / "docs"
# What each class is returned by, or the section of a page that describes it.
DESCRIBED = [
    (MMDTest, mercer.mmd_test),
    (LearntKernel, mercer.learn_kernel),
    (LinearPath, mercer.linear_path),
    (RidgePath, mercer.RLSRegressorCV),
    (RidgePath, "least_squares.md"),
    (Lagrangian, "certificate.md#The Lagrangian"),
    (SeveralMargins, mercer.SVC.margins),
    (NearestPoints, mercer.SVC.nearest_points),
    (QPAnswer, mercer.teaching.ipop),
    (Transduction, mercer.transduce),
    (FormulaModel, mercer.fit_formula),
    (KernelCheck, mercer.check_kernel),
    (Estimate, mercer.paths.xi_alpha),
    (Estimate, mercer.paths.span_bound),
    (Estimate, mercer.paths.span_estimate),
    (Estimate, mercer.paths.radius_margin),
    (MercerExpansion, mercer.features.mercer_expansion),
    (IncompleteCholesky, mercer.inspection.features.incomplete_cholesky),
    (PartialDependence, "explanations.md#Partial dependence"),
    (Reasons, "explanations.md#Reasons"),
    (Steps, mercer.steps),
    (Step, mercer.steps),
]
LIBRARY = {"record"}  # methods by which the library fills an object


def offered(cls):
    """Public fields, properties and methods of a class."""
    own = [field.name for field in fields(cls)] if is_dataclass(cls) else []
    own += [name for name, value in vars(cls).items() if callable(value) or not isinstance(value, str | tuple | dict)]
    return {name for name in own if not name.startswith("_")} - LIBRARY


def text_of(place):
    if not isinstance(place, str):
        return inspect.getdoc(place)
    page, _, section = place.partition("#")
    text = (DOCS / page).read_text(encoding="utf-8")
    return text.partition(f"\n## {section}\n")[2].partition("\n## ")[0] if section else text


@pytest.mark.parametrize(("cls", "place"), DESCRIBED, ids=lambda one: getattr(one, "__name__", None))
def test_every_attribute_and_method_is_described(cls, place):
    names, text = offered(cls), text_of(place)
    assert names
    missing = [name for name in names if f"`{name}`" not in text and f"`{name}(" not in text and f".{name}" not in text]
    assert not missing
