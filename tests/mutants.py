"""Seeded faults: each must be caught by the tests beside it. `python tests/mutants.py [words of a name]`.

A mutant is a text of the source and what a slip would have made of it. The source is copied to a temporary folder, the
slip is made there, and the tests are run against the copy: they must fail. A text that is no longer found is an error,
so that this list follows the code. Mutants of the core are built with CMake and Ninja, where there are both. Not part
of the default suite: forty runs of pytest, and eight of the compiler, take about ten minutes.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CLAIMS = "tests/promises/test_false_claims.py"


@dataclass(frozen=True)
class Mutant:
    """A slip in one file, and the tests that should notice."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


def m(name: str, file: str, old: str, new: str, *tests: str) -> Mutant:
    return Mutant(name, f"src/{file}", old, new, tests)


CERTIFICATES = [
    m(
        "the curved loss loses its half",
        "mercer/certificates/dual.py",
        "losses[curved] -= 0.5 * d[curved]",
        "losses[curved] -= d[curved]",
        "tests/certificates/test_dual.py",
        "tests/solvers/test_solver_contract.py",
    ),
    m(
        "the ridge is left out of the dual value",
        "mercer/certificates/dual.py",
        " - 0.5 * inner(problem.d * beta, beta)",
        "",
        "tests/certificates/test_dual.py",
        "tests/estimators/test_machines_agree.py",
    ),
    m(
        "the gap forgets the rounding of f",
        "mercer/certificates/dual.py",
        "ends = [gap_terms(problem, beta, residual + error), gap_terms(problem, beta, residual - error)]",
        "ends = [gap_terms(problem, beta, residual), gap_terms(problem, beta, residual)]",
        CLAIMS,
    ),
    m(
        "the gradient's error forgets the error of u",
        "mercer/certificates/dual.py",
        "else e[problem.row] + 2 * _EPS * sizes",
        "else 2 * _EPS * sizes",
        CLAIMS,
    ),
    m(
        "the equality is not looked at",
        "mercer/certificates/dual.py",
        '"dual feasibility: equality": float(np.abs(_excess_sums(problem, beta)).max(initial=0.0)),',
        '"dual feasibility: equality": 0.0,',
        "tests/certificates/test_dual.py",
        "tests/solvers/test_solver_contract.py",
    ),
    m(
        "a joint machine's class sums are not looked at",
        "mercer/certificates/joint.py",
        "_largest(beta.sum(axis=0)) * problem.balanced",
        "_largest(beta.sum(axis=0)) * 0",
        "tests/certificates/test_joint.py",
        CLAIMS,
    ),
    m(
        "w may differ from the rows' combination for nothing",
        "mercer/certificates/linear.py",
        "0.5 * distance + shares",
        "shares",
        "tests/certificates/test_linear.py",
    ),
    m(
        "a pair's dual value forgets its ridge",
        "mercer/certificates/pairs.py",
        " - 0.5 * curved",
        "",
        "tests/estimators/test_machines_agree.py",
        CLAIMS,
    ),
    m(
        "the gap of any loss is halved",
        "mercer/certificates/representer.py",
        "(4 * problem.lam)",
        "(8 * problem.lam)",
        "tests/solvers/test_representer.py",
        "tests/estimators/test_kernel_machine.py",
        CLAIMS,
    ),
    m(
        "the distance of two points counts for a quarter",
        "mercer/certificates/descent.py",
        "0.5 * max(space.square(w[k] - v",
        "0.25 * max(space.square(w[k] - v",
        "tests/solvers/test_pegasos.py",
        "tests/estimators/test_pegasos.py",
        CLAIMS,
    ),
]

