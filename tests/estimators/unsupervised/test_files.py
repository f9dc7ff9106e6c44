"""Model files: the same bits after a round trip, and what no fit could have left is refused."""

import copy
from contextlib import suppress

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import SVC, SVR, KernelCCA, KernelKMeans, KernelPCA, SpectralClustering
from mercer.cli.main import main
from mercer.files.libsvm_text import write_libsvm
from mercer.kernels import Gaussian, Linear, Spectrum
from mercer.runtime.errors import ModelFormatError
from reference.forgery import forge, places, put, taken_apart

rng = np.random.default_rng(0)
X = rng.normal(size=(30, 3))
Y = X[:, :2] + 0.1 * rng.normal(size=(30, 2))
y = (X[:, 0] > 0).astype(int)
WORDS = ["abab", "baba", "aabb", "xyxy", "yxyx", "xxyy"] * 2
MODELS = {
    "components": (KernelPCA(3, gamma=0.1), X),
    "components of landmarks": (KernelPCA(2, n_landmarks=10, random_state=0), X),
    "components of a kernel matrix": (KernelPCA(2, kernel="precomputed"), Gaussian(gamma=0.2)(X)),
    "components of sparse rows": (KernelPCA(2, kernel=Gaussian(gamma=0.1) + Linear() ** 2), sp.csr_matrix(X)),
    "components of float32": (KernelPCA(2), X.astype(np.float32)),
    "clusters": (KernelKMeans(3, random_state=0), X),
    "clusters of words": (KernelKMeans(2, kernel=Spectrum(2), random_state=0), WORDS),
    "walks": (SpectralClustering(3, gamma=0.5, random_state=0), X),
    "one walk": (SpectralClustering(1, gamma=0.5, random_state=0), X),
    "walks on landmarks": (SpectralClustering(3, gamma=0.1, n_landmarks=20, random_state=0), X),
    "two views": (KernelCCA(2, kappa=0.1, kernel_y="linear"), X),
    "a pipeline": (make_pipeline(StandardScaler(), KernelPCA(3), SVC()), X),
    "a pipeline of clusters": (make_pipeline(StandardScaler(), KernelKMeans(3, random_state=0)), X),
}


def answers(model, X):
    """Everything that a model says of samples, as arrays."""
    asked = [name for name in ("transform", "predict", "decision_function") if hasattr(model, name)]
    if getattr(model, "kernel", None) == "precomputed" or not hasattr(X, "shape"):
        asked = asked[:1] if hasattr(model, "eigenvalues_") else ["predict"]
    found = [np.asarray(getattr(model, name)(X)) for name in asked]
    return [*found, *model.transform(X, Y)] if isinstance(model, KernelCCA) else found


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.mercer"


@pytest.mark.parametrize("name", MODELS)
def test_the_same_bits(name, path):
    model, samples = MODELS[name]
    model.fit(samples, Y if name == "two views" else y if name == "a pipeline" else None)
    mercer.save(model, path)
    again = mercer.load(path)
    assert repr(again) == repr(model)
    assert vars(again).keys() == vars(model).keys()
    for mine, other in zip(answers(model, samples), answers(again, samples), strict=True):
        assert mine.dtype == other.dtype
        np.testing.assert_array_equal(mine, other)


def test_pre_images_of_a_loaded_model(path):
    model = KernelPCA(2, gamma=0.1).fit(X)
    mercer.save(model, path)
    again = mercer.load(path)
    np.testing.assert_array_equal(
        again.inverse_transform(again.transform(X)), model.inverse_transform(model.transform(X))
    )


