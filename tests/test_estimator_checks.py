"""scikit-learn's own checks of estimators, all of them."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import amble

ESTIMATORS = [
    amble.Regressor(),
    amble.Regressor("poisson"),
    amble.Regressor("gamma"),
    amble.Regressor("huber", fit_intercept=False),
    amble.Regressor(alpha=0.01, l1_ratio=0.5),
    amble.Classifier(),
    amble.Classifier("softmax", agents=3, tokens=2),
    amble.Classifier(alpha=0.01, l1_ratio=0.5),
]


@pytest.mark.filterwarnings("default")  # the checks cause some on purpose
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_finds_nothing_wrong(estimator, check, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # without it a check is skipped
    check(estimator)
