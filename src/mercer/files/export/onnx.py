"""ONNX export: the decision function of a machine as a graph of plain operators, in float64.

ONNX has an operator for support vector machines, but only in float32 and with its own rules for signs and ties. The
graph here computes what `predict` computes: kernel values from a matrix product, decision values, votes, label. It
supports kernels that follow from a matrix product (linear, polynomial, Gaussian, sigmoid, cosine) and their multiples.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

import mercer
from mercer.files.atomic_write import replacing
from mercer.files.export.parts import LARGEST_DIFFERENCE, Parts, Scaling, is_text
from mercer.kernels.recipe import apply_ending
from mercer.runtime.optional import require
from mercer.samples.arrays import Floats, is_sparse
from mercer.samples.labels import class_pairs
from mercer.samples.matrices import dense

_INPUTS = {"float64": "DOUBLE", "float32": "FLOAT"}
# Largest γ‖z‖² of centred vectors z for which ‖x − z‖² is computed as ‖x‖² − 2⟨x, z⟩ + ‖z‖². Rounding then changes a
# Gaussian by about 10⁻¹² for every x: far rows have k near 0, and for near ones ‖x‖ is about ‖z‖.
_LARGEST_EXPONENT = 1000.0


def export_onnx(model: Any, path: str | os.PathLike[str], *, dtype: str = "float64") -> None:
    """Write a fitted machine, a Pipeline of scalers and a machine, or a `Tabular` of numbers as an ONNX file.

    The graph has the input ``X`` (rows × features) and the outputs ``decision`` and ``label``. ``decision`` holds the
    decision values in float64: f for two classes and novelty detection, a column for each class or each pair of classes
    for more classes, and a column for each output of a regression. ``label`` is the class, or ±1 for novelty detection;
    a regression has no ``label``.

    Parameters
    ----------
    model : estimator
        Fitted model.
    path : str or path-like
        File to write.
    dtype : {"float64", "float32"}, default="float64"
        Type of ``X``. The graph computes in float64 either way.

    Raises
    ------
    TypeError
        If the model or its kernel cannot be written as an ONNX graph; the message names it.

    Notes
    -----
    Before it is written, the file's outputs are compared with the model's at the model's vectors and at rows mixed from
    them, and its `doc_string` states the largest difference. A row whose f is 0 up to rounding, such as a support
    vector on the boundary, may get the other label. Distances are computed by matrix products if these are accurate
    enough, and otherwise from differences, column by column, which takes longer.
    """
    content = onnx_model(model, dtype=dtype).SerializeToString()
    with replacing(path) as file:
        file.write(content)


def onnx_model(model: Any, *, dtype: str = "float64") -> Any:
    """Return the graph as an ``onnx.ModelProto``, checked by onnx."""
    if dtype not in _INPUTS:
        raise ValueError(f"dtype={dtype!r} must be one of {', '.join(map(repr, _INPUTS))}")
    onnx = require("onnx", "ONNX export")
    parts = Parts.of(model, medium="an ONNX file")
    if parts.recipe.inner == "l1":
        raise TypeError(f"ONNX has no operators for the kernel of {parts.description}; use mercer.save or pickle")
    graph = _Graph(onnx)
    values = graph.add("Cast", ["X"], to=onnx.TensorProto.DOUBLE) if dtype == "float32" else "X"
    for scaling in parts.scalings:
        values = _scale_rows(graph, scaling, values)
    decision = _decision(graph, parts, values)
    graph.add("Identity", [decision], "decision")
    outputs = [("decision", "DOUBLE")]
    if parts.labels is not None:
        outputs.append(("label", _label(graph, parts, decision)))
    model_proto = graph.model(parts.n_features, outputs, _INPUTS[dtype])
    model_proto.doc_string = _check_accuracy(model_proto, parts, dtype)
    return model_proto


def _check_accuracy(model_proto: Any, parts: Parts, dtype: str) -> str:
    """Compare the graph, as onnx evaluates it, with the model; return the difference in words, or raise."""
    from onnx.reference import ReferenceEvaluator

    rows = parts.rows_to_try(dtype, f"an ONNX file of dtype={dtype!r}")
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        answers: Any = ReferenceEvaluator(model_proto).run(["decision"], {"X": rows})
    difference = parts.difference(rows.astype(np.float64), answers[0])
    if not difference <= LARGEST_DIFFERENCE:
        raise TypeError(
            f"an ONNX file would not reproduce {parts.description}: matrix products lose the digits of its kernel "
            f"values, and its outputs would be off by {difference:.2g} of the largest; standardise the features before "
            "training, or use mercer.save"
        )
    return (
        f"{parts.description}. Outputs differed from Python's by at most {difference:.1e} of the largest at "
        f"{len(rows)} rows tried."
    )


class _Graph:
    """Builder of a graph: its nodes and constants."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Any) -> str:
        """Add a constant and return its name."""
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
        """Add a node and return the name of its output."""
        name = output or f"t{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, inputs, [name], **attributes))
        return name

    # Arithmetic on names of nodes, which mercer.kernels.recipe.apply_ending calls.

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
        """Sort every row in ascending order, by the first output of TopK."""
        name, indices = f"t{len(self.nodes)}", f"t{len(self.nodes)}_places"
        node = self.onnx.helper.make_node(
            "TopK", [values, self.constant([width])], [name, indices], largest=0, sorted=1
        )
        self.nodes.append(node)
        return name

    def model(self, n_features: int, outputs: list[tuple[str, str]], input_type: str) -> Any:
        """Return the finished model, checked by onnx."""
        helper, types = self.onnx.helper, self.onnx.TensorProto
        input_info = [helper.make_tensor_value_info("X", getattr(types, input_type), ["rows", n_features])]
        output_info = [
            helper.make_tensor_value_info(
                name, getattr(types, kind), ["rows", None] if name == "decision" else ["rows"]
            )
            for name, kind in outputs
        ]
        graph = helper.make_graph(self.nodes, "mercer", input_info, output_info, self.constants)
        onnx_model = helper.make_model(
            graph,
            producer_name="mercer",
            producer_version=mercer.__version__,
            opset_imports=[helper.make_opsetid("", 17)],
            ir_version=8,
        )
        self.onnx.checker.check_model(onnx_model, full_check=True)
        return onnx_model


