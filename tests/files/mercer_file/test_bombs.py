"""A hundred small files that ask for much: each is refused, or loads and predicts, in bounded memory and time.

The bound is the one that SECURITY.md states: 64 MB, 32 bytes of memory for each byte of the header and 4 for each byte
of the arrays. Every file has checksums that are right.
"""

import itertools
import json
import os
import struct
import subprocess
import sys
import time
import tracemalloc
from contextlib import suppress
from textwrap import dedent

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.compose import make_column_transformer
from sklearn.ensemble import VotingClassifier
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, QuantileTransformer, StandardScaler

import mercer
from mercer import kernels
from mercer.runtime.errors import ModelFormatError
from reference.address_space import address_space
from reference.forgery import put, put_together, sealed, sealed_text, taken_apart

RNG = np.random.default_rng(0)
X = RNG.normal(size=(24, 3))
SIDES = np.array(["a", "b"])[(X[:, 0] > 0).astype(int)]
WORDS = ["abab", "abba", "cdcd", "dcdc"]
TEXTS = ["ab cd", "cd ef"] * 4
LEVELS = [["x"], ["y"], ["z"], ["y"]] * 3

FRAME = pd.DataFrame({"colour": list("xyz") * 4, "size": np.arange(12.0) % 5})

MODELS = {
    "svc": lambda: (mercer.SVC().fit(X, SIDES), X),
    "csr": lambda: (mercer.SVC(kernel="linear").fit(sp.csr_array(X), SIDES), X),
    "strings": lambda: (mercer.SVC(kernel=kernels.Spectrum()).fit(WORDS, [0, 0, 1, 1]), WORDS),
    "linear": lambda: (mercer.LinearSVC().fit(X, SIDES), X),
    "scaled": lambda: (make_pipeline(StandardScaler(), mercer.SVC()).fit(X, SIDES), X),
    "squares": lambda: (make_pipeline(PolynomialFeatures(2), mercer.SVC()).fit(X, SIDES), X),
    "table": lambda: (mercer.tabular(mercer.SVC()).fit(FRAME, [0, 1, 1] * 4), FRAME),
    "powers": lambda: (
        make_pipeline(make_union(PolynomialFeatures(100), StandardScaler()), mercer.LinearSVC(C=1e-3)).fit(
            X / 10, SIDES
        ),
        X,
    ),
    "quantiles": lambda: (make_pipeline(QuantileTransformer(n_quantiles=5), mercer.SVC()).fit(X, SIDES), X),
    "levels": lambda: (make_pipeline(OneHotEncoder(), mercer.LinearSVC()).fit(LEVELS, [0, 1, 0, 1] * 3), LEVELS),
    "columns": lambda: (
        make_pipeline(make_column_transformer((StandardScaler(), [0]), (StandardScaler(), [1, 2])), mercer.SVC()).fit(
            X, SIDES
        ),
        X,
    ),
    "words": lambda: (make_pipeline(TfidfVectorizer(), mercer.LinearSVC()).fit(TEXTS, [0, 1] * 4), TEXTS),
    "hashes": lambda: (
        make_pipeline(HashingVectorizer(n_features=64), mercer.LinearSVC()).fit(TEXTS, [0, 1] * 4),
        TEXTS,
    ),
    "votes": lambda: (VotingClassifier([("a", mercer.SVC()), ("b", mercer.LinearSVC())]).fit(X, SIDES), X),
    "search": lambda: (mercer.TunedSVC({"C": [1.0, 2.0]}, cv=2).fit(X, SIDES), X),
    "calibrated": lambda: (mercer.SVC().fit(X, SIDES).calibrate(X, SIDES, cv=2), X),
}

FITTED = ("model", "state", "fitted")
PARAMS = ("model", "state", "params")
STEP = ("model", "params", "steps", 0, "items", 1)


def strings(items, as_objects=False):
    return {"$": "strings", "object": as_objects, "items": items}


def kernel(name, **params):
    return {"$": "kernel", "name": name, "params": params}


def chain(depth, inner, wrap):
    for _ in range(depth):
        inner = wrap(inner)
    return inner


def balanced(depth):
    if depth == 0:
        return kernel("Gaussian", gamma=0.5)
    return kernel("Sum", left=balanced(depth - 1), right=balanced(depth - 1))


