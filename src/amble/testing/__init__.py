"""Checks for your own methods and objectives, like scikit-learn's check_estimator for estimators.

    from amble.testing import check_method, check_objective

    check_method(Heavy(beta=0.9))  # says nothing, or raises an AssertionError that says what is violated
    check_objective(f, dimension=5)

amble's own methods and losses pass the same checks.
"""

from amble.testing.methods import check_method
from amble.testing.objectives import check_objective

__all__ = ["check_method", "check_objective"]
