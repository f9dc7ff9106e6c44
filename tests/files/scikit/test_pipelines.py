"""Pipelines of scikit-learn around mercer's estimators: saved, loaded elsewhere, the same bits; mutated, no harm."""

import json
import random
import re
import subprocess
import sys
import time
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingClassifier
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import mercer
from mercer.runtime.errors import ModelFormatError, ModelVersionWarning
from reference.address_space import address_space
from reference.forgery import forge, put_together, taken_apart
from reference.mutations import mutate_container
from reference.pipelines import IRIS, KINDS, PIPELINES, TEXTS, TOPICS, answers, fitted

TESTS = Path(__file__).resolve().parents[2]
FRESH = """
import json, sys
sys.path.insert(0, sys.argv[1])
import mercer
from reference.pipelines import PIPELINES, answers
for line in sys.stdin:
    name, path = json.loads(line)
    print(json.dumps(answers(mercer.load(path), PIPELINES[name]()[1])), flush=True)
"""


def without_pandas(name):
    return name not in ("mixed", "tabular", "selected", "ordinal")


def as_json(value):
    return json.loads(json.dumps(value))


def test_a_fresh_process_says_the_same(tmp_path):
    pytest.importorskip("pandas")
    asked, wanted = [], []
    for number, name in enumerate(PIPELINES):
        model, rows = fitted(name)
        path = tmp_path / f"{number}.mercer"
        mercer.save(model, path)
        asked.append(json.dumps([name, str(path)]))
        wanted.append(as_json(answers(model, rows)))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FRESH, str(TESTS)],
        input="\n".join(asked),
        capture_output=True,
        text=True,
        check=True,
    )
    for name, line, truth in zip(PIPELINES, done.stdout.splitlines(), wanted, strict=True):
        assert json.loads(line) == truth, name


@pytest.mark.parametrize("name", PIPELINES)
def test_again_and_mapped(tmp_path, name):
    """Saved once more, mapped, cloned and fitted again: still the same bits."""
    if not without_pandas(name):
        pytest.importorskip("pandas")
    model, rows = fitted(name)
    mercer.save(model, tmp_path / "1.mercer")
    loaded = mercer.load(tmp_path / "1.mercer", mmap=True)
    assert answers(loaded, rows) == answers(model, rows)
    mercer.save(loaded, tmp_path / "2.mercer")
    assert answers(mercer.load(tmp_path / "2.mercer"), rows) == answers(model, rows)
    assert type(loaded) is type(model)
    told, wanted = (re.sub("0x[0-9a-f]+", "", str(clone(one))) for one in (loaded, model))
    assert told == wanted


# --- files that somebody changed -------------------------------------------------------------------------------------

MUTATED = ("words", "mixed", "tabular", "calibrated", "voting", "polynomial")
# What scikit-learn and mercer say of rows that a model cannot take; everything else has to be found in the file.
REFUSALS = (ValueError, TypeError)


def mutate(tmp_path, name, count, seed):
    """Of `count` mutants of a file: how many were refused, and how many predicted or refused to."""
    if not without_pandas(name):
        pytest.importorskip("pandas")
    model, rows = fitted(name)
    rows = rows[:12]
    path = tmp_path / "model.mercer"
    mercer.save(model, path)
    content = path.read_bytes()
    rng = random.Random(seed)
    refused = used = 0
    for _ in range(count):
        path.write_bytes(mutate_container(rng, content, [content]))
        begun = time.process_time()
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                loaded = mercer.load(path)
            except ModelFormatError:
                refused += 1
                continue
            with suppress(*REFUSALS):
                loaded.predict(rows)
        used += 1
        assert time.process_time() - begun < 20
    return refused, used


@pytest.mark.parametrize("name", MUTATED)
def test_mutants_are_refused_or_harmless(tmp_path, name):
    with address_space(2 << 30):
        refused, used = mutate(tmp_path, name, 100, seed=0)
    assert refused > 25
    assert used > 5


@pytest.mark.thorough
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", MUTATED)
def test_many_mutants_are_refused_or_harmless(tmp_path, name):
    with address_space(2 << 30):
        mutate(tmp_path, name, 10_000, seed=1)


# --- what cannot be saved --------------------------------------------------------------------------------------------


def message(model, path):
    with pytest.raises(TypeError) as caught:
        mercer.save(model, path)
    assert "\n" not in str(caught.value)
    assert not path.exists()
    return str(caught.value)


