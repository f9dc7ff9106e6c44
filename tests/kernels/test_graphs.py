"""Kernels of graphs equal loops over nodes, paths and walks; machines take lists of matrices."""

import json
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import cross_val_score

import mercer
from contracts.kernel_contract import check_kernel_contract
from mercer import SVC
from mercer.kernels import RandomWalks, ShortestPaths, WeisfeilerLehman, graph_text
from reference import kernels as naive

rng = np.random.default_rng(4)


def drawn(n, share, letters, weighted=False):
    A = np.triu(rng.random((n, n)) < share, 1) * (rng.integers(1, 4, (n, n)) if weighted else 1)
    A[0, 0] = n % 2  # a loop
    return A + np.triu(A, 1).T, rng.choice(list(letters), n).tolist()


GRAPHS = [drawn(n, share, "CON") for n in (1, 2, 4, 6, 7) for share in (0.0, 0.3, 0.7)]
CASES = [
    (WeisfeilerLehman(rounds=0), naive.weisfeiler_lehman, {"rounds": 0}),
    (WeisfeilerLehman(rounds=3), naive.weisfeiler_lehman, {"rounds": 3}),
    (ShortestPaths(), naive.shortest_paths, {}),
    (RandomWalks(length=3, decay=0.3), naive.random_walks, {"length": 3, "decay": 0.3}),
    (RandomWalks(length=0), naive.random_walks, {"length": 0, "decay": 0.1}),
]


@pytest.mark.parametrize(
    ("kernel", "formula", "parameters"), CASES, ids=lambda value: getattr(value, "__name__", repr(value))
)
@pytest.mark.parametrize("labelled", [True, False])
def test_values_are_the_formulas(kernel, formula, parameters, labelled):
    few = GRAPHS[:9] if isinstance(kernel, RandomWalks) else GRAPHS  # a loop over walks takes long
    graphs = few if labelled else [(A, [0] * len(A)) for A, _ in few]
    given = graphs if labelled else [A for A, _ in graphs]
    expected = naive.matrix(formula, graphs, graphs, **parameters)
    np.testing.assert_allclose(kernel(given), expected, rtol=1e-13)
    np.testing.assert_allclose(kernel(given[:6], given[2:]), expected[:6, 2:], rtol=1e-13)
    np.testing.assert_allclose(kernel.diag(given), expected.diagonal(), rtol=1e-13)
    texts = [graph_text(graph) for graph in given]
    np.testing.assert_array_equal(kernel(texts), kernel(given))
    scaled = kernel.__class__(**{**kernel.get_params(), "normalise": True})
    lengths = np.sqrt(np.where(expected.diagonal() > 0, expected.diagonal(), 1.0))
    np.testing.assert_allclose(scaled(given), expected / np.outer(lengths, lengths), rtol=1e-13)


def test_weights_multiply_along_walks():
    graphs = [drawn(n, 0.6, "CO", weighted=True) for n in (2, 3, 4)]
    expected = naive.matrix(naive.random_walks, graphs, graphs, length=3, decay=0.2)
    np.testing.assert_allclose(RandomWalks(length=3, decay=0.2)(graphs), expected, rtol=1e-13)


def test_the_order_of_nodes_does_not_matter():
    for A, labels in GRAPHS:
        order = rng.permutation(len(A))
        moved = (A[np.ix_(order, order)], [labels[i] for i in order])
        for kernel in (WeisfeilerLehman(), ShortestPaths(), RandomWalks()):
            K = kernel([(A, labels), moved])
            np.testing.assert_allclose(K, K[0, 0], rtol=1e-12)


def test_two_triangles_are_a_hexagon_to_weisfeiler_and_lehman_only():
    hexagon = np.roll(np.eye(6), 1, axis=0) + np.roll(np.eye(6), -1, axis=0)
    triangles = np.kron(np.eye(2), np.ones((3, 3)) - np.eye(3))
    K = WeisfeilerLehman(5)([hexagon, triangles])
    assert K[0, 0] == K[0, 1] == K[1, 1]
    np.testing.assert_array_equal(ShortestPaths()([hexagon, triangles]), [[81, 36], [36, 36]])


