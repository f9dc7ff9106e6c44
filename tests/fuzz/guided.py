"""Coverage-guided fuzzing of the readers that are written in Python; `tests/fuzz/run` builds the core and calls this.

    python tests/fuzz/guided.py TARGET SECONDS [--seed N] [--core _core.so] [--corpus FOLDER] [--findings FOLDER]

A mutant is kept as a parent when it reaches a pair of successive lines in `mercer.files` that nothing has reached
before. Whatever the bytes are, a reader raises ModelFormatError, or what it returns is whole: it predicts, or
refuses to with ValueError, and written and read again it predicts the same. Reading takes memory in proportion to the
file's size, and no more than seconds.
"""

from __future__ import annotations

import argparse
import atexit
import hashlib
import importlib.util
import random
import shutil
import sys
import time
import traceback
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from reference.mutations import Mutate, mutate_bytes, mutate_container


class Arcs:
    """Pairs of successive lines in the package's readers, and about how often, seen so far."""

    def __init__(self, *folders: str) -> None:
        self.seen: set[tuple[str, int, int, int]] = set()
        self._folders = folders
        self._counts: dict[tuple[str, int, int], int] = {}

    def run(self, check: Callable[[bytes], None], content: bytes) -> bool:
        """Whether ``check(content)`` went where nothing went before, or went there twice as often."""
        self._counts = {}
        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            check(content)
        finally:
            sys.settrace(before)
        found = {(*arc, count.bit_length()) for arc, count in self._counts.items()}
        new = not found <= self.seen
        self.seen |= found
        return new

    def _enter(self, frame: Any, event: str, _: Any) -> Any:
        name = frame.f_code.co_filename
        if not name.startswith(self._folders):
            return None
        last = 0
        counts = self._counts

        def step(frame: Any, event: str, _: Any) -> Any:
            nonlocal last
            if event == "line":
                arc = (name, last, frame.f_lineno)
                last = frame.f_lineno
                counts[arc] = counts.get(arc, 0) + 1
            return step

        return step


@contextmanager
def frugal(size: int) -> Iterator[None]:
    """Whatever is read from a file of this size, or refused, takes the memory that SECURITY.md states, and seconds."""
    begun = time.process_time()
    tracemalloc.start()
    try:
        yield
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        if peak > 2**26 + 32 * size:
            raise AssertionError(f"a file of {size} bytes took {peak} bytes of memory")
        if time.process_time() - begun > 10:
            raise AssertionError(f"a file of {size} bytes took {time.process_time() - begun:.0f} seconds to read")


# --- the targets -----------------------------------------------------------------------------------------------------