def test_a_search_says_what_to_save(path):
    search = GridSearchCV(make_pipeline(StandardScaler(), mercer.SVC()), {"svc__C": [1, 2]}).fit(IRIS, KINDS)
    assert "save its best_estimator_" in message(search, path)
    mercer.save(search.best_estimator_, path)
    np.testing.assert_array_equal(mercer.load(path).predict(IRIS), search.predict(IRIS))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: make_pipeline(BaggingClassifier(mercer.SVC(), 2)), "Pipeline.steps.baggingclassifier is a Bagging"),
        (lambda: DecisionTreeClassifier(), "it is a DecisionTreeClassifier, which a .mercer file cannot hold"),
        (lambda: make_pipeline(StandardScaler()), "contains no estimator of mercer"),
        (
            lambda: make_pipeline(FunctionTransformer(lambda X: X), mercer.SVC()),
            "Pipeline.steps.functiontransformer.func is a Python function",
        ),
        (
            lambda: make_pipeline(StandardScaler(), mercer.SVC(kernel=lambda a, b: a @ b.T)),
            "Pipeline.steps.svc.params.kernel is a Python function",
        ),
        (
            lambda: make_pipeline(FeatureUnion([("mine", type("Mine", (StandardScaler,), {})())]), mercer.SVC()),
            "Pipeline.steps.featureunion.transformer_list.mine is a Mine",
        ),
    ],
)
def test_what_cannot_be_saved_is_named(path, make, said):
    assert said in message(make().fit(IRIS, KINDS), path)


@pytest.mark.parametrize(
    ("vectorizer", "said"),
    [
        (CountVectorizer(tokenizer=str.split, token_pattern=None), "tokenizer must be None"),
        (CountVectorizer(token_pattern=r"(?:\w+)+"), "more than linear time"),
        (CountVectorizer(token_pattern=r"(\w)\1+"), "at most one|more than linear time"),
    ],
)
def test_texts_that_only_code_could_read(path, vectorizer, said):
    model = make_pipeline(vectorizer, mercer.LinearSVC()).fit(TEXTS, TOPICS)
    assert any(part in message(model, path) for part in said.split("|"))


@pytest.mark.parametrize("pattern", [r"(?u)\b\w\w+\b", r"[a-z'-]+", r"\S+", r"[)+*(]\d{2,4}", r"@\w+\b"])
def test_ordinary_patterns_are_saved(path, pattern):
    texts = [f"{text} 99 a@b (12" for text in TEXTS]
    model = make_pipeline(CountVectorizer(token_pattern=pattern), mercer.LinearSVC()).fit(texts, TOPICS)
    mercer.save(model, path)
    np.testing.assert_array_equal(mercer.load(path).decision_function(texts), model.decision_function(texts))


def test_a_cache_is_not_saved(path, tmp_path):
    model = make_pipeline(StandardScaler(), mercer.SVC(), memory=str(tmp_path / "cache")).fit(IRIS, KINDS)
    mercer.save(model, path)
    assert mercer.load(path).memory is None
    assert model.memory is not None


# --- another version of scikit-learn ---------------------------------------------------------------------------------


def test_another_minor_version_is_told(path):
    model = make_pipeline(StandardScaler(), mercer.SVC()).fit(IRIS, KINDS)
    mercer.save(model, path)
    path.write_bytes(forge(path.read_bytes(), lambda h: h["content"].update({"scikit-learn": "0.99.1"})))
    with pytest.warns(ModelVersionWarning, match=rf"scikit-learn 0\.99\.1, but this is {sklearn.__version__}"):
        loaded = mercer.load(path)
    np.testing.assert_array_equal(loaded.predict(IRIS), model.predict(IRIS))


@pytest.mark.parametrize("model", [mercer.SVC(), mercer.tabular(mercer.SVC())], ids=str)
def test_a_machine_alone_does_not_depend_on_it(path, model):
    mercer.save(clone(model).fit(IRIS, KINDS), path)
    path.write_bytes(forge(path.read_bytes(), lambda h: h["content"].update({"scikit-learn": "0.99.1"})))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mercer.load(path)


def test_an_attribute_that_is_missing_is_named(path):
    mercer.save(make_pipeline(StandardScaler(), mercer.SVC()).fit(IRIS, KINDS), path)

    def change(document):
        del document["content"]["model"]["params"]["steps"][0]["items"][1]["fitted"]["scale_"]
        document["content"]["scikit-learn"] = "0.99.1"

    path.write_bytes(forge(path.read_bytes(), change))
    with pytest.raises(ModelFormatError, match=r"scikit-learn '0\.99\.1', .*StandardScaler: it has no scale_"):
        mercer.load(path)


# --- crafted with care -----------------------------------------------------------------------------------------------


def crafted(path, model, change):
    """A step's description, changed."""
    mercer.save(model, path)

    def inside(document):
        change(document["content"]["model"]["params"]["steps"][0]["items"][1])

    path.write_bytes(forge(path.read_bytes(), inside))
    with pytest.raises(ModelFormatError) as caught:
        mercer.load(path)
    return str(caught.value)


