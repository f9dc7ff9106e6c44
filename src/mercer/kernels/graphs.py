"""Kernels of graphs: what neighbourhoods, shortest paths and walks they share.

A graph is a symmetric adjacency matrix, dense or sparse, or a pair of one and a label for each node. Machines and files
hold it as a string: JSON of the labels, or the number of nodes, and of the edges [i, j, weight] with i ≤ j.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.arrays import Floats, Indices, Samples
from mercer.kernels.strings import OfSequences
from mercer.parameters import integer, positive

# Of a graph without labels that is read from a file: a number there must not fill the memory.
_MOST_NODES = 10_000_000


def graph_text(graph: Any, *, name: str = "the graph") -> str:
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
        matrix: Any = sp.csr_array(values, dtype=np.float64, copy=True)
    except (TypeError, ValueError):
        raise TypeError(
            f"{name} must be a graph: a square matrix, or a pair of one and labels, not {type(graph).__name__}: "
            f"{graph!r:.60}"
        ) from None
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or (matrix != matrix.T).nnz:
        raise ValueError(
            f"the adjacency matrix of {name} must be square and symmetric, but its shape is {matrix.shape}"
        )
    if not (np.isfinite(matrix.data) & (matrix.data > 0)).all():
        raise ValueError(f"the weights of {name}'s edges must be finite and above 0, or 0 where there is no edge")
    nodes: Any = matrix.shape[0]
    if labels is not None:
        own = [int(label) if isinstance(label, Integral) else label for label in labels]
        if len(own) != nodes or not all(isinstance(label, (int, str)) for label in own):
            raise ValueError(
                f"{name} has {nodes} nodes, and must have as many labels, strings or whole numbers: {labels!r:.80}"
            )
        nodes = own
    half = sp.coo_array(sp.triu(matrix))
    edges = sorted(zip(half.row.tolist(), half.col.tolist(), half.data.tolist(), strict=True))
    return json.dumps([nodes, edges], separators=(",", ":"))


@lru_cache(maxsize=1 << 12)
def _parsed(text: str) -> tuple[tuple[Any, ...], Any]:
    """The labels of the nodes, all 0 where none were given, and the adjacency matrix."""
    try:
        nodes, edges = json.loads(text)
        labels = tuple(nodes) if isinstance(nodes, list) else (0,) * nodes if nodes <= _MOST_NODES else ([],)
        i, j, weight = np.array(edges, dtype=np.float64).reshape(-1, 3).T
        if not all(isinstance(label, (int, str)) for label in labels) or not ((weight > 0) & (i <= j)).all():
            raise ValueError
        half = sp.coo_array((weight, (i.astype(np.intp), j.astype(np.intp))), shape=(len(labels), len(labels)))
        return labels, sp.csr_array(half + sp.triu(half, 1).T)
    except (ValueError, TypeError, RecursionError):
        raise ValueError(f"{text!r:.60} is no graph; mercer.kernels.graph_text makes strings of graphs") from None


class _OfGraphs(OfSequences):
    """A kernel of graphs."""

    _no_gradient = "a graph cannot be changed by a small step"

    def sequence(self, sample: Any, name: str) -> str:
        return sample if isinstance(sample, str) else graph_text(sample, name=name)


@dataclass(eq=False, repr=False)
class WeisfeilerLehman(_OfGraphs):
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

    rounds: int = 3
    normalise: bool = False

    def _check(self) -> None:
        integer("rounds", self.rounds, 0, "the number of times that labels are refined")

    def _counts(self, X: Samples) -> list[Counter[Any]]:
        names: dict[Any, int] = {}  # of the labels of all graphs, numbered as they are met
        return [self._counted(*_parsed(x), names) for x in X]

    def _counted(self, given: tuple[Any, ...], adjacency: Any, names: dict[Any, int]) -> Counter[Any]:
        labels = [names.setdefault((0, label), len(names)) for label in given]
        found = Counter(labels)
        ends, neighbours = adjacency.indptr.tolist(), adjacency.indices.tolist()
        for r in range(1, self.rounds + 1):
            around = (sorted(labels[j] for j in neighbours[ends[i] : ends[i + 1]]) for i in range(len(labels)))
            refined = [(r, label, *others) for label, others in zip(labels, around, strict=True)]
            labels = [names.setdefault(one, len(names)) for one in refined]
            found.update(labels)
        return found


@dataclass(eq=False, repr=False)
class ShortestPaths(_OfGraphs):
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

    normalise: bool = False

    def _counts(self, X: Samples) -> list[Counter[Any]]:
        from scipy.sparse.csgraph import shortest_path  # 0.1 s that other kernels need not wait for

        counts = []
        for labels, adjacency in map(_parsed, X):
            lengths = shortest_path(adjacency, unweighted=True) if labels else np.zeros((0, 0))
            i, j = np.nonzero(np.triu(np.isfinite(lengths), 1))
            of_pairs = zip(i.tolist(), j.tolist(), lengths[i, j].tolist(), strict=True)
            counts.append(Counter((*sorted((labels[a], labels[b]), key=repr), length) for a, b, length in of_pairs))
        return counts


@dataclass(eq=False, repr=False)
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

    length: int = 4
    decay: float = 0.1
    normalise: bool = False

    def _check(self) -> None:
        integer("length", self.length, 0, "the number of steps of a walk")
        positive("decay", self.decay)

    def _sums(self, X: Samples, Z: Samples) -> Floats:
        graphs, names = [_parsed(z) for z in Z], dict[Any, int]()
        label = np.array([names.setdefault(one, len(names)) for labels, _ in graphs for one in labels], dtype=np.intp)
        steps = sp.block_diag([adjacency for _, adjacency in graphs], format="csr")  # one graph, in pieces
        ends = np.cumsum([len(labels) for labels, _ in graphs])[:-1]
        out = np.empty((len(X), len(Z)))
        for i, x in enumerate(X):
            out[i] = self._walks(x, names, label, steps, ends)
        return out

    def _own_sums(self, X: Samples) -> Floats:
        return np.array([self._sums([x], [x])[0, 0] for x in X], dtype=np.float64)

    def _walks(self, x: str, names: dict[Any, int], label: Indices, steps: Any, ends: Indices) -> Floats:
        """Of one graph with all others: the weights of walks that end in node v there and u here, for all v and u."""
        labels, adjacency = _parsed(x)
        equal = (label[:, None] == np.array([names.get(one, -1) for one in labels], dtype=np.intp)).astype(np.float64)
        walks, total, own_steps = equal, equal.sum(axis=1), float(self.decay) * adjacency.toarray()
        for _ in range(self.length):
            walks = equal * ((steps @ walks) @ own_steps)
            total += walks.sum(axis=1)
        return np.array([part.sum() for part in np.split(total, ends)])

    def _roundings(self, X: Samples) -> int:
        most = max((len(_parsed(x)[0]) for x in X), default=0)
        return (int(self.length) + 1) * (2 * most + 8) + 2 * most
