"""The pages say what is so: their sessions are run, their tables compared with the code, and nothing is forgotten."""

import doctest
import inspect
import pkgutil
import re
from pathlib import Path

import pytest
import sklearn.calibration
import sklearn.svm

import mercer
import mercer.inspection.features
from mercer import kernels
from mercer.kernels.names import kernel_named

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
ROOMS = ("src/mercer", "")  # a page writes `solvers/refine.py` for src/mercer/solvers/refine.py


# An indented prompt belongs to the docstring of a class that the page writes down.
SESSIONS = [page.name for page in sorted(DOCS.glob("*.md")) if "\n>>> " in page.read_text(encoding="utf-8")]


def test_pages_with_sessions_are_found():
    assert {"understanding_a_model.md", "solvers.md", "kernels.md", "notation.md"} <= set(SESSIONS)


@pytest.mark.parametrize("name", SESSIONS)
def test_examples(name):
    options = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    found = doctest.testfile(str(DOCS / name), module_relative=False, optionflags=options, encoding="utf-8")
    assert found.attempted > 5
    assert found.failed == 0


def default(library, estimator, parameter):
    return inspect.signature(getattr(library, estimator)).parameters[parameter].default


DEFAULTS = {
    "`kernel`": ("SVC", "kernel"),
    "`gamma`": ("SVC", "gamma"),
    "`C`": ("SVC", "C"),
    "`nu` of the classifier": ("NuSVC", "nu"),
    "`nu` of one class": ("OneClassSVM", "nu"),
    "`epsilon`": ("SVR", "epsilon"),
    "`epsilon` of the linear machine": ("LinearSVR", "epsilon"),
    "`tol`": ("SVC", "tol"),
    "`cache_size`, MB": ("SVC", "cache_size"),
    "`max_iter`": ("SVC", "max_iter"),
}


@pytest.mark.parametrize("row", DEFAULTS)
def test_the_table_of_defaults(row):
    lines = (DOCS / "migration.md").read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    head = next(line for line in cells if line[-1] == "mercer" and len(line) == 6)
    (written,) = [dict(zip(head, line, strict=True)) for line in cells if line[0] == row]
    assert written["scikit-learn 1.9"].partition(",")[0] == str(default(sklearn.svm, *DEFAULTS[row]))
    assert written["mercer"].partition(",")[0] == str(default(mercer, *DEFAULTS[row]))