SOLVERS = [
    m(
        "a return to the solver asks for ten times the tolerance",
        "mercer/solvers/refine.py",
        "if self.asked.met(certificate):",
        "if self.asked.met(certificate) or certificate.violation <= 10 * tol:",
        "tests/solvers/test_refine.py",
        "tests/solvers/test_solver_contract.py",
    ),
    m(
        "a chunk forgets what the others add to u",
        "mercer/solvers/dual/chunking.py",
        "u[rows] = fixed + solution.u",
        "u[rows] = solution.u",
        "tests/solvers/dual/test_chunking.py",
    ),
    m(
        "a chunk's sums are zero",
        "mercer/solvers/dual/chunking.py",
        "        totals=totals,\n    )",
        "        totals=0.0 * totals,\n    )",
        "tests/solvers/dual/test_chunking.py",
    ),
    m(
        "a Newton step ignores the box",
        "mercer/solvers/dual/newton.py",
        "beta[F] += min(step, limit) * delta",
        "beta[F] += step * delta",
        "tests/solvers/dual/test_decomposition.py",
        "tests/solvers/test_solver_contract.py",
    ),
    m(
        "hulls are apart by the wrong bound",
        "mercer/solvers/dual/hulls.py",
        "return self.below > _ROUNDING_SHARE * self.unit",
        "return self.above > _ROUNDING_SHARE * self.unit",
        "tests/estimators/test_hard_margin.py",
    ),
    m(
        "an interior point is not put onto its bounds",
        "mercer/solvers/dual/qp.py",
        "beta[top] = problem.upper[top]",
        "pass",
        "tests/solvers/dual/test_qp.py",
    ),
    m(
        "leave-one-out forgets the weight of a row",
        "mercer/solvers/least_squares/eigen.py",
        "part = np.minimum(weight, 1.0) / problem.total[member]",
        "part = 1.0 / problem.total[member]",
        "tests/estimators/test_rls_cv.py",
    ),
    m(
        "of equally good λ the smallest",
        "mercer/solvers/least_squares/path.py",
        "np.flatnonzero(scores == scores.min())[-1]",
        "np.flatnonzero(scores == scores.min())[0]",
        "tests/estimators/test_rls_cv.py",
    ),
    m(
        "the mean of the iterates is one step too long",
        "mercer/solvers/pegasos/iterates.py",
        "(lam * (self.t - suffix_start(self.t)))",
        "(lam * (self.t - suffix_start(self.t) + 1))",
        "tests/solvers/test_pegasos.py",
        "tests/estimators/test_pegasos.py",
    ),
    m(
        "a regularised bias is priced once",
        "mercer/solvers/linear/newton.py",
        "b / problem.bias**2",
        "b / problem.bias",
        "tests/estimators/test_linear.py",
        "tests/solvers/linear",
    ),
]

KERNELS = [
    m(
        "a squared distance is summed with one product only",
        "mercer/kernels/distances.py",
        "strip *= -2.0",
        "strip *= -1.0",
        "tests/kernels/test_kernel_values.py",
    ),
    m(
        "distances that cancelled are kept",
        "mercer/kernels/distances.py",
        "_CANCELLED_SHARE = 1e-4",
        "_CANCELLED_SHARE = 0.0",
        "tests/kernels/test_gaussian.py",
        "tests/kernels/test_kernel_invariants.py",
        CLAIMS,
    ),
    m(
        "σ without the 2",
        "mercer/kernels/radial.py",
        "min(0.5 / float(length)",
        "min(1.0 / float(length)",
        "tests/kernels/test_kernel_values.py",
        "tests/kernels/test_gaussian.py",
    ),
    m(
        "Matérn 5/2 with a wrong coefficient",
        "mercer/kernels/radial.py",
        "1.0 + t + t**2 / 3.0",
        "1.0 + t + t**2 / 2.0",
        "tests/kernels/test_kernel_values.py",
    ),
    m(
        "cosine divides by the square of the length",
        "mercer/kernels/matrices.py",
        'X /= _or_one(np.sqrt(np.einsum("ij,ij->i", X, X)))[:, None]',
        'X /= _or_one(np.einsum("ij,ij->i", X, X))[:, None]',
        "tests/kernels/test_kernel_values.py",
    ),
    m(
        "an odd power loses a factor",
        "mercer/kernels/endings.py",
        "            if n % 2:\n                result *= t",
        "            if n % 2 == 0:\n                result *= t",
        "tests/kernels/test_kernel_values.py",
        "tests/kernels/test_lowering.py",
    ),
    m(
        "kept rows are stale after a shrink",
        "mercer/gram/column_cache.py",
        "self._columns[row] = column[positions]",
        "self._columns[row] = column[: len(positions)]",
        "tests/gram",
    ),
    m(
        "a kept row is found under its neighbour's number",
        "mercer/gram/kept_rows.py",
        "self._next, np.arange(len(sources))",
        "self._next, np.arange(len(sources))[::-1]",
        "tests/gram/test_kept_rows.py",
    ),
]

