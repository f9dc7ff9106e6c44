"""ONNX export: the decision function of a machine as a graph of plain operators, in float64.

ONNX has an operator for support vector machines, but only in float32 and with rules of its own for signs and ties;
the graph here computes what `predict` computes: kernel values from a matrix product, decision values, votes, label. It
takes the kernels that a matrix product leads to (linear, polynomial, Gaussian, sigmoid, cosine) and multiples of them.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

import mercer
from mercer.files.atomic_write import replacing
from mercer.files.export.parts import LARGEST_DIFFERENCE, Parts, Scaling, is_text
from mercer.kernels.recipe import ended
from mercer.runtime.optional import require
from mercer.samples.arrays import Floats, is_sparse
from mercer.samples.labels import every_pair
from mercer.samples.matrices import dense

_INPUTS = {"float64": "DOUBLE", "float32": "FLOAT"}
# The largest γ‖z‖², z a vector less the mean of all, at which ‖x‖² − 2⟨x, z⟩ + ‖z‖² may stand for ‖x − z‖²: rounding
# then changes a Gaussian by some 10⁻¹², for every x: far rows have k near 0, and at near ones ‖x‖ is about ‖z‖.
_LARGEST_EXPONENT = 1000.0


def export_onnx(model: Any, path: str | os.PathLike[str], *, dtype: str = "float64") -> None:
    """Write a fitted machine, a Pipeline of scalers and one, or a `Tabular` of numbers, as an ONNX file.

    The graph has the input ``X`` (rows × features) and the outputs ``decision`` (float64: the values of a regression, a
    column for each output; f of two classes or of a novelty detector; else a column for each pair of classes or each
    class, as the machine has them) and ``label`` (the class, ±1 for novelty; regression has none).

    Parameters
    ----------
    model : estimator
        Fitted.
    path : str or path-like
        The file to write.
    dtype : {"float64", "float32"}, default="float64"
        What ``X`` will be. The graph computes in float64 either way.

    Raises
    ------
    TypeError
        For a model or kernel that ONNX cannot compute this way; the message names it.

    Notes
    -----
    The file's values are compared with the model's own while it is written, at the model's vectors and at rows mixed
    from them, and its `doc_string` says how far apart they are. A row whose f is 0 to rounding, such as a support
    vector on the boundary, may get the other label. Distances come from matrix products where these keep their digits,
    and else from differences, column by column, which takes longer.
    """
    content = onnx_model(model, dtype=dtype).SerializeToString()
    with replacing(path) as file:
        file.write(content)


def onnx_model(model: Any, *, dtype: str = "float64") -> Any:
    """The graph as an ``onnx.ModelProto``, checked by onnx."""
    if dtype not in _INPUTS:
        raise ValueError(f"dtype={dtype!r} must be one of {', '.join(map(repr, _INPUTS))}")
    onnx = require("onnx", "ONNX export")
    parts = Parts.of(model, medium="an ONNX file")
    if parts.recipe.inner == "l1":
        raise TypeError(f"ONNX has no operators for the kernel of {parts.told}; use mercer.save or pickle")
    graph = _Graph(onnx)
    values = graph.add("Cast", ["X"], to=onnx.TensorProto.DOUBLE) if dtype == "float32" else "X"
    for scaling in parts.scalings:
        values = _scaled(graph, scaling, values)
    decision = _decision(graph, parts, values)
    graph.add("Identity", [decision], "decision")
    outputs = [("decision", "DOUBLE")]
    if parts.labels is not None:
        outputs.append(("label", _label(graph, parts, decision)))
    made = graph.model(parts.n_features, outputs, _INPUTS[dtype])
    made.doc_string = _told(made, parts, dtype)
    return made


def _told(made: Any, parts: Parts, dtype: str) -> str:
    """Largest difference between the graph, as onnx evaluates it, and the model's public method."""
    from onnx.reference import ReferenceEvaluator

    rows = parts.rows_to_try(dtype, f"an ONNX file of dtype={dtype!r}")
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        answers: Any = ReferenceEvaluator(made).run(["decision"], {"X": rows})
    off = parts.difference(rows.astype(np.float64), answers[0])
    if not off <= LARGEST_DIFFERENCE:
        raise TypeError(
            f"an ONNX file would not compute what {parts.told} answers: matrix products lose the digits of its kernel "
            f"values, and its outputs would be off by {off:.2g} of the largest; standardise the features before "
            "training, or use mercer.save"
        )
    return (
        f"{parts.told}. Outputs differed from Python's by at most {off:.1e} of the largest at {len(rows)} rows tried."
    )