GAUSS, SVC = kernel("Gaussian", gamma=0.5), {"$": "estimator", "class": "SVC", "params": {}}
BOMBS = {}


def bomb(name, model="svc", *at, value):
    """One place of a model's content replaced."""

    def change(document, arrays):
        put(document["content"], at, value() if callable(value) else value)

    BOMBS[name] = (model, change)


# Strings, each of the width of the longest.
PADDED = ["x" * 50_000, *["a"] * 20_000]
for name, model, at in [
    ("classes", "svc", (*FITTED, "classes_")),
    ("a penalty", "svc", (*PARAMS, "C")),
    ("weights", "svc", (*PARAMS, "class_weight")),
    ("names of features", "svc", (*FITTED, "feature_names_in_")),
    ("a certificate", "svc", (*FITTED, "certificate_")),
    ("support vectors", "strings", (*FITTED, "expansion.vectors")),
    ("a kernel's number", "svc", (*PARAMS, "kernel")),
    ("categories", "levels", (*STEP, "fitted", "categories_", 0)),
    ("a mean", "scaled", (*STEP, "fitted", "mean_")),
    ("classes of votes", "votes", ("model", "fitted", "classes_")),
    ("results", "search", ("model", "fitted", "cv_results_", "params")),
]:
    bomb(f"padded strings: {name}", model, *at, value=lambda: strings(PADDED))
bomb(
    "padded strings: inside a kernel", "svc", *PARAMS, "kernel", value=lambda: kernel("Gaussian", gamma=strings(PADDED))
)
bomb("padded strings: in a tuple", "svc", *PARAMS, "C", value=lambda: {"$": "tuple", "items": [strings(PADDED)]})
bomb(
    "padded strings: a hundred arrays", "svc", *PARAMS, "C", value=lambda: [strings(["x" * 5_000, *["a"] * 200])] * 100
)
bomb("many strings as objects", "svc", *FITTED, "classes_", value=lambda: strings(["a"] * 200_000, as_objects=True))

# JSON that is short and large in memory.
for item in ({}, [], [0], {"a": 0}):
    bomb(f"JSON: a million of {item}", "svc", *PARAMS, "C", value=lambda item=item: [item] * 1_000_000)
for item in (0, 1.5, "ab", None, True, "x" * 30):
    bomb(f"JSON: 200,000 of {item!r:.8}", "svc", *PARAMS, "C", value=lambda item=item: [item] * 200_000)
bomb("JSON: many keys", "svc", *PARAMS, "class_weight", value=lambda: {f"{k:x}": 0 for k in range(100_000)})
bomb("JSON: a wide character", "svc", *PARAMS, "C", value=lambda: "\U0001f600" + "a" * 3_000_000)
bomb("JSON: wide characters", "svc", *FITTED, "classes_", value=lambda: strings(["\U0001f600" * 20] * 20_000))
bomb("JSON: backslashes", "svc", *PARAMS, "C", value=lambda: "\\" * 1_000_001)
bomb("JSON: quotes", "svc", *PARAMS, "C", value=lambda: '"' * 1_000_001)
bomb("JSON: structure in a string", "svc", *PARAMS, "C", value=lambda: "{},[]:" * 300_000)
bomb(
    "JSON: pairs", "svc", *PARAMS, "class_weight", value=lambda: {"$": "dict", "items": [[k, 0] for k in range(50_000)]}
)
bomb("JSON: tuples", "svc", *PARAMS, "C", value=lambda: [{"$": "tuple", "items": []}] * 20_000)
bomb("JSON: infinities", "svc", *PARAMS, "C", value=lambda: [{"$": "float", "value": "inf"}] * 20_000)
bomb("JSON: scalars", "svc", *PARAMS, "C", value=lambda: [{"$": "scalar", "dtype": "<f8", "value": 0.5}] * 15_000)
bomb("JSON: slices", "svc", *PARAMS, "C", value=lambda: [{"$": "slice", "items": [0, 1, 2]}] * 15_000)
bomb(
    "JSON: objects", "svc", *PARAMS, "C", value=lambda: {"$": "objects", "shape": [200_000], "items": [None] * 200_000}
)
bomb("JSON: long names that lead to many values", "svc", *PARAMS, "C", value=lambda: {"k" * 500_000: [0] * 200_000})
bomb("JSON: nested long names", "svc", *PARAMS, "C", value=lambda: chain(200, 0, lambda inner: {"k" * 3_000: inner}))
bomb("JSON: arrays of no bytes", "svc", *PARAMS, "C", value=lambda: {"$": "objects", "shape": [0, 2**40], "items": []})

