"""ONNX export: the decision function of a machine as a graph of plain operators, in float64.

ONNX has an operator for support vector machines, but only in float32 and with rules of its own for signs and ties;
the graph here computes what `predict` computes: kernel values from a matrix product, decision values, votes, label. It
takes the kernels that a matrix product leads to (linear, polynomial, Gaussian, sigmoid, cosine) and multiples of them.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

import mercer
from mercer.data.labels import every_pair
from mercer.expansion import Expansion
from mercer.files.atomic_write import replacing
from mercer.fitting.pipeline.kinds import has_function_per_class
from mercer.fitting.pipeline.state import chosen_of
from mercer.kernels import Recipe
from mercer.kernels.matrices import dense
from mercer.optional import require
from mercer.tables.as_pipeline import as_pipeline
from mercer.tables.estimator import Tabular
from mercer.unsupervised.learner import Learner

_INPUTS = {"float64": "DOUBLE", "float32": "FLOAT"}
_OPSET = 17
_IR_VERSION = 8


def export_onnx(model: Any, path: str | os.PathLike[str], *, dtype: str = "float64") -> None:
    """Write a fitted machine, a Pipeline of StandardScalers and one, or a `Tabular` of numbers, as an ONNX file.

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
        For a kernel that ONNX cannot compute this way; the message names it.
    """
    content = onnx_model(model, dtype=dtype).SerializeToString()
    with replacing(path) as file:
        file.write(content)


def onnx_model(model: Any, *, dtype: str = "float64") -> Any:
    """The same as an ``onnx.ModelProto``, checked by onnx."""
    if dtype not in _INPUTS:
        raise ValueError(f"dtype={dtype!r} must be one of {', '.join(map(repr, _INPUTS))}")
    onnx = require("onnx", "ONNX export")
    check_is_fitted(model)
    model = chosen_of(model)
    model = as_pipeline(model) if isinstance(model, Tabular) else model
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    *scalers, machine = steps
    if isinstance(machine, Learner):
        raise TypeError(f"an ONNX file predicts a target, and {type(machine).__name__} has none; use mercer.save")
    if not all(type(step) is StandardScaler for step in scalers) or not (
        isinstance(getattr(machine, "_expansion_", None), Expansion) or _keeps_weights(machine)
    ):
        told = " ".join(repr(model).split())
        raise TypeError(f"{told} is no machine of mercer, nor a Pipeline of StandardScalers and one")
    graph = _Graph(onnx)
    values = graph.add("Cast", ["X"], to=onnx.TensorProto.DOUBLE) if dtype == "float32" else "X"
    for scaler in scalers:
        values = _standardised(graph, scaler, values)
    decision = _weighted(graph, machine, values) if _keeps_weights(machine) else _expanded(graph, machine, values)
    graph.add("Identity", [decision], "decision")
    outputs = [("decision", "DOUBLE")]
    if hasattr(machine, "classes_"):
        outputs.append(("label", _label(graph, machine, decision)))
    elif isinstance(machine, OutlierMixin):
        sign = _code(graph, decision)
        outputs.append(("label", _named(graph, np.array([-1, 1]), sign)))
    return graph.model(int(steps[0].n_features_in_), outputs, _INPUTS[dtype])


def _keeps_weights(machine: Any) -> bool:
    """Whether it has w rather than vectors: the linear machines."""
    return type(machine).__module__.startswith("mercer.") and "coef_" in vars(machine) and "intercept_" in vars(machine)


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


def _weighted(graph: _Graph, machine: Any, values: str) -> str:
    """w'x + b, one column for each output."""
    w = np.ascontiguousarray(np.atleast_2d(machine.coef_).T, dtype=np.float64)
    return graph.add("Add", [graph.add("MatMul", [values, graph.constant(w)]), graph.constant(machine.intercept_)])


def _expanded(graph: _Graph, machine: Any, values: str) -> str:
    """What a machine with vectors decides by: f, for SVDD R² − ‖φ(x) − a‖², for quantiles f in their order."""
    expansion: Expansion = machine._expansion_
    recipe = expansion.kernel.recipe() if expansion.kernel.accepts == "vectors" else None
    if recipe is None or recipe.inner == "l1":
        raise TypeError(f"ONNX has no operators for the kernel {expansion.kernel}; use mercer.save or pickle")
    f, own = _decision(graph, expansion, recipe, values, own=machine.F_LESS_OWN)
    if own is not None:
        return graph.add("Sub", [graph.add("Mul", [f, graph.constant(machine.F_SCALE)]), own])
    if hasattr(machine, "quantiles_") and len(expansion.b) > 1:
        rank = np.argsort(np.argsort(machine.quantiles_, kind="stable"), kind="stable")
        rising = graph.sort(f, len(rank))
        return graph.add("Gather", [rising, graph.constant(rank)], axis=1)
    return f


def _decision(graph: _Graph, expansion: Expansion, recipe: Recipe, values: str, own: bool) -> tuple[str, str | None]:
    """Σ β k(x_j, x) + b, one column for each output; and k(x, x) where it is asked for."""
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
    square = graph.add("ReduceSumSquare", [values], axes=[1], keepdims=1)
    if recipe.inner == "sqdist":
        both = graph.add("Add", [square, graph.constant((vectors**2).sum(axis=1))])
        t = graph.add("Sub", [both, graph.add("Mul", [t, graph.constant(2.0)])])
        t = graph.add("Mul", [graph.add("Max", [t, graph.constant(0.0)]), graph.constant(float(gamma))])
    K = _ended(graph, recipe, t)
    table = np.asarray(dense(expansion.coefficients), dtype=np.float64) * recipe.scale
    b = expansion.b + recipe.constant * np.asarray(expansion.coefficients.sum(axis=0)).ravel()
    f = graph.add("Add", [graph.add("MatMul", [K, graph.constant(table)]), graph.constant(b)])
    if not own:
        return f, None
    with_itself = graph.add("Mul", [square, graph.constant(0.0 if recipe.inner == "sqdist" else float(gamma))])
    own_value = graph.add("Mul", [_ended(graph, recipe, with_itself), graph.constant(float(recipe.scale))])
    return f, graph.add("Add", [own_value, graph.constant(float(recipe.constant))])


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


def _label(graph: _Graph, machine: Any, decision: str) -> str:
    """The class, by sign, by the largest f or by votes; and the type of the output."""
    k = len(machine.classes_)
    if k == 2:
        code = _code(graph, decision)
    elif not hasattr(machine, "break_ties") or has_function_per_class(machine):  # only machines of pairs have votes
        code = graph.add("ArgMax", [decision], axis=1, keepdims=0)
    else:
        code = graph.add("ArgMax", [_votes(graph, k, decision, machine.break_ties)], axis=1, keepdims=0)
    return _named(graph, machine.classes_, code)


def _code(graph: _Graph, decision: str) -> str:
    """1 where f ≥ 0, else 0."""
    at_least = graph.add("GreaterOrEqual", [decision, graph.constant(0.0)])
    return graph.add("Squeeze", [graph.add("Cast", [at_least], to=graph.onnx.TensorProto.INT64), graph.constant([1])])


def _votes(graph: _Graph, k: int, decision: str, break_ties: bool) -> str:
    """How many of its pairs each class wins; with break_ties, and by how much, squeezed into less than half a vote."""
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


def _named(graph: _Graph, classes: Any, code: str) -> str:
    """The output ``label``, and its type."""
    strings = classes.dtype.kind in "UO"
    graph.add("Gather", [graph.constant(classes if strings else classes.astype(np.int64)), code], "label", axis=0)
    return "STRING" if strings else "INT64"