class _Graph:
    """Nodes and constants of a graph that grows."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Any) -> str:
        name = f"c{len(self.constants)}"
        array = np.asarray(value)
        if array.dtype.kind in "UO":
            strings = [str(item).encode() for item in array.ravel()]
            tensor = self.onnx.helper.make_tensor(name, self.onnx.TensorProto.STRING, array.shape, strings)
        else:
            tensor = self.onnx.numpy_helper.from_array(np.ascontiguousarray(array), name)
        self.constants.append(tensor)
        return name

    def add(self, operator: str, inputs: list[str], output: str | None = None, **attributes: Any) -> str:
        name = output or f"t{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, inputs, [name], **attributes))
        return name

    # Arithmetic with names of nodes, as mercer.kernels.recipe asks for it.

    def times(self, t: str, factor: float) -> str:
        if abs(factor) == 1.0:
            return t if factor > 0 else self.add("Neg", [t])
        return self.add("Mul", [t, self.constant(float(factor))])

    def plus(self, t: str, number: float) -> str:
        return self.add("Add", [t, self.constant(float(number))])

    def exp(self, t: str) -> str:
        return self.add("Exp", [t])

    def tanh(self, t: str) -> str:
        return self.add("Tanh", [t])

    def power(self, t: str, degree: float) -> str:
        return self.add("Pow", [t, self.constant(float(degree))])

    def sort(self, values: str, width: int) -> str:
        """Every row in rising order; of TopK's two outputs the first."""
        name, places = f"t{len(self.nodes)}", f"t{len(self.nodes)}_places"
        node = self.onnx.helper.make_node("TopK", [values, self.constant([width])], [name, places], largest=0, sorted=1)
        self.nodes.append(node)
        return name

    def model(self, n_features: int, outputs: list[tuple[str, str]], given_as: str) -> Any:
        helper, types = self.onnx.helper, self.onnx.TensorProto
        given = [helper.make_tensor_value_info("X", getattr(types, given_as), ["rows", n_features])]
        told = [
            helper.make_tensor_value_info(
                name, getattr(types, kind), ["rows", None] if name == "decision" else ["rows"]
            )
            for name, kind in outputs
        ]
        graph = helper.make_graph(self.nodes, "mercer", given, told, self.constants)
        built = helper.make_model(
            graph,
            producer_name="mercer",
            producer_version=mercer.__version__,
            opset_imports=[helper.make_opsetid("", 17)],
            ir_version=8,
        )
        self.onnx.checker.check_model(built, full_check=True)
        return built


def _scaled(graph: _Graph, scaling: Scaling, values: str) -> str:
    values = graph.add("Sub", [values, graph.constant(scaling.shift)]) if scaling.shift.any() else values
    values = graph.add("Div", [values, graph.constant(scaling.divisor)]) if (scaling.divisor != 1).any() else values
    if scaling.low is not None and scaling.high is not None:
        at_least = graph.add("Max", [values, graph.constant(float(scaling.low))])
        values = graph.add("Min", [at_least, graph.constant(float(scaling.high))])
    return values


def _decision(graph: _Graph, parts: Parts, values: str) -> str:
    """A column for each output: f, for SVDD R² − ‖φ(x) − a‖² = 2f − k(x, x), for quantiles f in their order."""
    f, own = _outputs(graph, parts, values)
    if parts.ball:
        return graph.add("Sub", [graph.times(f, 2.0), own])
    if parts.rank is not None:
        return graph.add("Gather", [graph.sort(f, len(parts.rank)), graph.constant(parts.rank)], axis=1)
    return f


def _outputs(graph: _Graph, parts: Parts, values: str) -> tuple[str, str]:
    """Σ β k(x_j, x) + b, one column for each output; and, if the machine is a ball, k(x, x)."""
    recipe, vectors = parts.recipe, parts.vectors
    if recipe.factor is not None:
        vectors = vectors @ recipe.factor
        values = graph.add("MatMul", [values, graph.constant(recipe.factor)])
    if recipe.normalise:
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors = vectors / np.where(lengths > 0, lengths, 1.0)
        length = graph.add("ReduceL2", [values], axes=[1], keepdims=1)
        none = graph.add("Equal", [length, graph.constant(0.0)])
        values = graph.add("Div", [values, graph.add("Where", [none, graph.constant(1.0), length])])
    # Runtimes may turn a product with a number that follows a matrix product into a float32 factor of it; the 2 of a
    # distance survives that, γ would not.
    gamma, numbers = (recipe.numbers[0], (1.0, *recipe.numbers[1:])) if recipe.numbers else (1.0, ())
    if recipe.inner == "sqdist":
        t = graph.times(_squared_distances(graph, values, vectors, gamma), gamma)
    else:
        t = graph.add("MatMul", [values, graph.constant((gamma * vectors).T)])
    K = ended(recipe.ending, numbers, t, graph)
    alone = _is_identity(parts.table)  # of a linear machine: each output has one vector, its w
    sums = K if alone else graph.add("MatMul", [K, graph.constant(dense(parts.table))])
    f = graph.add("Add", [sums, graph.constant(parts.offset)])
    if not parts.ball:
        return f, ""
    if recipe.inner == "sqdist":
        return f, graph.constant(recipe.scale + recipe.constant)
    with_itself = graph.times(graph.add("ReduceSumSquare", [values], axes=[1], keepdims=1), gamma)
    own_value = graph.times(ended(recipe.ending, numbers, with_itself, graph), recipe.scale)
    return f, graph.plus(own_value, recipe.constant)