# Trees, deep and wide.
for depth in (100, 300, 900, 5_000):
    bomb(
        f"a chain of {depth} kernels",
        "svc",
        *PARAMS,
        "kernel",
        value=lambda d=depth: chain(d, GAUSS, lambda k: kernel("Sum", left=k, right=GAUSS)),
    )
    bomb(
        f"{depth} kernels one inside another",
        "svc",
        *FITTED,
        "kernel_",
        value=lambda d=depth: chain(d, GAUSS, lambda k: kernel("Power", kernel=k, exponent=2)),
    )
    bomb(
        f"{depth} lists one inside another",
        "svc",
        *PARAMS,
        "C",
        value=lambda d=depth: chain(d, 0, lambda inner: [inner]),
    )
    bomb(
        f"{depth} tuples one inside another",
        "svc",
        *PARAMS,
        "C",
        value=lambda d=depth: chain(d, 0, lambda inner: {"$": "tuple", "items": [inner]}),
    )
    bomb(
        f"{depth} pipelines one inside another",
        "scaled",
        "model",
        value=lambda d=depth: chain(
            d,
            SVC,
            lambda inner: {
                "$": "estimator",
                "class": "Pipeline",
                "params": {"steps": [{"$": "tuple", "items": ["s", inner]}], "memory": None, "verbose": False},
                "fitted": {},
            },
        ),
    )
bomb("a tree of 2^11 kernels", "svc", *PARAMS, "kernel", value=lambda: balanced(11))
bomb("a tree of 2^11 fitted kernels", "svc", *FITTED, "kernel_", value=lambda: balanced(11))
bomb(
    "a power of a power of a sum",
    "svc",
    *FITTED,
    "kernel_",
    value=lambda: chain(
        12, kernel("Sum", left=GAUSS, right=kernel("Linear")), lambda k: kernel("Power", kernel=k, exponent=9)
    ),
)
bomb("5,000 kernels in a list", "svc", *PARAMS, "kernel", value=lambda: [GAUSS] * 5_000)
bomb(
    "5,000 estimators",
    "votes",
    "model",
    "params",
    "estimators",
    value=lambda: [{"$": "tuple", "items": [f"m{k}", SVC]} for k in range(5_000)],
)
bomb("20,000 fitted votes", "votes", "model", "fitted", "estimators_", value=lambda: [SVC] * 20_000)
bomb(
    "20,000 steps",
    "scaled",
    "model",
    "params",
    "steps",
    value=lambda: [{"$": "tuple", "items": [f"m{k}", "passthrough"]} for k in range(20_000)],
)
bomb(
    "10,000 transformers of all columns",
    "columns",
    *STEP,
    "fitted",
    "transformers_",
    value=lambda: [{"$": "tuple", "items": [f"t{k}", "passthrough", [0, 1, 2]]} for k in range(10_000)],
)

# Numbers.
for digits in (300, 4_000):
    bomb(f"a penalty of {digits} digits", "svc", *PARAMS, "C", value=int("9" * digits))
    bomb(f"a number of features of {digits} digits", "svc", *FITTED, "n_features_in_", value=int("9" * digits))
bomb("2^62 features", "svc", *FITTED, "n_features_in_", value=2**62)
bomb("2^62 samples", "svc", *FITTED, "shape_fit_", value={"$": "tuple", "items": [2**62, 2**62]})
bomb("2^62 quantiles", "quantiles", *STEP, "fitted", "n_quantiles_", value=2**62)
bomb("2^31 hashes", "hashes", *STEP, "params", "n_features", value=2**31 - 1)
bomb("2^62 hashes", "hashes", *STEP, "params", "n_features", value=2**62)
bomb("n-grams of 10^9", "words", *STEP, "params", "ngram_range", value={"$": "tuple", "items": [1, 10**9]})
bomb("an integer that int64 lacks", "svc", *PARAMS, "C", value={"$": "scalar", "dtype": "<i8", "value": 2**70})
bomb("a column of 10^18", "columns", *STEP, "fitted", "_columns", value=[[10**18], [1, 2]])
bomb(
    "a slice of 2^60 columns",
    "columns",
    *STEP,
    "fitted",
    "_columns",
    value=[{"$": "slice", "items": [0, 2**60, 1]}, [1, 2]],
)