FITTING = [
    m(
        "the weights of copies are not summed",
        "mercer/data/merging.py",
        "total = sums_by(member, weight[rows], len(first))",
        "total = weight[first]",
        "tests/promises/test_properties.py",
        "tests/promises/test_same_results.py",
    ),
    m(
        "rows of weight zero count",
        "mercer/data/merging.py",
        "rows = np.flatnonzero(weight > 0)",
        "rows = np.flatnonzero(weight >= 0)",
        "tests/promises/test_properties.py",
    ),
    m(
        "a bounded coefficient is not put onto each copy's bound",
        "mercer/fitting/coefficients.py",
        "own.data = np.where(bounded, own_bound, own.data * merged.share[row])",
        "own.data = own.data.copy()",
        "tests/promises/test_properties.py",
        CLAIMS,
    ),
    m(
        "a training set is not copied",
        "mercer/fitting/warm_start.py",
        "    return freeze(X.copy())",
        "    return freeze(X)",
        "tests/fitting/test_warm_start.py",
        "tests/fitting/test_ownership.py",
    ),
    m(
        "a warm start forgets the new C",
        "mercer/fitting/warm_start.py",
        "beta *= factor[0]",
        "pass",
        "tests/fitting/test_warm_start.py",
    ),
    m(
        "coef_ forgets the kernel's factor",
        "mercer/fitting/coefficients.py",
        "np.ascontiguousarray(recipe.scale * weight_vectors(",
        "np.ascontiguousarray(weight_vectors(",
        CLAIMS,
    ),
]

CORE = [
    m(
        "the core's loss loses its half",
        "core/solve/findings.cpp",
        "const double loss = r * best - 0.5 * d * best * best;",
        "const double loss = r * best - d * best * best;",
        "tests/certificates",
        "tests/estimators/test_linear.py",
    ),
    m(
        "the core's share forgets the rounding of f",
        "core/solve/findings.cpp",
        "below = loss_at(r - error, d, lower, upper, beta), above = loss_at(r + error, d, lower, upper, beta)",
        "below = loss_at(r, d, lower, upper, beta), above = below",
        CLAIMS,
    ),
    m(
        "a bound is open from the wrong side",
        "core/solve/findings.cpp",
        "if (low) to->bottom = std::min(to->bottom, residual - error);",
        "if (up) to->bottom = std::min(to->bottom, residual - error);",
        "tests/certificates",
        "tests/estimators/test_linear.py",
    ),
    m(
        "the bias of a pair is a sum",
        "core/solve/findings.cpp",
        "return sum / static_cast<double>(free);",
        "return sum;",
        "tests/estimators/test_machines_agree.py",
        CLAIMS,
    ),
    m(
        "a pair's curvature counts the product once",
        "core/solve/smo.cpp",
        "curvature(kii + kjj - 2.0 * kij",
        "curvature(kii + kjj - kij",
        "tests/core/test_smo.py",
    ),
    m(
        "a pair may leave its lower bound",
        "core/solve/smo.cpp",
        "std::max(old_j - step, in_.lower[j])",
        "old_j - step",
        "tests/core/test_smo.py",
        "tests/solvers/dual/test_decomposition.py",
    ),
    m(
        "a strip is not cleared before it is used again",
        "core/gram/sparse_blocks.cpp",
        "write(rows, m, [](T) { return T{0}; });",
        "write(rows, m > 0 ? m - 1 : 0, [](T) { return T{0}; });",
        "tests/gram/test_gram_and_field.py",
    ),
    m(
        "a sparse row's norm is its neighbour's",
        "core/gram/sparse_blocks.cpp",
        "norms_[r] = samples_.norms[rows[r]];",
        "norms_[r] = samples_.norms[rows[0]];",
        "tests/gram/test_gram_and_field.py",
    ),
]
MUTANTS = [*CERTIFICATES, *SOLVERS, *KERNELS, *FITTING, *CORE]

# Runs the tests against PYTHONPATH alone: an editable install would otherwise be imported instead.
_RUN = """
import sys
sys.meta_path[:] = [f for f in sys.meta_path if "ScikitBuild" not in type(f).__name__]
import mercer, pytest
if not mercer.__file__.startswith(sys.argv[1]):
    sys.exit(f"mercer was imported from {mercer.__file__}")
options = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider", "--no-header", "--tb=no", "--timeout=100"]
sys.exit(pytest.main([*options, *sys.argv[2:]]))
"""