def seeds(target: str) -> list[bytes]:
    """Small files of every kind."""
    import tempfile

    import numpy as np
    import scipy.sparse as sp
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
    from sklearn.decomposition import PCA
    from sklearn.ensemble import VotingClassifier
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import FeatureUnion, make_pipeline
    from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, PolynomialFeatures, StandardScaler

    import mercer
    from mercer import kernels

    if target == "libsvm":
        head = "rho 0.25\nlabel 1 -1\nnr_sv 1 2\nSV\n"
        body = "1 1:0.5 3:1 \n-0.25 2:1 \n-0.75 2:-2.5 \n"
        regression = "nr_class 2\ntotal_sv 2\nrho -0.5\n"
        return [
            text.encode()
            for text in (
                f"svm_type c_svc\nkernel_type rbf\ngamma 0.5\nnr_class 2\ntotal_sv 3\n{head}{body}",
                "svm_type nu_svc\nkernel_type polynomial\ndegree 2\ngamma 1\ncoef0 1\nnr_class 2\ntotal_sv 3\n"
                f"{head}{body}",
                "svm_type c_svc\nkernel_type linear\nnr_class 3\ntotal_sv 3\nrho -1.5 -2 -2.5\nlabel 1 2 3\n"
                "probA -1 -2 -3\nprobB 0 0.5 1\nnr_sv 1 1 1\nSV\n1 0.5 1:1 \n-1 1 1:2 \n-0.5 -1 1:3 \n",
                f"svm_type epsilon_svr\nkernel_type sigmoid\ngamma 0.1\ncoef0 0\n{regression}probA 0.5\n"
                "SV\n1 1:1 \n-1 \n",
                f"svm_type nu_svr\nkernel_type precomputed\n{regression}SV\n1 0:1 \n-1 0:3 \n",
                "svm_type one_class\nkernel_type linear\nnr_class 2\ntotal_sv 1\nrho 0.5\nprob_density_marks "
                "-1 -0.5 -0.25 -0.1 0 0.1 0.2 0.3 0.4 0.5\nSV\n1 1:1 2:0.5 \n",
                "svm_type c_svc\nkernel_type linear\nnr_class 1\ntotal_sv 0\nrho\nlabel 1\nnr_sv 0\nSV\n",
            )
        ]
    if target == "liblinear":
        return [
            text.encode()
            for text in (
                "solver_type L2R_L2LOSS_SVC_DUAL\nnr_class 2\nlabel 1 -1\nnr_feature 2\nbias 0.5\nw\n0.25 \n-1 \n2 \n",
                "solver_type MCSVM_CS\nnr_class 2\nlabel 3 5\nnr_feature 1\nbias -1\nw\n0.25 1 \n",
                "solver_type L2R_LR\nnr_class 3\nlabel 3 5 -7\nnr_feature 1\nbias 1\nw\n0.25 1 0 \n1 2 3 \n",
                "solver_type L2R_L1LOSS_SVR_DUAL\nnr_class 2\nnr_feature 2\nbias -1\nw\n0.25 \n-1 \n",
                "solver_type ONECLASS_SVM\nnr_class 2\nnr_feature 2\nbias -1\nrho 0.5\nw\n0.25 \n-1 \n",
            )
        ]
    if target == "svmlight":
        names = ("-d", "-g", "-s", "-r", "-u")
        return [
            "\n".join(
                [
                    "SVM-light Version V6.02",
                    f"{kind} # kernel type",
                    *(
                        f"{v}# kernel parameter {n}"
                        for v, n in zip(("3 ", "0.5 ", "1 ", "1 ", "x"), names, strict=True)
                    ),
                    "3 # highest feature index",
                    "5 # number of training documents",
                    "3 # number of support vectors plus 1",
                    "0.25 # threshold b, each following line is a SV (starting with alpha*y)",
                    "-0.5 1:1 #",
                    "0.75 2:2 3:-1 # a comment",
                    "",
                ]
            ).encode()
            for kind in range(4)
        ]
    X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.5], [2.0, 2.0], [0.0, 3.0], [3.0, 0.5]])
    y, names, t = np.array([0, 1, 1, 2, 0, 2]), np.array(["a", "b", "b", "a", "a", "b"]), X[:, 0] - X[:, 1]
    models = [
        mercer.SVC().fit(X, names),
        mercer.SVC(kernel="linear", multiclass="ovr").fit(sp.csr_array(X), y),
        mercer.SVC(kernel=2.0 * kernels.Gaussian(gamma=0.3) + kernels.Linear(), class_weight={0: 2.0}).fit(X, y > 0),
        mercer.SVC(kernel="precomputed").fit(X @ X.T, y),
        mercer.SVC(kernel=kernels.Spectrum()).fit(["abab", "abba", "cdcd", "dcdc"], [0, 0, 1, 1]),
        mercer.SVC(multiclass="crammer-singer").fit(X, y),
        mercer.NuSVC(nu=0.5).fit(X, y),
        mercer.SVR(loss="huber").fit(X, t),
        mercer.NuSVR().fit(X, t),
        mercer.QuantileSVR([0.1, 0.9]).fit(X, t),
        mercer.OneClassSVM().fit(X),
        mercer.SVDD().fit(X),
        mercer.LinearSVC().fit(X, y),
        mercer.LinearSVR().fit(X, t),
        mercer.PegasosSVC(random_state=0).fit(X, y),
        mercer.RLSRegressor().fit(X, X),
        mercer.RLSRegressor(kernel="linear").partial_fit(X, t),
        mercer.RLSClassifier().fit(X, y),
        mercer.RLSRegressorCV().fit(X, t),
        mercer.NystromRLS(random_state=0).fit(X, t),
        mercer.KernelMachineClassifier().fit(X, y),
        make_pipeline(StandardScaler(), mercer.SVC()).fit(X, y),
        make_pipeline(SimpleImputer(add_indicator=True), PolynomialFeatures(2), PCA(2), mercer.SVC()).fit(X, y),
        make_pipeline(
            ColumnTransformer([("levels", OneHotEncoder(handle_unknown="ignore"), [0])], remainder="passthrough"),
            FeatureUnion([("bins", KBinsDiscretizer(2, strategy="uniform")), ("same", "passthrough")]),
            mercer.LinearSVC(),
        ).fit(X, y),
        CalibratedClassifierCV(mercer.SVC(), cv=2).fit(X, y),
        VotingClassifier([("svc", mercer.SVC()), ("rls", mercer.RLSClassifier())]).fit(X, names),
        TransformedTargetRegressor(mercer.SVR(), func=np.expm1, inverse_func=np.log1p).fit(X, t / 10),
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.mercer"
        out = []
        for model in models:
            mercer.save(model, path)
            out.append(path.read_bytes())
    return out


def text_check(target: str) -> Callable[[bytes], None]:
    import numpy as np

    from mercer.files import liblinear_model, libsvm_estimator, libsvm_model, svmlight_model
    from mercer.runtime.errors import ModelFormatError

    parse: Any = {
        "libsvm": libsvm_model.parse_libsvm_model,
        "liblinear": liblinear_model.parse_liblinear_model,
        "svmlight": svmlight_model.parse_svmlight_model,
    }[target]
    written: Any = liblinear_model.format_liblinear_model if target == "liblinear" else libsvm_model.format_libsvm_model
    again: Any = liblinear_model.parse_liblinear_model if target == "liblinear" else libsvm_model.parse_libsvm_model

    def linear(model: Any) -> Any:
        from mercer.files import liblinear_estimator

        X = np.linspace(-1, 1, 3 * max(model.n_features, 1)).reshape(3, -1)[:, : model.n_features]
        answer = model.predict(X)
        try:
            machine = liblinear_estimator.estimator_from_liblinear(model)
        except TypeError:  # no machine of mercer's
            return answer
        assert len(machine.predict(X)) == 3
        back = liblinear_estimator.liblinear_from_estimator(machine)
        assert back.weights.shape == model.weights.shape or model.solver_type == "MCSVM_CS" or model.bias >= 0
        return answer

    def kernelised(model: Any) -> Any:
        precomputed = model.kernel_type == "precomputed"
        large = model.serials.max(initial=0) > 1000 if precomputed else model.vectors.shape[1] > 1000
        if large or model.numbers.get("degree", 0) > 20 or model.nr_class < 2:
            return None
        machine = libsvm_estimator.estimator_from_libsvm(model)
        width = int(model.serials.max(initial=0)) if precomputed else machine.n_features_in_
        X = np.linspace(-1, 1, 3 * max(width, 1)).reshape(3, -1)[:, :width]
        machine.predict(X)
        assert written(libsvm_estimator.libsvm_from_estimator(machine)) == written(model)
        return model.function()(X)

    use = linear if target == "liblinear" else kernelised

    def check(content: bytes) -> None:
        try:
            with frugal(len(content)):
                model = parse(content)
        except ModelFormatError:
            return
        text = written(model)
        copy = again(text)
        assert written(copy) == text
        try:
            first = use(model)
        except ValueError:
            return
        # The support vectors have eight digits in the file, so only text made of text is the same numbers.
        if first is not None:
            np.testing.assert_array_equal(use(copy), use(again(written(copy))))

    return check


def mercer_check() -> Callable[[bytes], None]:
    import tempfile

    import numpy as np
    from sklearn.pipeline import Pipeline

    import mercer
    from mercer.runtime.errors import ModelFormatError

    folder = Path(tempfile.mkdtemp(prefix="mercer-fuzz", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / "m.mercer"
    texts = ["abca", "dd", ""]

    def ask(model: Any) -> Any:
        machine = model[-1] if isinstance(model, Pipeline) else model
        columns = getattr(model, "n_features_in_", 2)
        if not isinstance(columns, int) or not 0 <= columns <= 1000:
            raise ValueError("too large to try")
        kernel = getattr(machine, "kernel_", None)
        rows = texts if kernel is not None and kernel.accepts == "sequences" else np.linspace(-1, 1, 3 * columns)
        return model.predict(rows if rows is texts else np.reshape(rows, (3, columns)))

    def check(content: bytes) -> None:
        path.write_bytes(content)
        try:
            with frugal(len(content)):
                model = mercer.load(path)
        except ModelFormatError:
            return
        try:
            answer = ask(model)
        except (ValueError, TypeError, OverflowError, NotImplementedError):  # parameters are as free as a constructor's
            return
        mercer.save(model, path)
        np.testing.assert_array_equal(ask(mercer.load(path)), answer)

    return check


# --- the loop --------------------------------------------------------------------------------------------------------


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("target", choices=("mercer", "libsvm", "liblinear", "svmlight"))
    parser.add_argument("seconds", type=float)
    parser.add_argument("--files", type=int, default=sys.maxsize, help="stop after so many")
    parser.add_argument("--seed", type=int, default=time.time_ns())
    parser.add_argument("--core", help="the extension to use in place of the installed one")
    parser.add_argument("--corpus", type=Path, default=Path("build/fuzz/corpus"))
    parser.add_argument("--findings", type=Path, default=Path("build/fuzz/findings"))
    args = parser.parse_args(words)
    if args.core:
        use_core(args.core)
    import numpy as np

    for folder in (args.corpus, args.findings):
        folder.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return fuzz(args)


def fuzz(args: argparse.Namespace) -> int:
    """How many kinds of findings there were."""
    import mercer

    rng = random.Random(args.seed)
    package = Path(mercer.__file__).parent
    arcs = Arcs(str(package / "files"), str(package / "fitting" / "pipeline"))  # readers, and checks of what they read
    check = mercer_check() if args.target == "mercer" else text_check(args.target)
    mutate: Mutate = mutate_container if args.target == "mercer" else mutate_bytes
    parents: list[bytes] = []
    found: set[tuple[type[Exception], str, int | None]] = set()
    waiting = [*seeds(args.target), *(path.read_bytes() for path in sorted(args.corpus.iterdir()))]
    print(f"{args.target}: seed {args.seed}", flush=True)
    begun = told = time.monotonic()
    runs = 0
    last = args.findings / f"{args.target}-last"
    with last.open("wb", buffering=0) as file:
        while (now := time.monotonic()) < begun + args.seconds and runs < args.files:
            if waiting:
                content = waiting.pop()
            else:
                # Half of the time a recent parent: there is where new ground was found.
                recent = parents[-20:] if rng.random() < 0.5 else parents
                content = mutate(rng, rng.choice(recent), parents)
            # Written before it is tried: after a crash of the process it is there to be seen.
            file.seek(0)
            file.truncate()
            file.write(content)
            runs += 1
            try:
                new = arcs.run(check, content)
            except Exception as error:
                place = traceback.extract_tb(error.__traceback__)[-1]
                kind = (type(error), place.filename, place.lineno)
                if kind not in found:  # one of each kind is enough
                    found.add(kind)
                    traceback.print_exc()
                    path = args.findings / f"{args.target}-{hashlib.sha256(content).hexdigest()[:12]}"
                    path.write_bytes(content)
                    print(f"FINDING {len(found)} after {runs} files: {path}", flush=True)
                continue
            if new and len(content) < 20_000:
                parents.append(content)
                (args.corpus / hashlib.sha256(content).hexdigest()[:16]).write_bytes(content)
            if now - told > 30:
                told = now
                print(f"{now - begun:.0f} s: {runs} files, {len(arcs.seen)} arcs, {len(parents)} parents", flush=True)
    last.unlink()
    spent = time.monotonic() - begun
    print(f"{len(found)} findings in {runs} files, {spent:.0f} s: {len(arcs.seen)} arcs, {len(parents)} parents")
    return len(found)


def use_core(path: str) -> None:
    spec = importlib.util.spec_from_file_location("mercer._core", path)
    assert spec is not None
    assert spec.loader is not None
    core = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(core)
    sys.modules["mercer._core"] = core


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
