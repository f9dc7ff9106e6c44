"""Kernels of graphs: what neighbourhoods, shortest paths and walks they share.

A graph is a symmetric adjacency matrix, dense or sparse, or a pair of one and a label for each node. Machines and files
hold it as a string: JSON of the labels, or the number of nodes, and of the edges [i, j, weight] with i ≤ j.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import lru_cache
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from mercer.arrays import Floats, Samples
from mercer.kernels.strings import OfCounts, OfSequences, products_of_counts
from mercer.parameters import integer, positive

# Of a graph that is read from a file, without labels: a number there must not fill the memory.
_MOST_NODES = 10_000_000


class Graph(NamedTuple):
    """The labels of the nodes, all 0 where none were given, and the adjacency matrix."""

    labels: tuple[Any, ...]
    adjacency: Any


def graph_text(graph: Any, name: str = "the graph") -> str:
    """A graph as the string that machines and files hold; equal matrices and labels give equal strings.

    Parameters
    ----------
    graph : matrix, or pair of a matrix and labels
        The symmetric adjacency matrix, dense or sparse, with weights ≥ 0; labels are strings or whole numbers, one for
        each node.
    name : str
        For messages.

    Examples
    --------
    >>> from mercer.kernels import graph_text
    >>> graph_text([[0, 1], [1, 0]])
    '[2,[[0,1,1.0]]]'
    >>> graph_text(([[0, 1], [1, 0]], ["C", "O"]))
    '[["C","O"],[[0,1,1.0]]]'
    """
    labels = None
    if isinstance(graph, tuple) and len(graph) == 2 and (sp.issparse(graph[0]) or np.ndim(graph[0]) == 2):
        graph, labels = graph
    try:
        values: Any = graph if sp.issparse(graph) else np.asarray(graph, dtype=np.float64)
        matrix: Any = sp.csr_array(values, copy=True)
    except (TypeError, ValueError):
        raise TypeError(
            f"{name} must be a graph: a square matrix, or a pair of one and labels, not {type(graph).__name__}: "
            f"{graph!r:.60}"
        ) from None
    matrix = matrix.astype(np.float64)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    n = matrix.shape[0]
    if matrix.ndim != 2 or n != matrix.shape[1] or (matrix != matrix.T).nnz:
        raise ValueError(
            f"the adjacency matrix of {name} must be square and symmetric, but its shape is {matrix.shape}"
        )
    if not (np.isfinite(matrix.data) & (matrix.data > 0)).all():
        raise ValueError(f"the weights of {name}'s edges must be finite and above 0, or 0 where there is no edge")
    half = sp.coo_array(sp.triu(matrix))
    edges = sorted(zip(half.row.tolist(), half.col.tolist(), half.data.tolist(), strict=True))
    return json.dumps([n if labels is None else _plain_labels(labels, n, name), edges], separators=(",", ":"))


def _plain_labels(labels: Any, n: int, name: str) -> list[Any]:
    plain = [int(label) if isinstance(label, Integral) else label for label in labels]
    if len(plain) != n or not all(isinstance(label, (int, str)) for label in plain):
        raise ValueError(
            f"{name} has {n} nodes, and must have as many labels, strings or whole numbers: {labels!r:.80}"
        )
    return [str(label) if isinstance(label, str) else label for label in plain]


@lru_cache(maxsize=1 << 12)
def _parsed(text: str) -> Graph:
    try:
        labels, edges = json.loads(text)
        if not isinstance(labels, list) and not 0 <= labels <= _MOST_NODES:
            raise ValueError
        names = tuple(labels) if isinstance(labels, list) else (0,) * int(labels)
        if not all(isinstance(label, (int, str)) for label in names):
            raise ValueError
        i, j, weight = (np.array(part) for part in zip(*edges, strict=True)) if edges else (np.zeros(0, int),) * 3
        half = sp.coo_array((weight.astype(np.float64), (i, j)), shape=(len(names), len(names)))
        return Graph(names, sp.csr_array(half + sp.triu(half, 1).T))
    except (ValueError, TypeError, RecursionError):
        raise ValueError(f"{text!r:.60} is no graph; mercer.kernels.graph_text makes strings of graphs") from None


class _OfGraphs(OfSequences):
    """A kernel of graphs."""

    _no_gradient = "a graph cannot be changed by a small step"

    def sequence(self, sample: Any, name: str) -> str:
        return sample if isinstance(sample, str) else graph_text(sample, name)


class WeisfeilerLehman(_OfGraphs, OfCounts):
    """Σ_r Σ_c count(c in x) · count(c in z) over rounds r = 0, …, rounds and the labels c of that round.

    In each round a node's new label is its old one together with those of its neighbours (Shervashidze et al. 2011).
    Labels are compared as they are, not by hashes. Weights of edges are not used.

    Parameters
    ----------
    rounds : int ≥ 0
        How far around a node is looked.
    normalise : bool
        Divide by √(k(x, x) k(z, z)); the values of a graph without nodes stay 0.

    Examples
    --------
    >>> from mercer.kernels import WeisfeilerLehman
    >>> path, triangle = [[0, 1, 0], [1, 0, 1], [0, 1, 0]], [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    >>> WeisfeilerLehman(rounds=1)([path, triangle])  # 3·3, and 1 + 2·2, 1·3, 3·3 by the number of neighbours
    array([[14., 12.],
           [12., 18.]])
    """

    def __init__(self, rounds: int = 3, normalise: bool = False) -> None:
        self.rounds, self.normalise = rounds, normalise
        self._check()

    def _check(self) -> None:
        integer("rounds", self.rounds, 0, "the number of times that labels are refined")

    def _sums(self, X: Samples, Z: Samples) -> Floats:
        names: dict[Any, int] = {}  # of labels, in the order in which they are met
        counts = [self._counted(x, names) for x in X]
        return products_of_counts(counts, None if Z is X else [self._counted(z, names) for z in Z])

    def _counts(self, sample: str) -> Counter[Any]:
        return self._counted(sample, {})

    def _counted(self, text: str, names: dict[Any, int]) -> Counter[Any]:
        graph = _parsed(text)
        labels = [names.setdefault((0, label), len(names)) for label in graph.labels]
        found = Counter(labels)
        ends, neighbours = graph.adjacency.indptr.tolist(), graph.adjacency.indices.tolist()
        for r in range(1, self.rounds + 1):
            around = [
                (r, label, *sorted(labels[j] for j in neighbours[ends[i] : ends[i + 1]]))
                for i, label in enumerate(labels)
            ]
            labels = [names.setdefault(one, len(names)) for one in around]
            found.update(labels)
        return found


class ShortestPaths(_OfGraphs, OfCounts):
    """The number of pairs of nodes, one pair of each graph, with equal labels and shortest paths of equal length.

    Lengths count edges, weights are not used; pairs without a path are left out (Borgwardt and Kriegel 2005).

    Parameters
    ----------
    normalise : bool
        Divide by √(k(x, x) k(z, z)); the values of a graph without edges stay 0.

    Examples
    --------
    >>> from mercer.kernels import ShortestPaths
    >>> path, triangle = [[0, 1, 0], [1, 0, 1], [0, 1, 0]], [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    >>> ShortestPaths()([path], [path, triangle])  # 2·2 + 1·1, 2·3
    array([[5., 6.]])
    """

    def __init__(self, normalise: bool = False) -> None:
        self.normalise = normalise

    def _check(self) -> None:
        pass

    def _counts(self, sample: str) -> Counter[Any]:
        from scipy.sparse.csgraph import shortest_path  # 0.1 s that other kernels need not wait for

        graph = _parsed(sample)
        if not graph.labels:
            return Counter()
        names = {label: k for k, label in enumerate(sorted(set(graph.labels), key=repr))}
        label = np.array([names[one] for one in graph.labels])
        lengths = shortest_path(graph.adjacency, directed=False, unweighted=True)
        i, j = np.nonzero(np.triu(np.isfinite(lengths), 1))
        low, high = np.minimum(label[i], label[j]), np.maximum(label[i], label[j])
        triples, counts = np.unique(np.stack([low, high, lengths[i, j].astype(np.intp)]), axis=1, return_counts=True)
        own = list(names)
        return Counter(
            {
                (own[a], own[b], length): count
                for (a, b, length), count in zip(triples.T.tolist(), counts.tolist(), strict=True)
            }
        )


class RandomWalks(_OfGraphs):
    """Σ_l decay^l times the number of pairs of walks of l steps with equal labels, one in each graph, l ≤ length.

    Weights of edges multiply along a walk. With no limit of the length this is the geometric random walk kernel
    (Gärtner, Flach and Wrobel 2003), which has a value only for small decays.

    Parameters
    ----------
    length : int ≥ 0
        Of the longest walks, in steps.
    decay : float > 0
        What a step counts for; below 1 / (the product of both graphs' largest degrees) long walks count for little.
    normalise : bool
        Divide by √(k(x, x) k(z, z)); the values of a graph without nodes stay 0.

    Examples
    --------
    >>> from mercer.kernels import RandomWalks
    >>> path, triangle = [[0, 1, 0], [1, 0, 1], [0, 1, 0]], [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    >>> RandomWalks(length=1, decay=0.5)([path], [path, triangle])  # 3·3 + ½·4·4, 3·3 + ½·4·6
    array([[17., 21.]])
    """

    def __init__(self, length: int = 4, decay: float = 0.1, normalise: bool = False) -> None:
        self.length, self.decay, self.normalise = length, decay, normalise
        self._check()

    def _check(self) -> None:
        integer("length", self.length, 0, "the number of steps of a walk")
        positive("decay", self.decay)

    def _sums(self, X: Samples, Z: Samples) -> Floats:
        graphs = [_parsed(z) for z in Z]
        ends = np.cumsum([0, *(len(graph.labels) for graph in graphs)])
        names: dict[Any, int] = {}
        label = np.array([names.setdefault(one, len(names)) for graph in graphs for one in graph.labels], dtype=np.intp)
        steps = sp.block_diag([graph.adjacency for graph in graphs], format="csr")
        out = np.empty((len(X), len(Z)))
        for i, x in enumerate(X):
            out[i] = self._walks(_parsed(x), names, label, steps, ends)
        return out

    def _walks(self, x: Graph, names: dict[Any, int], label: Any, steps: Any, ends: Any) -> Floats:
        """Of one graph with all others, which are one graph in pieces: walks that end in u and v, for all u, v."""
        own = np.array([names.get(one, -1) for one in x.labels], dtype=np.intp)
        equal = (own[:, None] == label).astype(np.float64)
        walks, out = equal, np.zeros(len(ends) - 1)
        for step in range(self.length + 1):
            if step:
                walks = float(self.decay) * equal * (steps @ (x.adjacency @ walks).T).T
            out += [part.sum() for part in np.split(walks.sum(axis=0), ends[1:-1])]
        return out

    def _roundings(self, X: Samples) -> int:
        most = max((len(_parsed(x).labels) for x in X), default=0)
        return (int(self.length) + 1) * (2 * most + 8) + 2 * most