def tests_fail(folder: Path, tests: tuple[str, ...]) -> bool:
    """Whether some test fails against the copy; an error of another kind is raised."""
    environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "HYPOTHESIS_PROFILE": "default"}
    command = [sys.executable, "-c", _RUN, str(folder), *tests]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1, 2):  # passed, failed, or could not even be collected
        raise RuntimeError(f"pytest ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    if done.returncode:
        print(
            "".join(f"          {line}\n" for line in done.stdout.splitlines() if "FAILED" in line), end="", flush=True
        )
    return done.returncode != 0


def applied(folder: Path, mutant: Mutant) -> str:
    """Make the slip in the copy; returns the text as it was."""
    path = folder / mutant.file
    text = path.read_text()
    if text.count(mutant.old) < 1:
        raise LookupError(f"the file no longer holds {mutant.old!r}")
    path.write_text(text.replace(mutant.old, mutant.new, 1))
    return text


def core_of(source: Path) -> Path:
    """The compiled core beside a source tree, or the installed one."""
    found = sorted((source / "mercer").glob("_core*.so")) + sorted((source / "mercer").glob("_core*.pyd"))
    if found:
        return found[0]
    spec = importlib.util.find_spec("mercer._core")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin)


def build(folder: Path) -> None:
    """Compile the copy's core into its package."""
    nanobind = subprocess.run(
        [sys.executable, "-m", "nanobind", "--cmake_dir"], capture_output=True, text=True, check=True
    ).stdout.strip()
    work = folder / "build"
    if not work.exists():
        options = [f"-DPython_EXECUTABLE={sys.executable}", f"-Dnanobind_DIR={nanobind}", "-DCMAKE_BUILD_TYPE=Release"]
        subprocess.run(["cmake", "-S", folder, "-B", work, "-G", "Ninja", *options], check=True, capture_output=True)
    subprocess.run(["ninja", "-C", work], check=True, capture_output=True)
    for made in [*work.glob("_core*.so"), *work.glob("_core*.pyd")]:
        shutil.copy2(made, folder / "src" / "mercer")


def main(words: list[str]) -> int:
    """Try every mutant whose name holds one of the words; the number of those that survived or could not be made."""
    chosen = [mutant for mutant in MUTANTS if not words or any(word in mutant.name for word in words)]
    tools = shutil.which("cmake") and shutil.which("ninja") and importlib.util.find_spec("nanobind")
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="mercer-mutants-") as temporary:
        folder = Path(temporary)
        source = Path(os.environ.get("MERCER_MUTANTS_SOURCE", ROOT / "src"))
        shutil.copytree(source, folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
        for extra in ("CMakeLists.txt", "pyproject.toml", "README.md"):
            shutil.copy2(source.parent / extra if (source.parent / extra).exists() else ROOT / extra, folder)
        core = core_of(source)
        shutil.copy2(core, folder / "src" / "mercer" / core.name)
        kept = (folder / "src" / "mercer" / core.name).read_bytes()
        failing: dict[str, bool] = {}  # without any mutant
        for mutant in chosen:
            compiled = mutant.file.startswith("src/core/")
            if compiled and not tools:
                print(f"left out  {mutant.name}: needs cmake, ninja and nanobind", flush=True)
                continue
            for test in mutant.tests:
                if test not in failing:
                    failing[test] = tests_fail(folder, (test,))
            try:
                if any(failing[test] for test in mutant.tests):
                    raise LookupError("its tests fail without it")
                before = applied(folder, mutant)
                if compiled:
                    build(folder)
                verdict = "caught" if tests_fail(folder, mutant.tests) else "SURVIVED"
                (folder / mutant.file).write_text(before)
            except LookupError as error:
                verdict = f"UNTRIED ({error})"
            if compiled:
                (folder / "src" / "mercer" / core.name).write_bytes(kept)
            wrong += verdict != "caught"
            print(f"{verdict:9} {mutant.file}: {mutant.name}", flush=True)
    print(f"{len(chosen)} mutants, {wrong} not caught")
    return wrong


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
