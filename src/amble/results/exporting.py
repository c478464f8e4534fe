"""A model as a fitted pipeline of scikit-learn."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from amble.arrays import Array
from amble.errors import AmbleError, need
from amble.problem.assemble import Scaling
from amble.results.tables import About, features_of
from amble.survey.agreed import Feature


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
    estimator = _estimator(loss, intercept, penalty)
    coefficients, constants = on_scaled(W, scaling, intercept)
    estimator.n_features_in_ = len(scaling.X_mean)
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


def on_scaled(W: Array, scaling: Scaling, intercept: bool) -> tuple[Array, Array]:
    """Coefficients of the scaled columns, and constants, for targets in their own units: one row per predictor."""
    p = len(scaling.X_mean)
    constants = W[:, p] if intercept else np.zeros(len(W))
    return scaling.y_std * W[:, :p], scaling.y_mean + scaling.y_std * constants


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