# Degrees and other numbers of kernels.
for name, params in [
    ("Polynomial", {"degree": 10**9, "gamma": 0.1}),
    ("Polynomial", {"degree": 10**18, "gamma": 0.1}),
    ("Polynomial", {"degree": 10**300, "gamma": 0.1}),
    ("Matern", {"nu": 1e9, "gamma": 0.5}),
    ("Bessel", {"degree": 10**9, "order": 10**9}),
    ("ANOVA", {"degree": 10**9, "gamma": 0.5}),
    ("RationalQuadratic", {"alpha": 1e300, "gamma": 0.5}),
]:
    bomb(
        f"{name} of {params}", "svc", *FITTED, "kernel_", value=lambda name=name, params=params: kernel(name, **params)
    )
for name, params in [
    ("Mismatch", {"length": 25, "mismatches": 24, "alphabet": "abcdefgh"}),
    ("Mismatch", {"length": 10**9, "mismatches": 10**8, "alphabet": "abcd"}),
    ("Mismatch", {"length": 2, "mismatches": 1, "alphabet": "".join(map(chr, range(50_000)))}),
    ("Subsequences", {"length": 10**8, "decay": 1.0}),
    ("Subsequences", {"length": 10**8, "decay": 1.0, "normalise": True}),
    ("Subsequences", {"length": 10**300, "decay": 1.0}),
    ("Spectrum", {"length": 2**62}),
    ("Substrings", {"longest": 10**12}),
]:
    bomb(
        f"{name} of {params!s:.60}",
        "strings",
        *FITTED,
        "kernel_",
        value=lambda name=name, params=params: kernel(name, **params),
    )
bomb("degree 1000 of polynomial features", "squares", *STEP, "fitted", "_max_degree", value=1000)
bomb("2^20 features of polynomials", "squares", *STEP, "fitted", "n_features_in_", value=2**20)

# Patterns.
for pattern in (
    r"\w?" * 40 + "~",
    r"[^~]*[^~]*[^~]*[^~]*~",
    "(a+)+b",
    r"(?:\w|\d)+!",
    r"(\w+)@",
    "(?=(a+))a*b",
    r"[a-z]+\b",
    "x{1,99}" * 20,
    "((((a*)*)*)*)b",
):
    bomb(f"the pattern {pattern:.30}", "words", *STEP, "params", "token_pattern", value=pattern)

# Names of arrays.


def aliased(count, entry):
    def change(document, arrays):
        big = np.zeros(200_000)
        document["arrays"].append({"name": "big", "dtype": "<f8", "shape": [200_000], "order": "C"})
        arrays.append(big.tobytes())
        put(document["content"], (*PARAMS, "C"), [entry() for _ in range(count)])

    return change


BOMBS["an array named 2,000 times"] = ("svc", aliased(2_000, lambda: {"$": "array", "name": "big"}))
BOMBS["an array in 2,000 kernels"] = (
    "svc",
    aliased(2_000, lambda: kernel("Gaussian", M={"$": "array", "name": "big"})),
)


def of_sparse(shape, index="<i4"):
    """A matrix with one stored number, said to be of any shape; its parts may be named again and again."""

    def change(document, arrays):
        parts = {"one": ("<f8", np.ones(1)), "place": (index, np.zeros(1, index)), "ends": ("<i8", np.array([0, 1]))}
        for name, (dtype, array) in parts.items():
            document["arrays"].append({"name": name, "dtype": dtype, "shape": [len(array)], "order": "C"})
            arrays.append(array.tobytes())
        named = {"data": "one", "indices": "place", "indptr": "ends"}
        matrix = {"$": "csr", "shape": shape, "matrix": False}
        matrix |= {part: {"$": "array", "name": name} for part, name in named.items()}
        document["content"]["model"]["arrays"]["expansion.vectors"] = matrix
        if isinstance(shape, list) and isinstance(shape[-1], int):
            document["content"]["model"]["state"]["fitted"]["n_features_in_"] = shape[-1]

    return change


