"""The pages that say how to add something say all of it: their steps are taken, word for word, in a copy."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import mercer

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def fences(page, language):
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def new_files(page):
    """Blocks that begin with a comment that names their file."""
    for block in fences(page, "python"):
        if found := re.match(r"# ((?:src|tests)/\S+)\n", block):
            yield found[1], block[found.end() :]


def edits(page):
    """(file, lines that are there, lines to add below them) of each place of a diff; no lines there: at the end."""
    for block in fences(page, "diff"):
        path, *places = re.split(r"^\+\+\+ (\S+)\n|^@@\n", block, flags=re.MULTILINE)[1:2] + re.split(
            r"^@@\n", block.partition("\n")[2], flags=re.MULTILINE
        )
        for place in places:
            lines = place.splitlines()
            yield path, [line[1:] for line in lines if line[:1] == " "], [line[1:] for line in lines if line[:1] == "+"]


def generators(page):
    """Scripts that the page runs, with their arguments: they write pages and archives."""
    lines = [line for block in fences(page, "sh") for line in block.splitlines()]
    return [line.split()[1:] for line in lines if re.match(r"python \S+\.py\b", line)]


def apply(folder, path, there, added):
    file = folder / path
    lines = file.read_text(encoding="utf-8").splitlines()
    at = len(lines)
    if there:
        fits = [k for k in range(len(lines)) if lines[k : k + len(there)] == there]
        assert fits, f"{path} has no such lines: {there}"
        at = fits[0] + len(there)
    else:
        added = ["", "", *added]
    file.write_text("\n".join([*lines[:at], *added, *lines[at:], ""]), encoding="utf-8")


def take_the_steps(page, folder):
    """A copy of the repository in which everything was done that the page says."""
    left_out = shutil.ignore_patterns("__pycache__", ".*", "gallery", "generated", "_build", "*.mercer")
    for part in ("src", "tests", "docs", "examples"):
        shutil.copytree(ROOT / part, folder / part, ignore=left_out)
    for file in (*ROOT.glob("*.md"), ROOT / "pyproject.toml"):
        shutil.copy(file, folder)
    for compiled in Path(mercer.__file__).parent.glob("_core*"):  # an installed mercer has it, a checkout may not
        shutil.copy(compiled, folder / "src" / "mercer")
    for path, text in new_files(page):
        (folder / path).write_text(text, encoding="utf-8")
    for path, there, added in edits(page):
        apply(folder, path, there, added)
    environment = os.environ | {"PYTHONPATH": str(folder / "src")}
    for script, *arguments in generators(page):
        subprocess.run([sys.executable, script, *arguments], cwd=folder, env=environment, check=True, timeout=60)


def run_tests(folder, *arguments):
    environment = os.environ | {"PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    options = ["-q", "-n", "0", "-p", "no:cacheprovider", "--assert=plain"]  # rewriting asserts takes half of the time
    command = [sys.executable, "-m", "pytest", *options, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    return done.stdout


# What of the suite speaks of the new thing by its name, or counts names.
KERNEL_TESTS = (
    "tests/kernels/test_kernel_contract.py",
    "tests/kernels/test_kernel_values.py",
    "tests/kernels/test_kernel_names.py",
    "tests/kernels/test_derivatives.py",
    "tests/places/test_rounding.py",
    "tests/documents/test_doc_pages.py::test_the_table_of_kernels",
    "tests/documents/test_doc_pages.py::test_the_reference_lists_every_public_name",
    "tests/documents/test_public_api.py::test_names",
    "tests/documents/test_doc_pages.py::test_every_public_name_has_an_example[kernels.MinMax]",
    "tests/documents/test_documented_parameters.py::test_every_parameter_is_typed_and_explained[mercer.kernels.MinMax]",
    "tests/documents/test_readme.py::test_doctests[mercer.kernels.min_max]",
)
# The other kernels are not new: of those files, what is about this one or about the list of all.
KERNEL_WORDS = (
    "min_max or MinMax or names or no_kernel_is_left_out or derivatives_or_refuses or importing or table_of_kernels or "
    "every_public_name"
)


USED = """
import numpy as np, mercer

def test_min_max_in_a_machine(tmp_path):
    X = np.random.default_rng(0).dirichlet(np.ones(4), size=40)
    model = mercer.SVC(kernel="min_max").fit(X, X[:, 0] > 0.2)
    mercer.save(model, tmp_path / "a.mercer")
    assert (mercer.load(tmp_path / "a.mercer").decision_function(X) == model.decision_function(X)).all()
    assert model.certificate_.proves == "optimality"
    assert str(model.kernel_) == "MinMax()"
"""


def test_a_kernel(tmp_path):
    take_the_steps("add_a_kernel.md", tmp_path)
    (tmp_path / "tests/test_used.py").write_text(USED, encoding="utf-8")
    told = run_tests(tmp_path, *KERNEL_TESTS, "tests/test_used.py", "-k", KERNEL_WORDS)
    assert int(re.search(r"(\d+) passed", told)[1]) > 26


MACHINE_TESTS = (
    "tests/test_architecture.py",
    "tests/documents/test_public_api.py",
    "tests/scikit_learn/test_sklearn_checks.py",
    "tests/documents/test_documented_parameters.py",
    "tests/documents/test_doc_pages.py",
    "tests/files/mercer_file/test_model_file.py",
    "tests/files/mercer_file/test_written_before.py",
    "tests/bad_inputs/test_forms.py",
    "tests/documents/test_readme.py",
    "tests/claims/test_false_claims.py",
    "tests/tools/test_what_works.py",
)
MACHINE_WORDS = (
    "TwoPenaltySVR or two_penalty or every_public_name or test_names or every_public_estimator or page_is_made or "
    "every_certified or one_of_every_class"
)


def test_a_machine(tmp_path):
    take_the_steps("add_a_machine.md", tmp_path)
    told = run_tests(tmp_path, *MACHINE_TESTS, "-k", MACHINE_WORDS)
    assert int(re.search(r"(\d+) passed", told)[1]) > 45


TOOL_TESTS = (
    "tests/tools/test_what_works.py",
    "tests/places/engines/test_opaque.py",
    "tests/behaviour/test_names_of_columns.py",
    "tests/documents/test_documented_parameters.py",
    "tests/claims/test_false_claims_of_tools.py",
    "tests/test_architecture.py",
)
TOOL_WORDS = "effective_dimension or every_method_of_machines or page_is_made or Judging or import"


def test_a_tool(tmp_path):
    take_the_steps("add_a_tool.md", tmp_path)
    told = run_tests(tmp_path, *TOOL_TESTS, "-k", TOOL_WORDS)
    assert int(re.search(r"(\d+) passed", told)[1]) > 120


@pytest.mark.parametrize("page", ["add_a_kernel.md", "add_a_machine.md", "add_a_tool.md"])
def test_steps_are_found(page):
    assert list(new_files(page))
    assert len(list(edits(page))) > 5