def _scale_rows(graph: _Graph, scaling: Scaling, values: str) -> str:
    """Add the nodes of a scaling; return the name of the scaled rows."""
    values = graph.add("Sub", [values, graph.constant(scaling.shift)]) if scaling.shift.any() else values
    values = graph.add("Div", [values, graph.constant(scaling.divisor)]) if (scaling.divisor != 1).any() else values
    if scaling.low is not None and scaling.high is not None:
        at_least = graph.add("Max", [values, graph.constant(float(scaling.low))])
        values = graph.add("Min", [at_least, graph.constant(float(scaling.high))])
    return values


def _decision(graph: _Graph, parts: Parts, values: str) -> str:
    """Add the outputs, a column each: f; for SVDD R² − ‖φ(x) − a‖² = 2f − k(x, x); for quantiles f sorted."""
    f, diagonal = _outputs(graph, parts, values)
    if parts.ball:
        return graph.add("Sub", [graph.times(f, 2.0), diagonal])
    if parts.rank is not None:
        return graph.add("Gather", [graph.sort(f, len(parts.rank)), graph.constant(parts.rank)], axis=1)
    return f


def _outputs(graph: _Graph, parts: Parts, values: str) -> tuple[str, str]:
    """Add Σ β k(x_j, x) + b, a column per output, and k(x, x) if the machine is a ball; return the names of both."""
    recipe, vectors = parts.recipe, parts.vectors
    if recipe.factor is not None:
        vectors = vectors @ recipe.factor
        values = graph.add("MatMul", [values, graph.constant(recipe.factor)])
    if recipe.normalise:
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors = vectors / np.where(lengths > 0, lengths, 1.0)
        length = graph.add("ReduceL2", [values], axes=[1], keepdims=1)
        is_zero = graph.add("Equal", [length, graph.constant(0.0)])
        values = graph.add("Div", [values, graph.add("Where", [is_zero, graph.constant(1.0), length])])
    # Runtimes may fuse a scalar factor that follows a matrix product into it as float32; the 2 of a distance survives
    # that, γ would not.
    gamma, numbers = (recipe.numbers[0], (1.0, *recipe.numbers[1:])) if recipe.numbers else (1.0, ())
    if recipe.inner == "sqdist":
        t = graph.times(_squared_distances(graph, values, vectors, gamma), gamma)
    else:
        t = graph.add("MatMul", [values, graph.constant((gamma * vectors).T)])
    K = apply_ending(recipe.ending, numbers, t, graph)
    linear = _is_identity(parts.table)  # each output of a linear machine has one vector, its w
    sums = K if linear else graph.add("MatMul", [K, graph.constant(dense(parts.table))])
    f = graph.add("Add", [sums, graph.constant(parts.offset)])
    if not parts.ball:
        return f, ""
    if recipe.inner == "sqdist":
        return f, graph.constant(recipe.scale + recipe.constant)
    self_product = graph.times(graph.add("ReduceSumSquare", [values], axes=[1], keepdims=1), gamma)
    diagonal = graph.times(apply_ending(recipe.ending, numbers, self_product, graph), recipe.scale)
    return f, graph.plus(diagonal, recipe.constant)


