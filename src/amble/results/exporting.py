"""A model as others have it: a fitted pipeline of scikit-learn, and a graph of ONNX."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from amble.arrays import Array
from amble.errors import AmbleError, need
from amble.files import write_whole
from amble.problem.assemble import Scaling

OPSET, IR = 17, 10  # of ONNX: what runtimes since 2022 know, and onnxruntime since 1.18


def pipeline(
    loss: str,
    W: Array,
    scaling: Scaling,
    intercept: bool,
    labels: Sequence[Any],
    names: Sequence[str] | None,
    penalty: Mapping[str, float],
) -> Any:
    """StandardScaler with the agreed scaling, then the estimator of the loss."""
    scaler = need("sklearn.preprocessing", "sim").StandardScaler()
    scaler.mean_, scaler.scale_, scaler.var_ = scaling.X_mean, scaling.X_std, scaling.X_std**2
    scaler.n_features_in_, scaler.n_samples_seen_ = len(scaling.X_mean), 1
    if names is not None:
        scaler.feature_names_in_ = np.array(names, dtype=object)
    p = len(scaling.X_mean)
    estimator = _estimator(loss, intercept, penalty)
    coefficients = scaling.y_std * W[:, :p]
    constants = scaling.y_mean + scaling.y_std * (W[:, p] if intercept else np.zeros(len(W)))
    estimator.n_features_in_ = p
    if labels:
        estimator.classes_ = np.asarray(labels)
        estimator.coef_, estimator.intercept_ = coefficients, constants
        estimator.n_iter_ = np.ones(1, np.int32)
    else:
        estimator.coef_, estimator.intercept_ = coefficients[0], float(constants[0])
    if loss == "huber":
        estimator.scale_ = scaling.y_std
    return need("sklearn.pipeline", "sim").make_pipeline(scaler, estimator)


def _estimator(loss: str, intercept: bool, penalty: Mapping[str, float]) -> Any:
    linear_model = need("sklearn.linear_model", "sim")
    ridge = float(penalty.get("ridge", 0.0))
    if loss == "least-squares":
        return (
            linear_model.Ridge(alpha=ridge, fit_intercept=intercept)
            if ridge
            else linear_model.LinearRegression(fit_intercept=intercept)
        )
    if loss in ("logistic", "softmax"):
        return linear_model.LogisticRegression(C=1 / ridge if ridge else np.inf, fit_intercept=intercept)
    if loss == "huber":
        return linear_model.HuberRegressor(alpha=ridge, fit_intercept=intercept)
    if loss in ("poisson", "gamma"):
        kind = linear_model.PoissonRegressor if loss == "poisson" else linear_model.GammaRegressor
        estimator = kind(alpha=ridge, fit_intercept=intercept)
        estimator._base_loss = estimator._get_loss()  # which fit sets, and predict asks for its link
        return estimator
    raise AmbleError(f"scikit-learn has no estimator of loss {loss}; use the model's own predict.")


def write_onnx(path: Path, loss: str, coefficients: Array, intercepts: Array, labels: Sequence[Any]) -> Path:
    """X @ coefficients' + intercepts, and what the loss makes of it, in 64-bit floats."""
    onnx = need("onnx", "onnx")
    helper, double = onnx.helper, onnx.TensorProto.DOUBLE

    numbers = {"coefficients": np.ascontiguousarray(coefficients.T), "intercepts": intercepts}
    nodes = [helper.make_node("MatMul", ["X", "coefficients"], ["product"])]
    nodes.append(helper.make_node("Add", ["product", "intercepts"], ["eta"]))
    flat = np.array([-1])
    outputs = []
    if not labels:
        numbers["flat"] = flat
        nodes.append(
            helper.make_node("Exp", ["eta"], ["mean"])
            if loss in ("poisson", "gamma")
            else helper.make_node("Identity", ["eta"], ["mean"])
        )
        nodes.append(helper.make_node("Reshape", ["mean", "flat"], ["prediction"]))
        kind = double
    else:
        if len(labels) == 2:
            numbers["signs"] = np.array([[0.0, 1.0]])  # the odds of the first label are one
            nodes.append(helper.make_node("MatMul", ["eta", "signs"], ["odds"]))
        else:
            nodes.append(helper.make_node("Identity", ["eta"], ["odds"]))
        nodes.append(helper.make_node("Softmax", ["odds"], ["probabilities"], axis=1))
        nodes.append(helper.make_node("ArgMax", ["odds"], ["place"], axis=1, keepdims=0))
        nodes.append(helper.make_node("Gather", ["labels", "place"], ["prediction"]))
        numbers["labels"] = np.asarray(labels, dtype=object if isinstance(labels[0], str) else None)
        kind = helper.np_dtype_to_tensor_dtype(numbers["labels"].dtype)
        outputs.append(helper.make_tensor_value_info("probabilities", double, [None, len(labels)]))
    graph = helper.make_graph(
        nodes,
        "amble",
        [helper.make_tensor_value_info("X", double, [None, len(coefficients[0])])],
        [helper.make_tensor_value_info("prediction", kind, [None]), *outputs],
        [onnx.numpy_helper.from_array(array, name) for name, array in numbers.items()],
    )
    made = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR, producer_name="amble"
    )
    onnx.checker.check_model(made)
    write_whole({path: made.SerializeToString()})
    return path