def calls_on(page):
    """(name, keywords) of the calls in the last column of a page's tables, as far as they can be read."""
    rows = [line for line in (DOCS / page).read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    code = [text for line in rows for text in re.findall(r"`([^`]+)`", line.strip("| ").split(" | ")[-1])]
    call = r"(?<![\w.])(?=(mercer\.[\w.]+|[A-Z]\w+)\(((?:[^()]|\([^()]*\))*)\))"  # calls inside of calls, too
    found = [pair for text in code for pair in re.findall(call, text)]
    return [(name, re.findall(r"(\w+)=", re.sub(r"\([^()]*\)", "", inside))) for name, inside in found]


def test_the_calls_that_migration_sends_to_exist():
    rooms = (mercer, kernels, mercer.features, sklearn.calibration)  # the last has what stays scikit-learn's
    seen = set()
    for name, keywords in calls_on("migration.md"):
        if name.startswith("mercer."):
            thing = pkgutil.resolve_name(name)
        else:
            thing = next(getattr(room, name) for room in rooms if hasattr(room, name))
        taken = inspect.signature(thing).parameters
        assert any(one.kind is one.VAR_KEYWORD for one in taken.values()) or set(keywords) <= set(taken), name
        seen.add(name.rpartition(".")[2])
    assert {"SVC", "KernelPCA", "svm_path", "tune", "QuantileSVR", "tabular", "RandomFourier", "xi_alpha"} <= seen


def paths_in(text):
    """What is written in backticks and looks like a file or a folder of this repository."""
    found = re.findall(r"`{1,2}([\w./]+/[\w./]*)", text)
    folders = {p.name for room in ROOMS for p in (ROOT / room).iterdir() if p.is_dir()}
    return sorted({path for path in found if path.partition("/")[0] in folders})


NAMING = [*sorted(DOCS.glob("*.md")), *sorted(ROOT.glob("*.md"))]


@pytest.mark.parametrize("page", NAMING, ids=lambda p: p.name)
def test_every_path_that_a_page_names_exists(page):
    named = paths_in(page.read_text(encoding="utf-8"))
    assert not [path for path in named if not any((ROOT / room / path).exists() for room in ROOMS)]


def test_pages_that_name_paths_are_found():
    assert "solvers/dual/newton.py" in paths_in((DOCS / "solvers.md").read_text(encoding="utf-8"))


def test_every_file_that_a_comment_names_exists():
    missing = []
    for path in [p for ending in ("py", "cpp", "hpp") for p in ROOT.glob(f"src/**/*.{ending}")]:
        named = re.findall(r"\b(?:src|tests|benchmarks|docs)/[\w./]+\.\w+", path.read_text(encoding="utf-8"))
        missing += [(str(path.relative_to(ROOT)), name) for name in named if not (ROOT / name).exists()]
    assert not missing


def test_the_reference_lists_every_public_name():
    listed = set(re.findall(r"^   ([\w.]+)$", (DOCS / "api.md").read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert {name for name in mercer.__all__ if not inspect.ismodule(getattr(mercer, name))} <= listed
    assert set(kernels.__all__) <= listed


def pages_below(name):
    """Return the pages that stand below a page in the sidebar: in its toctrees, or in its comment <!-- pages: … -->."""
    text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    entries = [
        line.partition("<")[2].rstrip("> ") or line.strip()
        for fence in re.findall(r"^```{toctree}\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
        for line in fence.splitlines()
        if line.strip() and not line.startswith(":")
    ]
    for comment in re.findall(r"^<!-- pages: (.*?) -->$", text, flags=re.MULTILINE):
        entries += comment.split()
    return [entry for entry in entries if entry != "gallery/index"]  # the build makes the gallery


def test_every_page_is_once_in_the_sidebar():
    found, ahead = [], ["index"]
    while ahead:
        found.append(ahead.pop())
        ahead += pages_below(found[-1])
    assert sorted(found) == sorted(page.stem for page in DOCS.glob("*.md"))


def test_the_sidebar_shows_at_most_25_entries():
    assert 20 <= len(pages_below("index")) + 1 <= 25  # the gallery is one more


@pytest.mark.parametrize("name", [*(f"mercer.{n}" for n in mercer.__all__), *(f"kernels.{n}" for n in kernels.__all__)])
def test_every_public_name_has_an_example(name):
    """Whether the examples hold is what the doctests see."""
    thing = getattr({"mercer": mercer, "kernels": kernels}[name.partition(".")[0]], name.partition(".")[2])
    if inspect.isclass(thing) or inspect.isfunction(thing):
        text = inspect.getdoc(thing)
        assert re.search(r"^Examples\n--------\n(>>>|See `)", text, flags=re.MULTILINE)


def test_the_table_of_kernels():
    """Every kernel with a name, what is known of it, and whether the core evaluates it."""
    text = (DOCS / "kernels.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if re.match(r"\| `\w+` \| `[A-Z]", line)]
    known = {}
    for name, made, _, definite, fused in rows:
        kernel = kernel_named(name.strip("`"), gamma=1.0)
        assert type(kernel).__name__ == re.match(r"`(\w+)\(", made)[1]
        assert kernel.positive_definite == definite.partition(",")[0]
        assert (kernel.recipe() is not None) == (fused == "yes"), name
        parameters = re.search(r"\((.*?)\)", made)[1].split(", ")
        assert set(filter(None, parameters)) <= set(kernel.get_params())
        known[type(kernel)] = name
    with pytest.raises(ValueError, match="the names are") as refused:
        kernel_named("none")
    named = set(re.search(r"the names are (.*?)\.", str(refused.value))[1].split(", ")) - {"precomputed"}
    assert {type(kernel_named(name, gamma=1.0)) for name in named} == set(known)
