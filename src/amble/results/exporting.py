"""A model as others have it: a fitted pipeline of scikit-learn, and a graph of ONNX."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from amble.arrays import Array
from amble.errors import AmbleError, need
from amble.files import write_whole
from amble.problem.assemble import Scaling
from amble.results.tables import About, features_of
from amble.survey.agreed import Feature

OPSET, IR = 17, 10  # of ONNX: what runtimes since 2022 know, and onnxruntime since 1.18


def pipeline(
    loss: str,
    W: Array,
    scaling: Scaling,
    intercept: bool,
    labels: Sequence[Any],
    columns: int | Sequence[str],
    penalty: Mapping[str, float],
    about: About,
) -> Any:
    """StandardScaler with the agreed scaling, then the estimator of the loss; before them, where the model's columns
    are not the table's, what encodes these."""
    scaler = need("sklearn.preprocessing", "sim").StandardScaler()
    scaler.mean_, scaler.scale_, scaler.var_ = scaling.X_mean, scaling.X_std, scaling.X_std**2
    scaler.n_features_in_, scaler.n_samples_seen_ = len(scaling.X_mean), 1
    features = features_of(columns, about)
    if not isinstance(columns, int) and features is None:
        scaler.feature_names_in_ = np.array(columns, dtype=object)
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
        estimator.coef_, estimator.intercept_ = coefficients[0], constants[0]
    if loss == "huber":
        estimator.scale_ = scaling.y_std
    first = [] if features is None or isinstance(columns, int) else [_encoder(features, columns)]
    return need("sklearn.pipeline", "sim").make_pipeline(*first, scaler, estimator)


def _encoder(features: Sequence[Feature], names: Sequence[str]) -> Any:
    """A ColumnTransformer from the table's columns to the model's, fitted on one row: its cells are the fills, whose
    mean and most frequent value they are."""
    impute, preprocessing = need("sklearn.impute", "sim"), need("sklearn.preprocessing", "sim")
    make = need("sklearn.pipeline", "sim").make_pipeline
    parts = []
    for k, (text, group) in enumerate(groupby(features, lambda feature: feature.levels is not None)):
        block, steps = list(group), []
        if block[0].fill is not None:
            steps.append(impute.SimpleImputer(strategy="most_frequent" if text else "mean"))
        if text:
            levels = [np.array(feature.levels, dtype=object) for feature in block]
            pairs = [
                (level, made) for each in block for level, made in zip(each.levels or (), each.columns, strict=True)
            ]
            drop = [level for level, made in pairs if made not in names]  # one per feature, or none at all
            steps.append(preprocessing.OneHotEncoder(categories=levels, drop=drop or None, sparse_output=False))
        chosen = [feature.name for feature in block]
        parts.append((f"{'text' if text else 'numbers'}{k + 1}", make(*steps) if steps else "passthrough", chosen))
    row = {feature.name: [feature.fill if feature.fill is not None else _any(feature)] for feature in features}
    encoder = need("sklearn.compose", "sim").ColumnTransformer(parts, sparse_threshold=0.0)
    return encoder.fit(need("pandas", "all").DataFrame(row))


def _any(feature: Feature) -> float | str:
    return 0.0 if feature.levels is None else feature.levels[0]


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
