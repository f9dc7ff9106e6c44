"""ONNX export: the decision function of a machine as a graph of plain operators, in float64.

ONNX has an operator for support vector machines, but only in float32 and with rules of its own for signs and ties;
the graph here computes what `predict` computes: kernel values from a matrix product, decision values, votes, label. It
takes the kernels that a matrix product leads to (linear, polynomial, Gaussian, sigmoid, cosine) and multiples of them.
"""

from __future__ import annotations

import os
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

import mercer
from mercer.expansion import Expansion
from mercer.files.atomic_write import replacing
from mercer.kernels import Recipe
from mercer.kernels.matrices import dense
from mercer.optional import require

_OPSET = 17
_IR_VERSION = 8


def export_onnx(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted machine, or a Pipeline of StandardScalers and one, as an ONNX file.

    The graph has the input ``X`` (float64, rows × features) and the outputs ``decision`` (float64; one column, or one
    for each pair of classes) and ``label`` (the class, ±1 for a one-class machine; regression has none).

    Parameters
    ----------
    model : estimator
    path : str or path-like

    Raises
    ------
    TypeError
        For a kernel that ONNX cannot compute this way; the message names it.
    """
    content = onnx_model(model).SerializeToString()
    with replacing(path) as file:
        file.write(content)


def onnx_model(model: Any) -> Any:
    """The same as an ``onnx.ModelProto``, checked by onnx."""
    onnx = require("onnx", "ONNX export")
    check_is_fitted(model)
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    *scalers, machine = steps
    if not all(type(step) is StandardScaler for step in scalers) or not isinstance(
        getattr(machine, "_expansion_", None), Expansion
    ):
        raise TypeError(f"{model!r} is no machine of mercer, nor a Pipeline of StandardScalers and one")
    graph = _Graph(onnx)
    values = "X"
    for scaler in scalers:
        values = _standardised(graph, scaler, values)
    expansion: Expansion = machine._expansion_
    recipe = expansion.kernel.recipe() if expansion.kernel.accepts == "vectors" else None
    if recipe is None or recipe.inner == "l1":
        raise TypeError(f"ONNX has no operators for the kernel {expansion.kernel}; use mercer.save or pickle")
    decision = _decision(graph, expansion, recipe, values)
    graph.add("Identity", [decision], "decision")
    outputs = [("decision", "DOUBLE")]
    if hasattr(machine, "classes_"):
        outputs.append(("label", _label(graph, machine.classes_, decision)))
    elif hasattr(machine, "offset_"):
        outputs.append(("label", _label(graph, np.array([-1, 1]), decision)))
    return graph.model(int(steps[0].n_features_in_), outputs)


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

    def model(self, n_features: int, outputs: list[tuple[str, str]]) -> Any:
        helper, types = self.onnx.helper, self.onnx.TensorProto
        given = [helper.make_tensor_value_info("X", types.DOUBLE, ["rows", n_features])]
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
            opset_imports=[helper.make_opsetid("", _OPSET)],
            ir_version=_IR_VERSION,
        )
        self.onnx.checker.check_model(built, full_check=True)
        return built


def _standardised(graph: _Graph, scaler: StandardScaler, values: str) -> str:
    if scaler.with_mean:
        values = graph.add("Sub", [values, graph.constant(scaler.mean_)])
    if scaler.with_std:
        values = graph.add("Div", [values, graph.constant(scaler.scale_)])
    return values


def _decision(graph: _Graph, expansion: Expansion, recipe: Recipe, values: str) -> str:
    """Σ β k(x_j, x) + b, one column for each output."""
    vectors = np.asarray(dense(expansion.vectors), dtype=np.float64)
    if recipe.factor is not None:
        vectors = vectors @ recipe.factor
        values = graph.add("MatMul", [values, graph.constant(recipe.factor)])
    if recipe.normalise:
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors = vectors / np.where(lengths > 0, lengths, 1.0)
        length = graph.add("ReduceL2", [values], axes=[1], keepdims=1)
        none = graph.add("Equal", [length, graph.constant(0.0)])
        values = graph.add("Div", [values, graph.add("Where", [none, graph.constant(1.0), length])])
    if recipe.inner == "sqdist":
        # Around the middle of the vectors, so that an offset of the data cancels before it is squared.
        centre = vectors.mean(axis=0) if len(vectors) else np.zeros(vectors.shape[1])
        vectors = vectors - centre
        values = graph.add("Sub", [values, graph.constant(centre)])
    # Runtimes may turn a product with a number that follows a matrix product into a float32 factor of it; the 2 of a
    # distance survives that, γ would not.
    gamma = recipe.numbers[0] if recipe.numbers else 1.0
    t = graph.add("MatMul", [values, graph.constant((vectors if recipe.inner == "sqdist" else gamma * vectors).T)])
    if recipe.inner == "sqdist":
        square = graph.add("ReduceSumSquare", [values], axes=[1], keepdims=1)
        both = graph.add("Add", [square, graph.constant((vectors**2).sum(axis=1))])
        t = graph.add("Sub", [both, graph.add("Mul", [t, graph.constant(2.0)])])
        t = graph.add("Mul", [graph.add("Max", [t, graph.constant(0.0)]), graph.constant(float(gamma))])
    K = _ended(graph, recipe, t)
    table = np.asarray(dense(expansion.coefficients), dtype=np.float64) * recipe.scale
    return graph.add("Add", [graph.add("MatMul", [K, graph.constant(table)]), graph.constant(expansion.b)])


def _ended(graph: _Graph, recipe: Recipe, t: str) -> str:
    """The kernel of γ times its inner number."""
    if recipe.ending == "identity":
        return t
    if recipe.ending == "gaussian":
        return graph.add("Exp", [graph.add("Neg", [t])])
    t = graph.add("Add", [t, graph.constant(float(recipe.numbers[1]))])
    if recipe.ending == "sigmoid":
        return graph.add("Tanh", [t])
    return graph.add("Pow", [t, graph.constant(float(recipe.numbers[2]))])


def _label(graph: _Graph, classes: Any, decision: str) -> str:
    """The class, by sign or by votes, and the type of the output."""
    if len(classes) == 2:
        at_least = graph.add("GreaterOrEqual", [decision, graph.constant(0.0)])
        code = graph.add(
            "Squeeze", [graph.add("Cast", [at_least], to=graph.onnx.TensorProto.INT64), graph.constant([1])]
        )
    else:
        pairs = list(combinations(range(len(classes)), 2))
        won = np.array(
            [[float(c == i) - float(c == j) for c in range(len(classes))] for i, j in pairs], dtype=np.float32
        )
        lost = np.array([sum(float(c == j) for _, j in pairs) for c in range(len(classes))], dtype=np.float32)
        wins = graph.add("Greater", [decision, graph.constant(0.0)])
        wins = graph.add("Cast", [wins], to=graph.onnx.TensorProto.FLOAT)
        votes = graph.add("Add", [graph.add("MatMul", [wins, graph.constant(won)]), graph.constant(lost)])
        code = graph.add("ArgMax", [votes], axis=1, keepdims=0)
    strings = classes.dtype.kind in "UO"
    graph.add("Gather", [graph.constant(classes if strings else classes.astype(np.int64)), code], "label", axis=0)
    return "STRING" if strings else "INT64"