def _squared_distances(graph: _Graph, values: str, vectors: Floats, gamma: float) -> str:
    """‖x − z‖² of every row and vector: by matrix products where they keep the digits of γ‖x − z‖²."""
    centre = vectors.mean(axis=0)  # so that an offset that all rows have in common cancels before it is squared
    with np.errstate(over="ignore"):
        squares = ((vectors - centre) ** 2).sum(axis=1)
    if not abs(gamma) * squares.max() <= _LARGEST_EXPONENT:
        return _summed_differences(graph, values, vectors)
    values = graph.add("Sub", [values, graph.constant(centre)])
    products = graph.add("MatMul", [values, graph.constant((vectors - centre).T)])
    own = graph.add("ReduceSumSquare", [values], axes=[1], keepdims=1)
    both = graph.add("Add", [own, graph.constant(squares)])
    return graph.add("Max", [graph.add("Sub", [both, graph.times(products, 2.0)]), graph.constant(0.0)])


def _summed_differences(graph: _Graph, values: str, vectors: Floats) -> str:
    """Σ_j (x_j − z_j)², one column after another, so that no more than rows × vectors numbers are held at a time."""
    total = ""
    for j, column in enumerate(vectors.T):
        of_rows = graph.add("Gather", [values, graph.constant([j])], axis=1)
        difference = graph.add("Sub", [of_rows, graph.constant(column[None])])
        square = graph.add("Mul", [difference, difference])
        total = graph.add("Add", [total, square]) if total else square
    return total


def _is_identity(table: Any) -> bool:
    n = table.shape[0]
    return is_sparse(table) and table.shape == (n, n) and table.nnz == n and bool((table.diagonal() == 1).all())


def _label(graph: _Graph, parts: Parts, decision: str) -> str:
    """The output ``label`` by sign, by the largest f or by votes; and its type."""
    if parts.decides == "sign":
        at_least = graph.add(
            "Cast", [graph.add("GreaterOrEqual", [decision, graph.constant(0.0)])], to=graph.onnx.TensorProto.INT64
        )
        code = graph.add("Squeeze", [at_least, graph.constant([1])])
    else:
        votes = parts.decides in ("votes", "scores")
        counted = _votes(graph, len(parts.labels), decision, parts.decides == "scores") if votes else decision
        code = graph.add("ArgMax", [counted], axis=1, keepdims=0)
    classes, kind = _classes(parts)
    graph.add("Gather", [graph.constant(classes), code], "label", axis=0)
    return kind


def _classes(parts: Parts) -> tuple[Any, str]:
    """The labels, and what ONNX calls their type: integers also where all of them are whole numbers."""
    labels = parts.labels
    if is_text(labels):
        return labels, "STRING"
    if labels.dtype.kind == "f" and ((labels % 1 != 0) | (np.abs(labels) >= 2**53)).any():
        return labels.astype(np.float64), "DOUBLE"
    if labels.dtype.kind not in "biuf" or (labels.dtype.kind == "u" and labels.max() >= 2**63):
        raise TypeError(
            f"an ONNX file names classes by text, integers of 64 bits or float64, not by {labels.tolist()!r:.80} "
            f"(dtype {labels.dtype}); rename the classes of {parts.told}"
        )
    return labels.astype(np.int64), "INT64"


def _votes(graph: _Graph, k: int, decision: str, break_ties: bool) -> str:
    """Number of pairs that each class wins; with break_ties, plus by how much, squeezed into less than half a vote."""
    pairs = every_pair(k)
    sign = np.array([[float(c == i) - float(c == j) for c in range(k)] for i, j in pairs])
    lost = np.array([sum(float(c == j) for _, j in pairs) for c in range(k)])
    wins = graph.add("Cast", [graph.add("Greater", [decision, graph.constant(0.0)])], to=graph.onnx.TensorProto.DOUBLE)
    votes = graph.add("Add", [graph.add("MatMul", [wins, graph.constant(sign)]), graph.constant(lost)])
    if not break_ties:
        return votes
    sure = graph.add("MatMul", [decision, graph.constant(sign)])
    size = graph.add("Add", [graph.add("Mul", [graph.add("Abs", [sure]), graph.constant(3.0)]), graph.constant(3.0)])
    return graph.add("Add", [votes, graph.add("Div", [sure, size])])