for shape in ([1, 2**40], [1, 2**61], [2**40, 3], [2**61, 2**61], [1, 2**63], [-1, 3], [1, 10**300], "all", [1, 0]):
    BOMBS[f"CSR of shape {shape!s:.40}"] = ("csr", of_sparse(shape))
BOMBS["CSR with wide indices"] = ("csr", of_sparse([1, 2**40], "<i8"))


def conversions(document, arrays):
    """Indices of another width than the starts, which SciPy converts, 1,000 times."""
    n = 100_000
    parts = {"n": np.zeros(n), "k": np.zeros(n, "<i4"), "s": np.array([0, n])}
    for name, array in parts.items():
        document["arrays"].append({"name": name, "dtype": array.dtype.str, "shape": [len(array)], "order": "C"})
        arrays.append(array.tobytes())
    matrix = {"$": "csr", "shape": [1, 5], "matrix": True}
    matrix |= {
        part: {"$": "array", "name": name} for part, name in zip(("data", "indices", "indptr"), "nks", strict=True)
    }
    put(document["content"], (*PARAMS, "C"), [matrix] * 1_000)


BOMBS["a thousand conversions of one CSR matrix"] = ("csr", conversions)


def reshaped(shape, dtype="<f8"):
    def change(document, arrays):
        document["arrays"][0].update(shape=shape, dtype=dtype)

    return change


for shape in ([2**32, 2**32], [2**62, 4], [0, 2**62], [2**63], [1] * 9, [2**31, 2**31, 0], [10**300], [-1, -8]):
    BOMBS[f"an array of shape {shape!s:.30}"] = ("svc", reshaped(shape))


def many_points(document, arrays):
    document["content"]["model"]["fitted"]["cv_results_"]["params"] = [{f"p{k}": 0} for k in range(20_000)]


BOMBS["20,000 points with names of their own"] = ("search", many_points)


def long_titles(document, arrays):
    """A title for each level begins with the name of its column: 4 GB of letters."""
    [column] = [one for one in document["content"]["model"]["fitted"]["columns_"] if one["kind"] == "Levels"]
    column["name"], column["levels"] = "n" * 200_000, {"$": "tuple", "items": [f"{k}" for k in range(20_000)]}


BOMBS["the titles of a column with a long name"] = ("table", long_titles)


def side_by_side(document, arrays):
    """Transformers that make 176,851 columns each, of which no array tells."""
    step = document["content"]["model"]["params"]["steps"][0]["items"][1]
    parts = step["params"]["transformer_list"]
    step["params"]["transformer_list"] = [{"$": "tuple", "items": [f"p{k}", parts[0]["items"][1]]} for k in range(500)]


BOMBS["500 transformers of 176,851 columns"] = ("powers", side_by_side)


def many_classes(document, arrays):
    """20,000 classes have 2·10⁸ pairs."""
    inner = document["content"]["model"]["fitted"]["estimator_"]
    put(inner, ("state", "fitted", "classes_"), strings([f"{k}" for k in range(20_000)]))


BOMBS["the pairs of 20,000 classes"] = ("calibrated", many_classes)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Honest files, taken apart when first asked for."""
    path, kept = tmp_path_factory.mktemp("honest") / "m.mercer", {}

    def get(name):
        if name not in kept:
            model, rows = MODELS[name]()
            mercer.save(model, path)
            kept[name] = (path.read_bytes(), rows)
        return kept[name]

    return get


def test_there_are_a_hundred():
    assert len(BOMBS) >= 100


def limit_of(content):
    """What SECURITY.md states."""
    (header,) = struct.unpack_from("<Q", content)
    header = min(header, len(content))
    return 2**26 + 32 * header + 4 * max(len(content) - header, 0)


def loaded(path, content):
    """The model, or None if it is refused; in memory and time that the file's size bounds."""
    path.write_bytes(content)
    limit = limit_of(content)
    begun = time.process_time()
    with address_space(limit + 2**27):  # and what the interpreter holds back for itself
        tracemalloc.start()
        try:
            found = mercer.load(path)
        except ModelFormatError:
            found = None
        finally:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
    assert peak < limit, f"{peak / 2**20:.0f} MB for {len(content)} bytes"
    assert time.process_time() - begun < 5 + len(content) / 100_000  # tracing makes it three times as slow
    return found


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_or_does_no_harm(name, files, path):
    model, change = BOMBS[name]
    content, rows = files(model)
    document, arrays = taken_apart(content)
    change(document, arrays)
    content = put_together(document, arrays)
    found = loaded(path, content)
    if found is None:
        return
    begun = time.process_time()
    with address_space(2**29), suppress(ValueError, TypeError, ArithmeticError, NotImplementedError, RuntimeWarning):
        found.predict(rows[:3])
    assert time.process_time() - begun < 10


