"""The paper: its form, its references, its theorem, and its figures, which the README or the pages must state too."""

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

from mercer import SVC
from mercer.kernels import Gaussian

ROOT = Path(__file__).parents[2]
PAPER = (ROOT / "paper/paper.md").read_text(encoding="utf-8")
REFERENCES = (ROOT / "paper/paper.bib").read_text(encoding="utf-8")
HEAD, TEXT = PAPER.split("\n---\n", 1)


def test_the_form():
    for field in ("title", "tags", "authors", "affiliations", "date", "bibliography"):
        assert re.search(rf"^{field}:", HEAD, flags=re.MULTILINE)
    assert "bibliography: paper.bib" in HEAD
    sections = re.findall(r"^# (.*)$", TEXT, flags=re.MULTILINE)
    assert sections[:2] == ["Summary", "Statement of need"]
    assert 750 <= len(TEXT.split()) <= 1000


def test_every_reference_is_cited_and_every_citation_is_a_reference():
    cited = set(re.findall(r"@([a-z]+\d{4})", TEXT))
    assert cited == set(re.findall(r"^@\w+\{(\w+),$", REFERENCES, flags=re.MULTILINE))


def test_every_figure_of_the_results_is_stated_on_a_page():
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    stated = " ".join(page.read_text(encoding="utf-8") for page in pages)
    results = re.search(r"^# Results\n(.*?)^# ", TEXT, flags=re.MULTILINE | re.DOTALL)[1]
    figures = re.findall(r"\d[\d,]*\.\d+|\d+,\d{3}|\d+(?= %)", results)
    assert {"14.2", "7.5", "3.5", "4.9", "15", "20,000"} <= set(figures)
    assert [figure for figure in figures if not re.search(rf"(?<![\d.]){re.escape(figure)}(?![\d.]\d)", stated)] == []


@pytest.mark.parametrize("tol", [1e-1, 1e-3])
def test_the_theorem_gives_the_gap_of_the_certificate(tol):
    """Σ max (s − β_i) r_i without rounding errors is what the certificate states, up to those errors."""
    X, y = load_breast_cancer(return_X_y=True)
    X, signs = scale(X), np.where(y == 1, 1.0, -1.0)
    C = 2.0
    model = SVC(C=C, kernel=Gaussian(gamma=0.02), tol=tol).fit(X, y)
    beta = np.zeros(len(y))
    beta[model.support_] = model.dual_coef_[0]
    r = signs - Gaussian(gamma=0.02)(X) @ beta - model.intercept_[0]
    low, high = np.minimum(0, C * signs), np.maximum(0, C * signs)
    total = np.maximum((low - beta) * r, (high - beta) * r).sum()
    assert total > 0
    assert total <= model.certificate_.gap
    assert model.certificate_.gap == pytest.approx(total, rel=1e-6)
