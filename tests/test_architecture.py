"""The architecture as tests: imports go one way, each idea is defined once, and no combination is forgotten."""

from __future__ import annotations

import ast
import functools
import inspect
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import mercer
import mercer.estimators
from contracts.named import named
from mercer import _core, kernels
from mercer.kernels.names import COMPOSED_KERNELS
from reference import machines

SOURCE = Path(mercer.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))

# The folders of the package. A module imports from its own folder and from those before it in this list.
ORDER = [
    "runtime",
    "samples",
    "kernels",
    "problems",
    "places",
    "certificates",
    "solvers",
    "estimators",
    "tables",
    "model_selection",
    "calibration",
    "inspection",
    "files",
    "notes",
    "cli",
]


def folder(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def lies_in(path: Path, folders: set[str]) -> bool:
    """Whether a file lies below one of these folders, or is one of these files."""
    name = path.relative_to(SOURCE).as_posix()
    return any(name == other or name.startswith(f"{other}/") for other in folders)


@functools.cache
def nodes(path: Path) -> list[ast.AST]:
    """All nodes of a file's syntax tree."""
    return list(ast.walk(ast.parse(path.read_text())))


@functools.cache
def runtime_imports(path: Path) -> set[str]:
    """Return the folders of mercer that importing a file imports.

    A function may import from above when it is called, and imports for type checkers only do not count.
    """
    functions = [n for n in nodes(path) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    for_checkers = [n for n in nodes(path) if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.dump(n.test)]
    later = {inner for node in [*functions, *for_checkers] for statement in node.body for inner in ast.walk(statement)}
    folders = set()
    for node in nodes(path):
        names = []
        if node in later:
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module] if node.module != "mercer" else [f"mercer.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        folders |= {name.split(".")[1] for name in names if name.startswith("mercer.")}
    return folders


def test_the_folders_are_the_tree() -> None:
    """The package has these folders, and no module beside them but `__init__` and `__main__`."""
    found = {entry.name for entry in SOURCE.iterdir() if entry.is_dir() and entry.name != "__pycache__"}
    assert found == set(ORDER)
    assert {path.name for path in SOURCE.glob("*.py")} == {"__init__.py", "__main__.py"}


def test_imports_go_one_way() -> None:
    rank = {name: k for k, name in enumerate(ORDER)}
    upward = [
        f"{path.relative_to(SOURCE)} imports from {other}, which comes after it"
        for path in FILES
        if folder(path) in rank
        for other in sorted(runtime_imports(path) - {"_core"})
        if rank[other] > rank[folder(path)]
    ]
    assert not upward, "\n".join(upward)


def test_the_parts_of_fitting_import_one_way() -> None:
    """families → reports → pipeline."""
    order = ["pipeline", "reports", "families"]
    for k, part in enumerate(order):
        for path in (SOURCE / "estimators" / "fitting" / part).glob("*.py"):
            above = [other for other in order[k + 1 :] if f"mercer.estimators.fitting.{other}" in path.read_text()]
            assert not above, f"{part}/{path.name} imports from {above}"


@functools.cache
def calls(path: Path) -> set[str]:
    """The names of all functions and classes that a file calls."""
    functions = [node.func for node in nodes(path) if isinstance(node, ast.Call)]
    return {f.id if isinstance(f, ast.Name) else f.attr for f in functions if isinstance(f, ast.Name | ast.Attribute)}


@pytest.mark.parametrize(
    ("called", "folders"),
    [
        ({"merge"}, {"estimators/fitting"}),
        # Kernels are bound by users too, outside of any fit, and warn of what they make of constant data; a model file
        # may come from another version of scikit-learn; a table may have columns that nobody can learn from.
        ({"warn_user"}, {"estimators", "kernels", "files", "tables", "model_selection"}),
        ({"warn"}, {"runtime/errors.py"}),
        # A place for the data; places/ itself takes rows and columns of one apart.
        # A Gaussian process is no fit, and its covariance matrix is factored where it lives; nor is a criterion.
        # An engine leaves to this machine what it does not compute itself.
        (
            {"gram_for", "rows_for", "cross_for"},
            {
                "estimators/fitting",
                "estimators/unsupervised",
                "estimators/gaussian_process",
                "places",
                "notes/theory",
                "model_selection",
            },
        ),
        ({"Certificate", "from_dict"}, {"certificates", "estimators/fitting"}),
    ],
    ids=lambda value: " ".join(sorted(value)),
)
def test_only_its_folder_calls_it(called: set[str], folders: set[str]) -> None:
    places = {str(p.relative_to(SOURCE)) for p in FILES if calls(p) & called and not lies_in(p, folders)}
    assert not places, f"{sorted(called)} is called in {sorted(places)}, but belongs to {sorted(folders)}"


def test_nothing_above_places_looks_inside_a_gram() -> None:
    """Solvers ask a Gram for numbers and for what they want to know, never for the core's samples behind them."""
    inside = {"prepared", "fused", "unit_errors", "bytes_per_row", "Samples", "core"}
    makers = {"BlockBuffer", "PreparedSamples", "KernelMatrix", "TiledField", "TiledJointField"}
    makers |= {
        "HostField",
        "HostJointField",
        "HostRows",
        "HostLinearGram",
        "HostCross",
        "CholeskyFactor",
        "HostFloat64Matrix",
    }
    for path in FILES:
        if folder(path) == "places":
            continue
        attributes = [node for node in nodes(path) if isinstance(node, ast.Attribute)]
        assert not inside & {node.attr for node in attributes}, path
        assert not makers & calls(path), path
        # The threads of the algebra between kernel values are those of `Stop`.
        owners = {ast.unparse(node.value) for node in attributes if node.attr in ("n_threads", "X")}
        places = ("gram", "rows", "linear", "cross", "field")
        assert not {owner for owner in owners if owner.endswith(places)}, path
        counted = [node.target for node in nodes(path) if isinstance(node, ast.AugAssign)]
        assert "evaluations" not in {target.attr for target in counted if isinstance(target, ast.Attribute)}, path


# Who takes the whole of K to this machine, and why. Factors, eigenvectors and products are asked of the Gram.
TAKES_K = {
    "solvers/qp.py": "a package of others solves it",
    "solvers/ranking.py": "differences of its rows are factored, of other pairs at every step",
    "solvers/homotopy.py": "rows are read one at a time, in an order that is known only then",
    "estimators/fitting/families/kernel_weights.py": "kernels are added up with weights that change",
    "solvers/dual/certified.py": "it is one block of a small problem",
    "solvers/dual/decomposition.py": "it is one block of a small problem",
    "estimators/unsupervised/points.py": "it is K of the landmarks",
}


def test_the_whole_of_k_is_decomposed_where_it_lives() -> None:
    above = [path for path in FILES if folder(path) != "places"]
    called = {path: [n.func for n in nodes(path) if isinstance(n, ast.Call)] for path in above}
    takes = {
        path.relative_to(SOURCE).as_posix()
        for path, functions in called.items()
        if any(isinstance(f, ast.Attribute) and f.attr == "full" and ast.unparse(f.value) != "np" for f in functions)
    }
    assert takes == TAKES_K.keys()
    factors = {path.name for path in above if re.search(r"_core\.cholesky\b", path.read_text())}
    assert factors == {"ridge_factor.py"}  # of blocks, features and landmarks


# Folders that work on host data alone: files, tables, pictures, features and what is explained in them.
HOST_FOLDERS = {"files", "tables", "cli", "notes/toy", "notes/teaching", "notes/datasets.py"}
HOST_FOLDERS |= {f"inspection/{name}" for name in ("displays", "features", "explain")}
# Files that bring samples here first (`host`), or handle what users gave before it is placed.
HOST_FILES = {
    "solvers/pegasos/descent.py",  # its steps take a row at a time
    "inspection/compression/distance.py",  # of a trained machine's vectors, which live here
    "inspection/rkhs.py",
    "estimators/unsupervised/mmd.py",
    "estimators/unsupervised/spectral.py",  # affinities are a graph of the user's
    "estimators/unsupervised/kernel_cca.py",
    "estimators/unsupervised/kernel_kmeans.py",
    "estimators/fitting/pipeline/warm_start.py",
    "estimators/fitting/pipeline/state.py",  # what a model file holds
    "estimators/fitting/reports/dual_margins.py",
    "problems/margins.py",
    "places/chunked/verbs.py",  # a worker's own rows, in its memory
    "places/chunked/stored/files.py",
    "places/chunked/dask/cluster.py",
}


def test_nothing_above_samples_knows_where_they_live() -> None:
    """Samples are asked: no folder that computes reads the parts of an array or a CSR matrix of samples."""
    for path in FILES:
        name = str(path.relative_to(SOURCE))
        if lies_in(path, HOST_FOLDERS | HOST_FILES | {"samples", "kernels", "places"}):
            continue
        for node in nodes(path):
            if isinstance(node, ast.Attribute) and re.search(r"\b(X|Z|samples|vectors)$", ast.unparse(node.value)):
                assert node.attr not in ("indptr", "nnz", "toarray", "tocsr", "flags"), f"{name}:{node.lineno}"
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "sp.issparse"):
                text = ast.unparse(node)
                assert not re.match(r"isinstance\((X|Z|samples|vectors|\w+\.X|\w+\.vectors), np\.", text), (
                    f"{name}: {text}"
                )
                assert not text.startswith("sp.issparse"), f"{name}: {text}"


def test_engines_are_not_named_above_them() -> None:
    """No folder asks which engine it is on: what it wants to know, samples and Grams answer."""
    for path in FILES:
        if not lies_in(path, {"places/torch", "places/chunked"}):
            names = {alias.name for node in nodes(path) if isinstance(node, ast.Import) for alias in node.names}
            names |= {node.module or "" for node in nodes(path) if isinstance(node, ast.ImportFrom)}
            assert not {name for name in names if name.partition(".")[0] in ("torch", "triton", "dask", "distributed")}
            assert not re.search(r"engine\.device ==|device == \"c", path.read_text()) or path.name == "engine.py", path


def test_torch_is_imported_by_its_engine_alone() -> None:
    """mercer is imported without it, and runs without it."""
    imports = re.compile(r"^\s*(import|from) (torch|triton)\b|(import_module|require)\(\"(torch|triton)", re.MULTILINE)
    users = {str(path.relative_to(SOURCE)) for path in FILES if imports.search(path.read_text())}
    assert users - {"runtime/versions.py"} == {"places/torch/fused.py", "places/torch/numbers.py"}
    code = "import sys, mercer; mercer.SVC().fit([[0.0], [1.0]], [0, 1]); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_dask_is_imported_by_its_engine_alone() -> None:
    imports = re.compile(r"^\s*(import|from) (dask|distributed)\b|require\(\"(dask|distributed)", re.MULTILINE)
    users = {str(path.relative_to(SOURCE)) for path in FILES if imports.search(path.read_text())}
    assert users == {"places/chunked/dask/cluster.py", "places/chunked/dask/engine.py"}


def test_a_certificate_asks_a_gram_for_proofs_alone() -> None:
    """What certificates/ ask of K is `BoundedProducts`, and no type is ignored for it."""
    for path in (SOURCE / "certificates").glob("*.py"):
        text = path.read_text()
        assert "import Gram\n" not in text, path
        assert "gram: Any" not in text, path


def test_certificates_are_built_in_their_folder() -> None:
    places = {str(p.relative_to(SOURCE)) for p in FILES if "Certificate" in calls(p) and folder(p) != "certificates"}
    assert not places


def test_no_file_is_long() -> None:
    """A file may be this long if it is one idea: cutting it further would be for the ruler."""
    lengths = {str(path.relative_to(SOURCE)): len(path.read_text().splitlines()) for path in FILES}
    assert not {name: length for name, length in lengths.items() if length > 500}


def test_private_names_stay_in_their_file() -> None:
    """A name of mercer's with an underscore in front is used where it is defined, or on `self`."""
    own = {path: own_names(path) for path in FILES}
    everywhere = set().union(*own.values()) - HOOKS
    found = []
    for path in FILES:
        foreign = everywhere - own[path]
        for node in nodes(path):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mercer"):
                found += [(path, a.name) for a in node.names if a.name.startswith("_") and a.name != "_core"]
            if isinstance(node, ast.Attribute) and node.attr in foreign:
                itself = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
                if not itself and "super" not in ast.dump(node.value):
                    found.append((path, node.attr))
    assert not found, "\n".join(f"{path.relative_to(SOURCE)}: {name}" for path, name in found)


# What other files may ask of every machine: the steps of the pipeline, its raw outputs, and how many there are.
HOOKS = {"_check_parameters", "_kernel", "_max_steps", "_merges", "_read", "_weigh", "_constant_feature"}
HOOKS |= {"_decision", "_function_per_class", "_tasks", "_record_end"}
# And what its f is: a multiple of the expansion's output, less k(x, x), under this name.
HOOKS |= {"_DECISION_FACTOR", "_SUBTRACTS_DIAGONAL", "_DECISION_NAME"}
# And what a composite kernel asks of its parts.
HOOKS |= {"_diagonal_gradient", "_diagonal_slopes"}
# And how a kernel checks its parameters, which `as_kernel` does before there are samples.
HOOKS |= {"_check"}
# And names of scikit-learn's: how many columns a transformer makes, and the parameters of a class.
HOOKS |= {"_n_features_out", "_get_param_names"}


def own_names(path: Path) -> set[str]:
    """Every private name that a file defines: functions, methods, fields, and what it sets on objects."""
    names = {n.name for n in nodes(path) if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    targets = [t for n in nodes(path) if isinstance(n, ast.Assign) for t in n.targets]
    targets += [n.target for n in nodes(path) if isinstance(n, ast.AnnAssign | ast.AugAssign)]
    targets += [e for t in targets if isinstance(t, ast.Tuple) for e in t.elts]
    names |= {t.attr for t in targets if isinstance(t, ast.Attribute)}
    names |= {t.id for t in targets if isinstance(t, ast.Name)}
    return {name for name in names if name.startswith("_") and not name.endswith("_")}


def test_estimators_define_public_names() -> None:
    """Every file of estimators/ holds something that the documentation lists."""
    listed = (Path(__file__).parents[1] / "docs/api.md").read_text(encoding="utf-8")
    for path in sorted((SOURCE / "estimators").glob("*.py")):
        tree = ast.parse(path.read_text())
        public = {
            n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef) and not n.name.startswith("_")
        }
        if path.name != "__init__.py":
            assert any(re.search(rf"\b{name}\b", listed) for name in public), f"{path.name} defines {public}"


@pytest.mark.parametrize("name", ["certify", "certify_dual", "decompose", "solve_certified"])
def test_each_idea_is_defined_once(name: str) -> None:
    places = [p for p in FILES if any(isinstance(n, ast.FunctionDef) and n.name == name for n in nodes(p))]
    assert len(places) == 1, f"{name} is defined in {places}"


def test_the_inner_solver_is_called_from_one_loop() -> None:
    callers = [p.name for p in FILES if "_core.smo(" in p.read_text()]
    assert callers == ["decomposition.py"]


def test_no_kernel_is_named_outside_its_room() -> None:
    classes = {n for n, c in vars(kernels).items() if inspect.isclass(c) and issubclass(c, kernels.Kernel)} - {"Kernel"}
    classes |= COMPOSED_KERNELS.keys()
    assert len(classes) > 30
    for path in FILES:
        if folder(path) == "kernels":
            continue
        used = {n.id for n in nodes(path) if isinstance(n, ast.Name)}
        imported = {a.name for n in nodes(path) if isinstance(n, ast.ImportFrom) for a in n.names}
        assert not classes & (used | imported), f"{path} names {classes & (used | imported)}"


def test_at_most_five_files_lie_between_fit_and_the_core(monkeypatch: pytest.MonkeyPatch) -> None:
    depths = []

    def watched(function):  # type: ignore[no-untyped-def]
        def call(*args):  # type: ignore[no-untyped-def]
            frame, files = sys._getframe(1), set()
            while frame is not None:
                if frame.f_code.co_filename.startswith(str(SOURCE)):
                    files.add(frame.f_code.co_filename)
                frame = frame.f_back
            depths.append(files)
            return function(*args)

        return call

    for name, function in vars(_core).copy().items():
        if callable(function) and not name.startswith("_"):
            monkeypatch.setattr(_core, name, watched(function))
    X, y = problem()
    mercer.SVC().fit(X, y)
    assert depths
    assert max(map(len, depths)) <= 5, max(depths, key=len)


# --- the matrix: every estimator × kernel kind × data kind ----------------------------------------------------------

REFERENCES = {str(reference): reference for reference in machines.REFERENCES}


def problem() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    X = rng.normal(size=(40, 3)) * (rng.random((40, 3)) < 0.7)
    return X, (X @ [1.0, -1.0, 0.5] + 0.4 * rng.normal(size=40) > 0).astype(int)


def target_of(kind: str, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """±1, or a real target that is no function the kernels could fit exactly."""
    return np.where(y == 1, 1.0, -1.0) if kind == "y" else np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * y


@pytest.mark.parametrize("name", mercer.estimators.__all__)
def test_every_estimator_is_in_the_matrix(name: str) -> None:
    assert any(reference.estimator is getattr(mercer, name) for reference in machines.REFERENCES), (
        f"{name} has no entry in tests/reference/machines.py, so nothing checks the problem it solves"
    )


def by_hand(X, Z):  # type: ignore[no-untyped-def]
    X, Z = (A.toarray() if sp.issparse(A) else A for A in (X, Z))
    return np.exp(-0.3 * ((X[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2))


KINDS = {
    "recipe": lambda: kernels.Gaussian(gamma=0.3),
    "composite": lambda: 0.5 * kernels.Gaussian(gamma=0.5) + kernels.Linear() * kernels.Laplacian(gamma=0.2),
    "callable": lambda: by_hand,
    "precomputed": lambda: "precomputed",
}


CELLS = [
    (name, kind) for name, reference in REFERENCES.items() for kind in (KINDS if reference.takes_kernels else ["rows"])
]


@pytest.mark.parametrize(("name", "kind"), CELLS)
def test_every_combination_reaches_the_reference_value(name: str, kind: str) -> None:
    for data in ("dense", "csr", "float32", "weighted"):
        with named(data):
            check_reference_value(name, kind, data)


def check_reference_value(name: str, kind: str, data: str) -> None:
    reference = REFERENCES[name]
    X, y = problem()
    X = X.astype(np.float32).astype(np.float64)
    target = target_of(reference.target, X, y)
    options = {} if kind == "rows" else {"kernel": KINDS[kind]()}
    K = X @ X.T if kind == "rows" else by_hand(X, X) if kind in ("callable", "precomputed") else options["kernel"](X)
    given = X if kind != "precomputed" else K
    weight = np.ones(len(y))
    if data == "float32":
        given = given.astype(np.float32)
        K = K.astype(np.float32).astype(np.float64) if kind == "precomputed" else K
    elif data == "csr" and kind != "precomputed":
        given = sp.csr_array(given)
    elif data == "weighted":
        weight = np.arange(len(y)) % 4 * 0.5
    model = reference.model(**options)
    model.fit(given, target, sample_weight=None if data != "weighted" else weight)
    used = weight > 0
    value = reference.value(K[np.ix_(used, used)], target[used], weight[used])
    assert reference.right(model.certificate_, value), (model.certificate_, value)
    assert model.converged_