@pytest.mark.parametrize(
    "kernel",
    [WeisfeilerLehman(2), ShortestPaths(normalise=True), RandomWalks()],
    ids=lambda value: getattr(value, "__name__", repr(value)),
)
def test_contract(kernel):
    texts = [graph_text(graph) for graph in GRAPHS]
    check_kernel_contract(kernel, texts, texts[3:9])
    check_kernel_contract(2 * kernel + WeisfeilerLehman(1), texts, texts[3:9])


def test_a_graph_as_a_string():
    A, labels = GRAPHS[-1]
    text = graph_text((A, labels))
    assert text == graph_text((sp.csr_matrix(A), np.array(labels))) == graph_text((A.tolist(), labels))
    assert json.loads(text)[0] == labels
    assert graph_text(np.zeros((0, 0))) == "[0,[]]"
    assert graph_text(((0, 1), (1, 0))) == "[2,[[0,1,1.0]]]"  # a matrix, not a pair
    assert WeisfeilerLehman()([np.zeros((0, 0))])[0, 0] == 0


@pytest.mark.parametrize(
    ("graph", "error", "message"),
    [
        (np.ones((2, 3)), ValueError, r"sample 1 must be square and symmetric, but its shape is \(2, 3\)"),
        ([[0, 1], [0, 0]], ValueError, "square and symmetric"),
        ([[0, -1], [-1, 0]], ValueError, "finite and above 0"),
        ([[0, np.inf], [np.inf, 0]], ValueError, "finite and above 0"),
        (([[0, 1], [1, 0]], ["C"]), ValueError, "2 nodes, and must have as many labels"),
        (([[0, 1], [1, 0]], [0.5, 1.5]), ValueError, "strings or whole numbers"),
        ([["a"]], TypeError, "sample 1 must be a graph"),
        ("no graph", ValueError, "'no graph' is no graph; mercer.kernels.graph_text makes"),
        ("[99999999999,[]]", ValueError, "is no graph"),
        ("[2,[[0,7,1.0]]]", ValueError, "is no graph"),
        ("[" * 100_000, ValueError, "is no graph"),
        ("[[[1]],[]]", ValueError, "is no graph"),
        ("[2,[[1,0,1.0]]]", ValueError, "is no graph"),
        ("[2,[[0,1,-1.0]]]", ValueError, "is no graph"),
    ],
)
def test_what_is_no_graph(graph, error, message):
    with pytest.raises(error, match=message):
        WeisfeilerLehman()([np.zeros((1, 1)), graph])


def test_machines_take_lists_of_matrices(tmp_path):
    def molecule(ring):
        n = int(rng.integers(6, 10))
        A = np.diag(np.ones(n - 1), 1)
        A[0, n - 1] = ring
        return sp.csr_array(A + A.T), rng.choice(list("CN"), n).tolist()

    X, y = [molecule(i % 2) for i in range(40)], np.arange(40) % 2
    model = SVC(kernel=WeisfeilerLehman(2, normalise=True), C=10.0)
    assert cross_val_score(model, X, y, cv=2).mean() > 0.9
    model.fit([*X, X[0]], [*y, y[0]])  # a graph twice is one with twice the weight
    twice = SVC(kernel=WeisfeilerLehman(2, normalise=True), C=10.0).fit(X, y, sample_weight=[2] + [1] * 39)
    np.testing.assert_array_equal(model.decision_function(X), twice.decision_function(X))
    assert model.certificate_.proves == "optimality"
    mercer.save(model, tmp_path / "graphs.mercer")
    expected = model.decision_function(X)
    np.testing.assert_array_equal(mercer.load(tmp_path / "graphs.mercer").decision_function(X), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).decision_function(X), expected)
    both = SVC(kernel=WeisfeilerLehman(2) + 2 * ShortestPaths()).fit(X, y)
    assert len(both.predict(X[:3])) == 3
    with pytest.raises(ValueError, match="sample 0 must be a graph"):
        both.predict([["a"]])