def _squared_distances(graph: _Graph, values: str, vectors: Floats, gamma: float) -> str:
    """Add ‖x − z‖² for every row x and vector z, by matrix products if they are accurate enough for γ‖x − z‖²."""
    centre = vectors.mean(axis=0)  # a common offset of all rows cancels before it is squared
    with np.errstate(over="ignore"):
        squares = ((vectors - centre) ** 2).sum(axis=1)
    if not abs(gamma) * squares.max() <= _LARGEST_EXPONENT:
        return _summed_differences(graph, values, vectors)
    values = graph.add("Sub", [values, graph.constant(centre)])
    products = graph.add("MatMul", [values, graph.constant((vectors - centre).T)])
    row_squares = graph.add("ReduceSumSquare", [values], axes=[1], keepdims=1)
    square_sums = graph.add("Add", [row_squares, graph.constant(squares)])
    return graph.add("Max", [graph.add("Sub", [square_sums, graph.times(products, 2.0)]), graph.constant(0.0)])


def _summed_differences(graph: _Graph, values: str, vectors: Floats) -> str:
    """Add Σ_j (x_j − z_j)², column by column, so that at most rows × vectors numbers are in memory."""
    total = ""
    for j, column in enumerate(vectors.T):
        row_column = graph.add("Gather", [values, graph.constant([j])], axis=1)
        difference = graph.add("Sub", [row_column, graph.constant(column[None])])
        square = graph.add("Mul", [difference, difference])
        total = graph.add("Add", [total, square]) if total else square
    return total


def _is_identity(table: Any) -> bool:
    """Return whether coefficients are a sparse identity matrix."""
    n = table.shape[0]
    return is_sparse(table) and table.shape == (n, n) and table.nnz == n and bool((table.diagonal() == 1).all())


def _label(graph: _Graph, parts: Parts, decision: str) -> str:
    """Add the output ``label`` by sign, by the largest f or by votes; return its type."""
    if parts.decides == "sign":
        at_least = graph.add(
            "Cast", [graph.add("GreaterOrEqual", [decision, graph.constant(0.0)])], to=graph.onnx.TensorProto.INT64
        )
        code = graph.add("Squeeze", [at_least, graph.constant([1])])
    else:
        has_votes = parts.decides in ("votes", "scores")
        class_scores = _votes(graph, len(parts.labels), decision, parts.decides == "scores") if has_votes else decision
        code = graph.add("ArgMax", [class_scores], axis=1, keepdims=0)
    classes, kind = _classes(parts)
    graph.add("Gather", [graph.constant(classes), code], "label", axis=0)
    return kind


def _classes(parts: Parts) -> tuple[Any, str]:
    """Return the labels and their ONNX type; floats that are all integers become integers."""
    labels = parts.labels
    if is_text(labels):
        return labels, "STRING"
    if labels.dtype.kind == "f" and ((labels % 1 != 0) | (np.abs(labels) >= 2**53)).any():
        return labels.astype(np.float64), "DOUBLE"
    if labels.dtype.kind not in "biuf" or (labels.dtype.kind == "u" and labels.max() >= 2**63):
        raise TypeError(
            f"class labels in an ONNX file must be text, 64-bit integers or float64, not {labels.tolist()!r:.80} "
            f"(dtype {labels.dtype}); rename the classes of {parts.description}"
        )
    return labels.astype(np.int64), "INT64"


def _votes(graph: _Graph, k: int, decision: str, break_ties: bool) -> str:
    """Add the votes of each class; with break_ties, add its confidence to them, scaled to less than half a vote."""
    pairs = class_pairs(k)
    sign = np.array([[float(c == i) - float(c == j) for c in range(k)] for i, j in pairs])
    n_as_second = np.array([sum(float(c == j) for _, j in pairs) for c in range(k)])
    first_class_wins = graph.add(
        "Cast", [graph.add("Greater", [decision, graph.constant(0.0)])], to=graph.onnx.TensorProto.DOUBLE
    )
    votes = graph.add(
        "Add", [graph.add("MatMul", [first_class_wins, graph.constant(sign)]), graph.constant(n_as_second)]
    )
    if not break_ties:
        return votes
    confidence = graph.add("MatMul", [decision, graph.constant(sign)])
    size = graph.add(
        "Add", [graph.add("Mul", [graph.add("Abs", [confidence]), graph.constant(3.0)]), graph.constant(3.0)]
    )
    return graph.add("Add", [votes, graph.add("Div", [confidence, size])])
