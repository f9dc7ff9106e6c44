"""The map of the tests is true: tests/README.md, and the first lines of the test files."""

import re
from pathlib import Path

import pytest

import mercer
from reference.every_estimator import estimators

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
SOURCE = Path(mercer.__file__).parent
# Files with their ending, folders with the first of the path: tests/places, docs/api.md, conftest.py.
PATH = re.compile(
    r"(?<![\w/.*-])(?:(?:tests|docs|src|examples|benchmarks)/[\w./-]*\w|(?:[\w-]+/)*[\w-]+\.(?:py|md|toml))"
)
# Where a path may begin; a page of the documentation is also called by its name alone.
BEGINNINGS = (ROOT, TESTS, ROOT / "docs")
LIBSVMS = ("grid.py", "easy.py")  # programs of LIBSVM, which tests/cli compares with

beside_a_checkout = pytest.mark.skipif(
    not (ROOT / "docs").is_dir(), reason="the documentation is beside a checkout only"
)


def snake_case(name):
    """Return rls_regressor_cv for RLSRegressorCV; a single capital begins no word of its own (kernel_kmeans)."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z]{2})(?=[A-Z][a-z])", "_", name).lower()


def file_of(estimator):
    """Return the path of an estimator's test file: in the folder that mirrors that of its source."""
    folder = estimator.__module__.split(".")[1:-1]
    return TESTS.joinpath(*folder, f"test_{snake_case(estimator.__name__)}.py")


def first_lines(path):
    """Return the docstring of a test file; parsing hundreds of files would take a second."""
    found = re.match(r'r?"""(.*?)"""', path.read_text(encoding="utf-8"), flags=re.DOTALL)
    return found[1] if found else ""


def missing_paths(text, folder):
    """Return the paths in a text that exist neither at the usual beginnings nor in the folder of the text."""
    named = [path for path in PATH.findall(text) if path not in LIBSVMS]
    return [path for path in named if not any((start / path).exists() for start in (*BEGINNINGS, folder))]


@pytest.mark.parametrize("name", sorted(estimators()))
def test_every_public_estimator_has_a_file_of_its_name(name):
    path = file_of(estimators()[name])
    where = path.relative_to(ROOT)
    assert path.is_file(), f"{where} is missing: say there which files test {name}, and test what defines it"
    assert "\ndef test_" in path.read_text(encoding="utf-8"), f"{where} has no test"
    text = first_lines(path)
    assert PATH.search(text), f"the first lines of {where} do not say what else is tested, and where"
    assert len(text.splitlines()) <= 10, f"the first lines of {where} are more than ten"


@beside_a_checkout
def test_every_path_that_a_test_file_names_exists():
    missing = {
        str(path.relative_to(ROOT)): absent
        for path in sorted(TESTS.rglob("test_*.py"))
        if (absent := missing_paths(first_lines(path), path.parent))
    }
    assert not missing, missing


@beside_a_checkout
def test_every_path_of_the_readme_exists():
    text = (TESTS / "README.md").read_text(encoding="utf-8")
    assert not missing_paths(text, TESTS)
    table = text[text.index("|---|---|") : text.rindex("|\n")]
    folders = [name for row in table.splitlines()[1:] for name in re.findall(r"`([^`]+)`", row.split("|")[1])]
    assert len(folders) > 10
    assert not [name for name in folders if not (TESTS / name).exists()]


def test_every_folder_of_the_package_has_a_folder_of_tests():
    folders = {path.name for path in SOURCE.iterdir() if path.is_dir() and any(path.glob("*.py"))}
    assert len(folders) > 10
    assert not [name for name in sorted(folders) if not any((TESTS / name).rglob("test_*.py"))]


@beside_a_checkout
def test_every_folder_of_tests_is_in_the_readme():
    """By its own row, or as a folder of the package's."""
    text = (TESTS / "README.md").read_text(encoding="utf-8")
    folders = {path.name for path in TESTS.iterdir() if path.is_dir() and any(path.rglob("*.py"))}
    packages = {path.name for path in SOURCE.iterdir() if path.is_dir()}
    assert not [name for name in sorted(folders - packages) if f"`{name}`" not in text]


def test_names_in_snake_case():
    names = ("SVC", "NuSVC", "RLSRegressorCV", "NystromRLSClassifier", "KernelKMeans", "TunedOneClassSVM", "KernelPCA")
    expected = "svc nu_svc rls_regressor_cv nystrom_rls_classifier kernel_kmeans tuned_one_class_svm kernel_pca"
    assert " ".join(map(snake_case, names)) == expected


@pytest.mark.parametrize(
    "text", ["see tests/nowhere", "tests/estimators/test_none.py.", "nowhere/test_svc.py", "no_page.md"]
)
def test_a_path_that_does_not_exist_is_noticed(text):
    assert missing_paths(text, TESTS)
    assert not missing_paths("tests/estimators, tests/estimators/test_svc.py; estimators/test_svc.py.", TESTS)
