"""Regressor: amounts as a linear function of the columns, or counts and costs as the exponential of one."""

from typing import Any, final

from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from amble.arrays import Array
from amble.estimators.fitting import Linear, chosen_loss, counted, has_log_link

LOSSES = ("least-squares", "poisson", "gamma", "huber")


@final
class Regressor(RegressorMixin, Linear):
    """A linear model of amounts, trained by simulated agents: an estimator of scikit-learn.

    It minimises the mean loss of all rows + alpha (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|^2), the columns and the target
    in their own units and the intercept without penalty. docs/sklearn.md says which estimators of scikit-learn have the
    same coefficients.

    Parameters
    ----------
    loss : squared, poisson, gamma (both with a logarithm as link) or huber
    alpha : how strong the penalty is
    l1_ratio : the share of l1 in it, from 0 (ridge) to 1 (lasso)
    method : the name of a method, or one with its settings, such as amble.APIBCD(tau=0.1)
    agents : how many simulated agents the rows are dealt out to, at most one per row
    network : a Network, a networkx.Graph or a name, such as ring; random by default
    tokens : how many walk at once, or of Relay a word such as time; by default as the method says
    fit_intercept : whether the model has an intercept
    positive : whether coefficients may not be negative
    tol : the model has converged when it moves less than this in a lap, relative to its length
    max_iter : laps, in which as many visits take place as there are agents, at most
    random_state : the seed of the dealing, the network and the walk; None takes another one at each fit

    Example
    -------
    >>> import amble
    >>> data = amble.load("diabetes")
    >>> model = amble.Regressor().fit(data.X, data.y)
    >>> round(model.score(data.X, data.y), 3)
    0.515
    """

    def __init__(
        self,
        loss: str = "squared",
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
    ) -> "Regressor":
        """Train on rows that are dealt out to agents.

        Parameters
        ----------
        X, y : rows (d, p), sparse ones too, and targets (d)
        sample_weight : how much each row counts, zero or more; by default 1
        agents : a label per row: each label's rows are one agent's

        Returns
        -------
        Regressor : itself, with coef_, intercept_, n_iter_ (laps), history_ (of the run) and model_ (amble.Model)

        Example
        -------
        >>> import amble
        >>> data = amble.load("diabetes")
        >>> amble.Regressor(agents=5).fit(data.X, data.y).n_iter_
        2
        """
        loss = chosen_loss(self.loss, LOSSES)
        X, y = self._checked(X, y=y, y_numeric=True)
        X, y, sample_weight, agents = counted(X, y, sample_weight, agents)
        self._train(X, y, "regression", loss, sample_weight, agents)
        return self

    def predict(self, X: Any) -> Array:
        """Predicted targets.

        Parameters
        ----------
        X : rows (d, p), as of `fit`

        Returns
        -------
        array (d,)

        Example
        -------
        >>> import amble
        >>> data = amble.load("diabetes")
        >>> amble.Regressor().fit(data.X, data.y).predict(data.X[:3]).round()
        array([202.,  72., 174.])
        """
        check_is_fitted(self)
        predicted: Array = self.model_.predict(self._checked(X, reset=False))
        return predicted

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """R2; of poisson and gamma D2, the share of the deviance that is explained.

        Parameters
        ----------
        X, y : rows and targets
        sample_weight : of each row

        Returns
        -------
        float : 1 at best

        Example
        -------
        >>> import amble
        >>> data = amble.load("diabetes")
        >>> round(amble.Regressor("poisson").fit(data.X, data.y).score(data.X, data.y), 2)
        0.51
        """
        if not has_log_link(self.loss):
            return float(super().score(X, y, sample_weight))
        check_is_fitted(self)
        return self.model_.score(self._checked(X, reset=False), y, sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = has_log_link(self.loss)
        return tags

    def _more_tags(self) -> dict[str, bool]:
        return {"requires_positive_y": has_log_link(self.loss)}  # the same, for scikit-learn 1.5