def test_tables_stay_tables(path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = KernelPCA(2).set_output(transform="pandas").fit(frame)
    mercer.save(model, path)
    again = mercer.load(path)
    pd.testing.assert_frame_equal(again.transform(frame), model.transform(frame))
    assert again.get_feature_names_out().tolist() == ["kernelpca0", "kernelpca1"]
    with pytest.raises(ValueError, match="feature names"):
        again.transform(frame.rename(columns={"a": "z"}))
    content = path.read_bytes()
    path.write_bytes(forge(content, lambda h: h["content"]["model"].update(output={"transform": "os.system"})))
    with pytest.raises(ModelFormatError, match="output must name a container"):
        mercer.load(path)


def test_labels_of_samples_like_no_other_can_be_saved(path):
    """A sample of weight 0 without affinities has the label −1."""
    samples = np.concatenate([X, [[1e3, 1e3, 1e3]]])
    model = SpectralClustering(2, gamma=0.5, random_state=0).fit(samples, sample_weight=[1] * 30 + [0])
    assert model.labels_[-1] == -1
    mercer.save(model, path)
    np.testing.assert_array_equal(mercer.load(path).labels_, model.labels_)


@pytest.mark.parametrize(
    ("model", "field", "reason"),
    [
        (KernelPCA(2), "expansion.coefficients", "it has no _expansion_|missing"),
        (KernelPCA(2), "eigenvalues_", "it has no eigenvalues_"),
        (KernelPCA(2), "_mean_", "it has no _mean_"),
        (KernelKMeans(2, random_state=0), "labels_", "it has no labels_"),
        (SpectralClustering(2, gamma=0.5, random_state=0), "_centres_", "it has no _centres_"),
        (KernelCCA(2), "y.expansion.coefficients", "it has no _second_|missing"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_prediction_needs_must_be_there(model, field, reason, path):
    mercer.save(model.fit(X, Y), path)
    path.write_bytes(forge(path.read_bytes(), lambda h: h["content"]["model"]["arrays"].pop(field)))
    with pytest.raises(ModelFormatError, match=reason):
        mercer.load(path)


@pytest.mark.parametrize(
    ("model", "fields", "reason"),
    [
        (KernelPCA(2), ("eigenvalues_", "_mean_"), "eigenvalues_ must be 2 numbers"),
        (KernelPCA(2), ("_mean_", "eigenvalues_"), "_mean_ must be 30 numbers"),
        (KernelKMeans(2, random_state=0), ("labels_", "objective_path_"), "labels_ must be indices"),
        (
            SpectralClustering(2, gamma=0.5, random_state=0),
            ("_centres_", "expansion.coefficients"),
            "_centres_ must be",
        ),
        (SpectralClustering(2, gamma=0.5, random_state=0), ("labels_", "eigenvalues_"), "numbers of clusters"),
        (KernelCCA(2), ("y.expansion.b", "expansion.coefficients"), "b must be a list of finite numbers"),
        (KernelCCA(2), ("y.expansion.vectors", "expansion.coefficients"), "support vectors must be"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_arrays_in_the_place_of_others_are_refused(model, fields, reason, path):
    """Checksums right, shapes wrong: `_centres_` of another width would be multiplied with what does not fit it."""
    mercer.save(model.fit(X, np.column_stack([Y, Y[:, 0] ** 2])), path)
    field, other = fields

    def swap(header):
        arrays = header["content"]["model"]["arrays"]
        arrays[field] = arrays[other]

    path.write_bytes(forge(path.read_bytes(), swap))
    with pytest.raises(ModelFormatError, match=reason):
        mercer.load(path)


HOSTILE_VALUES = [None, -1, 2**70, "os.system", [], {}, {"$": "kernel", "name": "Kernel", "params": {}}]


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["components", "clusters", "walks", "two views"])
def test_a_header_somebody_wrote_never_crashes(name, path):
    """Every value of the header, replaced by many others: ModelFormatError, or a model that behaves."""
    model, _ = MODELS[name]
    mercer.save(model.fit(X[:8], Y[:8]), path)
    content = path.read_bytes()
    refused = answered = 0
    for at in places(taken_apart(content)[0]["content"]):
        for value in HOSTILE_VALUES if at else []:
            path.write_bytes(forge(content, lambda h, at=at, value=value: put(h["content"], at, copy.deepcopy(value))))
            try:
                found = mercer.load(path)
            except ModelFormatError:
                refused += 1
                continue
            with suppress(ValueError, TypeError):
                answered += len(answers(found, X)[0]) == 30
    assert refused > answered > 0


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
def test_truncated_files_are_refused(share, path):
    mercer.save(KernelCCA(2).fit(X, Y), path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ModelFormatError):
        mercer.load(path)


def run(*words):
    return main([str(word) for word in words])


def test_on_a_terminal(tmp_path, capsys):
    """Clusters are predicted and not judged; features are no predictions; a pipeline predicts by its last step."""
    data, model = tmp_path / "data.txt", tmp_path / "model.mercer"
    write_libsvm(X, y, data)
    clusters = KernelKMeans(2, random_state=0).fit(X)
    mercer.save(clusters, model)
    assert run("predict", data, model, "-") == 0
    told = capsys.readouterr()
    assert [int(line) for line in told.out.split()] == clusters.labels_.tolist()
    assert "Accuracy" not in told.err
    assert "error" not in told.err
    assert run("inspect", model) == 0
    told = capsys.readouterr().out
    assert all(word in told for word in ("KernelKMeans", "inertia", "cluster sizes"))
    assert not any(word in told for word in ("margin", "certificate", "not recorded"))
    mercer.save(KernelPCA(2).fit(X), model)
    assert run("predict", data, model, "-") != 0
    assert "holds a KernelPCA, which computes features and does not predict" in capsys.readouterr().err
    for name in ("x.model", "x.onnx", "x.c"):
        assert run("convert", model, tmp_path / name) != 0
        assert "KernelPCA" in capsys.readouterr().err
    mercer.save(make_pipeline(KernelPCA(2), SVR()).fit(X, Y[:, 0]), model)
    assert run("predict", data, model, "-") == 0
    assert "Mean squared error" in capsys.readouterr().err


def test_they_cannot_be_compressed():
    with pytest.raises(TypeError, match="KernelPCA cannot be compressed"):
        mercer.compress(KernelPCA(2).fit(X), n_vectors=5)