TEXT_MODEL = make_pipeline(CountVectorizer(), mercer.LinearSVC())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda step: step["params"].update(token_pattern="(a+)+b"), "more than linear time"),
        (lambda step: step["params"].update(token_pattern="(?:(?:a)?b*)*c"), "more than linear time"),
        (lambda step: step["params"].update(input="filename"), "input must be 'content'"),
        (lambda step: step["params"].update(ngram_range={"$": "tuple", "items": [1, 10**9]}), "ngram_range"),
        (lambda step: step["fitted"]["vocabulary_"].append(step["fitted"]["vocabulary_"][0]), "one column|terms"),
        (lambda step: step["fitted"].update(vocabulary_={"love": 10**9}), "must be a list of terms"),
        (lambda step: step["params"].update(dtype={"$": "type", "name": "object", "instance": False}), "dtype"),
        (lambda step: step["fitted"].update(predict=1), "not an attribute that a fitted CountVectorizer has"),
        (lambda step: step["params"].update(analyzer={"$": "function", "name": "exp"}), "analyzer"),
        (lambda step: step.update({"class": "Popen"}), "not an estimator"),
    ],
)
def test_texts_somebody_crafted(path, change, said):
    found = crafted(path, clone(TEXT_MODEL).fit(TEXTS, TOPICS), change)
    assert any(part in found for part in said.split("|")), found


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda step: step["fitted"].update(_max_degree=3), "_n_out_full must be"),
        (lambda step: step["fitted"].update(_max_degree=10**9), "degrees"),
        (lambda step: step["fitted"].update(_max_degree=500, n_output_features_=2**40, _n_out_full=2**40), "more than"),
        (lambda step: step["params"].update(degree="2"), "degree"),
    ],
)
def test_powers_somebody_crafted(path, change, said):
    assert said in crafted(path, make_pipeline(PolynomialFeatures(2), mercer.SVC()).fit(IRIS, KINDS), change)


def test_a_term_somebody_added_has_no_weight(path):
    model = make_pipeline(TfidfVectorizer(), mercer.LinearSVC()).fit(TEXTS, TOPICS)
    assert "terms, but" in crafted(path, model, lambda step: step["fitted"]["vocabulary_"].append("unheard"))


def test_a_dense_row_of_many_hashes(path):
    """Nothing in a file is as long as what HashingVectorizer makes, so it is held to what a dense row may have."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"text": TEXTS, "length": [float(len(text)) for text in TEXTS]})
    words = make_pipeline(HashingVectorizer(n_features=8))
    columns = ColumnTransformer([("words", words, "text"), ("rest", "passthrough", ["length"])], sparse_threshold=0)
    model = make_pipeline(columns, mercer.LinearSVC()).fit(frame, TOPICS)

    def widen(step):
        parts = step["fitted"]["transformers_"][0]["items"][1]["params"]["steps"]
        parts[0]["items"][1]["params"]["n_features"] = 2**30

    assert "more than a dense row may have" in crafted(path, model, widen)


def test_votes_for_a_class_beyond_the_last(path):
    """Votes are counted in an array as long as the largest number: 2^40 of them would be eight terabytes."""
    model, _ = fitted("voting")
    mercer.save(model, path)
    document, arrays = taken_apart(path.read_bytes())
    labels = [e["name"] for e in document["arrays"] if e["name"].endswith("rbf.classes_") or "estimators_" in e["name"]]
    assert any(name.endswith("classes_") for name in labels)
    numbers = [i for i, e in enumerate(document["arrays"]) if e["name"] in labels and e["name"].endswith("classes_")]
    for number in numbers:
        changed = list(arrays)
        changed[number] = np.array([0, 1, 2**40]).tobytes()
        path.write_bytes(put_together(document, changed))
        with pytest.raises(ModelFormatError, match="numbers of classes_"):
            mercer.load(path)


@pytest.mark.parametrize("forged", [[0.0, np.nan, 1.0, 2.0], [np.nan, 0.0, 1.0, 2.0], [0.0, 2.0, 1.0, np.nan]])
def test_categories_in_an_order_that_bisection_misreads_are_refused(path, forged):
    """scikit-learn itself, given such categories, answers other codes than those of the categories' places."""
    column = np.array([[0.0], [1.0], [2.0], [np.nan]] * 4)
    model = make_pipeline(OneHotEncoder(), mercer.SVC()).fit(column, [0, 1, 0, 1] * 4)
    mercer.save(model, path)
    document, arrays = taken_apart(path.read_bytes())
    [number] = [k for k, entry in enumerate(document["arrays"]) if "categories_" in entry["name"]]
    assert np.frombuffer(arrays[number]).tolist()[:3] == [0.0, 1.0, 2.0]
    arrays[number] = np.array(forged).tobytes()
    path.write_bytes(put_together(document, arrays))
    with pytest.raises(ModelFormatError, match="must ascend, each value once"):
        mercer.load(path)
    model[0].categories_[0] = np.array(forged)
    codes = model[0].transform(column[:4]).toarray().argmax(axis=1)
    right = [next(k for k, c in enumerate(forged) if c == v or (np.isnan(c) and np.isnan(v))) for v in column[:4, 0]]
    assert codes.tolist() != right