# Headers that no document makes.
HEAD = b'{"__metadata__":{"format":"mercer","version":"1","sha256":"' + b"0" * 64
RAW = {
    "two million brackets": sealed_text(
        HEAD + b'","content":"' + b"[" * 1_000_000 + b"]" * 1_000_000 + b'","arrays":"{}"}}'
    ),
    "a wide character in the header": sealed_text(
        HEAD + b'","content":"\\ud83d\\ude00' + b"a" * 2_000_000 + b'","arrays":"{}"}}'
    ),
    "UTF-8 in the header": sealed_text(
        HEAD + b'","content":"' + "\U0001f600".encode() + b"a" * 2_000_000 + b'","arrays":"{}"}}'
    ),
    "a million dictionaries beside the metadata": sealed_text(
        HEAD + b'","content":"{}","arrays":"{}"},"a":[' + b"{}," * 1_000_000 + b"0]}"
    ),
    "a million arrays of no bytes": sealed(
        {"content": "{}", "arrays": "{" + ",".join(f'"{k}":0' for k in range(200_000)) + "}"},
        {f"{k}": 0 for k in range(20_000)},
    ),
    "100,000 digits": sealed({"content": '{"a":' + "9" * 100_000 + "}", "arrays": "{}"}, {}),
    "an exponent of 100,000 digits": sealed({"content": '{"a":1e' + "9" * 100_000 + "}", "arrays": "{}"}, {}),
    "1e999 for a thousand times": sealed(
        {"content": json.dumps({"a": 0}).replace("0", "[" + "1e999," * 999 + "0]"), "arrays": "{}"}, {}
    ),
    "a header of 2^63 bytes": struct.pack("<Q", 2**63) + HEAD,
    "spaces": sealed({"content": "{}" + " " * 3_000_000, "arrays": "{}"}, {}),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", RAW)
def test_a_header_that_is_a_bomb_is_refused(name, path):
    assert loaded(path, RAW[name]) is None


def test_honest_files_come_near_no_limit(files, path):
    """Each of the models takes a tenth of what it may, so that no honest file is refused for its size."""
    for name in MODELS:
        content, _ = files(name)
        path.write_bytes(content)
        tracemalloc.start()
        mercer.load(path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < limit_of(content) / 10


def test_a_vocabulary_of_100_000_words_is_saved_and_loaded(path):
    words = ["".join(letters) for letters in itertools.islice(itertools.product("abcdefgh", repeat=6), 100_000)]
    model = make_pipeline(TfidfVectorizer(vocabulary=words), mercer.LinearSVC()).fit(
        [*TEXTS[:2], "aaaaaa aaaaab"], [0, 1, 1]
    )
    mercer.save(model, path)
    found = loaded(path, path.read_bytes())
    np.testing.assert_array_equal(found.decision_function(TEXTS), model.decision_function(TEXTS))


def test_memory_that_is_not_there_is_a_model_format_error(path):
    mercer.save(mercer.SVC(C=1e-3).fit(RNG.normal(size=(500, 20_000)).astype(np.float32), np.arange(500) % 2), path)
    # A process of its own: one that has run other tests may have room left over from them.
    child = f"""
        import mercer
        from mercer.files.mercer_file import model_file
        from reference.address_space import address_space
        with address_space(2**24):
            mercer.load({str(path)!r})
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", dedent(child)], env=environment, capture_output=True, text=True)
    assert "ModelFormatError" in done.stderr
    assert "needs more memory than this computer has left" in done.stderr
