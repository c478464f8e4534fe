"""Classifier: the chances of labels, by their log odds as linear functions of the columns."""

from dataclasses import replace
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from amble.arrays import Array
from amble.data.targets import Targets
from amble.errors import AmbleError
from amble.estimators.fitting import Linear, chosen_loss, counted

LOSSES = ("logistic", "softmax")


@final
class Classifier(ClassifierMixin, Linear):
    """Logistic regression for two labels or more, trained by simulated agents: an estimator of scikit-learn.

    It minimises the mean log loss of all rows + alpha (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|^2), the columns in their
    own units and the intercepts without penalty. With alpha = 1/(C d) that is LogisticRegression(C) on d rows.

    Parameters
    ----------
    loss : auto (logistic for two labels, softmax for more), logistic or softmax
    alpha : how strong the penalty is
    l1_ratio : the share of l1 in it, from 0 (ridge) to 1 (lasso)
    method : the name of a method, or one with its settings, such as amble.APIBCD(tau=0.1)
    agents : how many simulated agents the rows are dealt out to, at most one per row
    network : a Network, a networkx.Graph or a name, such as ring; random by default
    tokens : how many walk at once, or of Relay a word such as time; by default as the method says
    fit_intercept : whether the model has intercepts
    positive : whether coefficients may not be negative
    tol : the model has converged when it moves less than this in a lap, relative to its length
    max_iter : laps, in which as many visits take place as there are agents, at most
    random_state : the seed of the dealing, the network and the walk; None takes another one at each fit

    Example
    -------
    >>> import amble
    >>> data = amble.load("breast_cancer")
    >>> model = amble.Classifier(alpha=0.01).fit(data.X, data.y)
    >>> round(model.score(data.X, data.y), 2)
    0.96
    """

    def __init__(
        self,
        loss: str = "auto",
        *,
        alpha: float = 1e-4,
        l1_ratio: float = 0.0,
        method: Any = "Relay",
        agents: int = 10,
        network: Any = None,
        tokens: int | str | None = None,
        fit_intercept: bool = True,
        positive: bool = False,
        tol: float = 1e-9,
        max_iter: int = 1000,
        random_state: Any = 0,
    ) -> None:
        self.loss = loss
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.method = method
        self.agents = agents
        self.network = network
        self.tokens = tokens
        self.fit_intercept = fit_intercept
        self.positive = positive
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, agents: ArrayLike | None = None
    ) -> "Classifier":
        """Train on rows that are dealt out to agents.

        Parameters
        ----------
        X, y : rows (d, p), sparse ones too, and their labels (d) of any type
        sample_weight : how much each row counts, zero or more; by default 1
        agents : a label per row: each label's rows are one agent's

        Returns
        -------
        Classifier : itself, with classes_, coef_, intercept_, n_iter_ (laps), history_ (of the run) and model_
            (amble.Model)

        Example
        -------
        >>> import amble
        >>> data = amble.load("breast_cancer")
        >>> amble.Classifier(agents=5).fit(data.X, data.y).coef_.shape
        (1, 30)
        """
        loss = None if self.loss == "auto" else chosen_loss(self.loss, LOSSES)
        X, y = self._checked(X, y=y)
        check_classification_targets(y)
        X, y, sample_weight, agents = counted(X, y, sample_weight, agents)
        self.classes_: Targets
        self.classes_, places = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            only = self.classes_.tolist()[0]
            raise AmbleError(f"all rows have one class, {only!r}; a classifier needs two classes or more.")
        if loss == "logistic" and len(self.classes_) > 2:
            raise AmbleError(f"loss='logistic' was given with {len(self.classes_)} classes; give loss='softmax'.")
        loss = loss or ("logistic" if len(self.classes_) == 2 else "softmax")
        self._train(X, places, "classification", loss, sample_weight, agents)
        self.model_ = replace(self.model_, labels=tuple(self.classes_.tolist()))
        return self

    def decision_function(self, X: Any) -> Array:
        """The log odds of the second label, or with more than two labels a score of each.

        Parameters
        ----------
        X : rows (d, p), as of `fit`

        Returns
        -------
        array (d,) or (d, labels)

        Example
        -------
        >>> import amble
        >>> data = amble.load("breast_cancer")
        >>> amble.Classifier().fit(data.X, data.y).decision_function(data.X[:3]).shape
        (3,)
        """
        check_is_fitted(self)
        return self.model_.decision_function(self._checked(X, reset=False))

    def predict(self, X: Any) -> Targets:
        """The likeliest labels.

        Parameters
        ----------
        X : rows (d, p), as of `fit`

        Returns
        -------
        array (d,)

        Example
        -------
        >>> import amble
        >>> data = amble.load("breast_cancer")
        >>> amble.Classifier().fit(data.X, data.y).predict(data.X[:3])
        array([0, 0, 0])
        """
        score = self.decision_function(X)
        place = score.argmax(axis=1) if score.ndim == 2 else (score > 0).astype(np.intp)
        return np.asarray(self.classes_[place])

    def predict_proba(self, X: Any) -> Array:
        """The probability of each label.

        Parameters
        ----------
        X : rows (d, p), as of `fit`

        Returns
        -------
        array (d, labels), in the order of classes_

        Example
        -------
        >>> import amble
        >>> data = amble.load("breast_cancer")
        >>> amble.Classifier().fit(data.X, data.y).predict_proba(data.X[:3]).sum(axis=1).round(6)
        array([1., 1., 1.])
        """
        check_is_fitted(self)
        return self.model_.predict_proba(self._checked(X, reset=False))
