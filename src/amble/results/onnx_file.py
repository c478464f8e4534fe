"""A model as a graph of ONNX, in 64-bit floats: from the table's columns to the predictions.

The graph is written node by node. skl2onnx would make one of `to_sklearn()`, but it has no form for a text column whose
missing cells are filled.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from amble.arrays import Array
from amble.errors import AmbleError, need
from amble.files import write_whole
from amble.problem.assemble import Scaling
from amble.results.exporting import on_scaled
from amble.survey.agreed import Feature

OUTPUTS = ("prediction", "probabilities")
OPSET, ML, IR = 17, 2, 10  # what runtimes since 2022 know, and onnxruntime since 1.18


def write_onnx(
    path: Path,
    loss: str,
    W: Array,
    scaling: Scaling,
    intercept: bool,
    labels: Sequence[Any],
    columns: Sequence[str],
    features: Sequence[Feature] | None,
) -> Path:
    """Rows as one array X in the model's columns; where these are made from others (`features`), one input per column
    of the table."""
    onnx = need("onnx", "onnx")
    graph = Graph(onnx)
    rows = graph.rows(len(columns)) if features is None else graph.encoded(features, columns)
    coefficients, constants = on_scaled(W, scaling, intercept)
    # scaled first: in its own units a column far from zero would cost digits
    rows = graph("Div", graph("Sub", rows, graph.constant(scaling.X_mean)), graph.constant(scaling.X_std))
    eta = graph("Add", graph("MatMul", rows, graph.constant(coefficients.T)), graph.constant(constants))
    if labels:
        graph.chosen(eta, labels)
    else:
        mean = graph("Exp", eta) if loss in ("poisson", "gamma") else eta
        graph("Reshape", mean, graph.constant(np.array([-1])), name="prediction")
        graph.outputs.append(onnx.helper.make_tensor_value_info("prediction", graph.double, [None]))
    made = onnx.helper.make_model(
        onnx.helper.make_graph(graph.nodes, "amble", graph.inputs, graph.outputs, graph.constants),
        opset_imports=[onnx.helper.make_opsetid("", OPSET), onnx.helper.make_opsetid("ai.onnx.ml", ML)],
        ir_version=IR,
        producer_name="amble",
    )
    onnx.helper.set_model_props(made, {"columns": json.dumps(list(columns), ensure_ascii=False)})
    onnx.checker.check_model(made)
    write_whole({path: made.SerializeToString()})
    return path


class Graph:
    """The parts of a graph; calling it adds a node and returns the name of its output."""

    def __init__(self, onnx: Any) -> None:
        self.onnx, self.double = onnx, onnx.TensorProto.DOUBLE
        self.nodes: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self.constants: list[Any] = []

    def __call__(self, kind: str, *inputs: str, name: str | None = None, **settings: Any) -> str:
        name = name or f"#{kind} {len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, list(inputs), [name], **settings))
        return name

    def constant(self, array: Array) -> str:
        name = f"#constant {len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def rows(self, width: int) -> str:
        self.inputs.append(self.onnx.helper.make_tensor_value_info("X", self.double, [None, width]))
        return "X"

    def encoded(self, features: Sequence[Feature], columns: Sequence[str]) -> str:
        """The model's columns, from a column of numbers or of text per feature; each (d, 1)."""
        blocks = []
        for feature in features:
            if not set(feature.columns) & set(columns):  # text with one level
                continue
            if feature.name in OUTPUTS:
                raise AmbleError(f"the column {feature.name!r} has the name of an output; rename it, and train again.")
            kind = self.double if feature.levels is None else self.onnx.TensorProto.STRING
            self.inputs.append(self.onnx.helper.make_tensor_value_info(feature.name, kind, [None, 1]))
            blocks.append(self._numbers(feature) if feature.levels is None else self._levels(feature, columns))
        return self("Concat", *blocks, axis=1)

    def _numbers(self, feature: Feature) -> str:
        """nan is a missing cell."""
        if feature.fill is None:
            return feature.name
        return self("Where", self("IsNaN", feature.name), self.constant(np.array(float(feature.fill))), feature.name)

    def _levels(self, feature: Feature, columns: Sequence[str]) -> str:
        """One column of 0 and 1 per level that has one; an empty text is a missing cell. A level that training did not
        have has a place beyond the last, which runtimes refuse."""
        levels = list(feature.levels or ())
        places = {level: place for place, level in enumerate(levels)}
        if feature.fill is not None:
            places[""] = places[str(feature.fill)]
        keys: dict[str, Any] = {"keys_strings": list(places), "values_int64s": list(places.values())}
        place = self("LabelEncoder", feature.name, domain="ai.onnx.ml", default_int64=len(levels), **keys)
        kept = [made in columns for made in feature.columns]
        block = self("Gather", self.constant(np.eye(len(levels))[:, kept]), place)
        return self("Reshape", block, self.constant(np.array([-1, sum(kept)])))

    def chosen(self, eta: str, labels: Sequence[Any]) -> None:
        """The label of the largest predictor, and all probabilities."""
        helper = self.onnx.helper
        if len(labels) == 2:
            eta = self("MatMul", eta, self.constant(np.array([[0.0, 1.0]])))  # the odds of the first label are one
        self("Softmax", eta, name="probabilities", axis=1)
        known = np.asarray(labels, dtype=object if isinstance(labels[0], str) else None)
        kind = helper.np_dtype_to_tensor_dtype(known.dtype)
        self("Gather", self.constant(known), self("ArgMax", eta, axis=1, keepdims=0), name="prediction")
        self.outputs.append(helper.make_tensor_value_info("prediction", kind, [None]))
        self.outputs.append(helper.make_tensor_value_info("probabilities", self.double, [None, len(labels)]))
