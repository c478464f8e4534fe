"""The penalised F, which the paper's methods minimise in place of sum_i f_i (its eq. 3, and eq. 10 for M tokens):

    F(x, z) = sum_i f_i(x_i) + tau/2 sum_i sum_m |x_i - z_m|^2

A method that has one names its setting tau in `penalty`. Theorems 1 to 3 say that F never rises. Several tokens of a
gift method (I-BCD) share one account, so they have one z, that of the whole account, as in eq. 3.
"""

import numpy as np

from amble import methods
from amble.arrays import tree_map
from amble.engines import State
from amble.errors import AmbleError
from amble.methods import Method, tokens
from amble.methods.boards import BoardRules
from amble.methods.meetings import MeetingRules, Token
from amble.methods.optional import penalty
from amble.problem.problem import Problem


def has_one(method: object) -> bool:
    """Whether the method, or its class, minimises an F."""
    return penalty(method) is not None


def check(*chosen: Method) -> None:
    """Refuse methods of which none minimises an F."""
    if not any(has_one(method) for method in chosen):
        labels = ", ".join(dict.fromkeys(method.label for method in chosen))
        having = ", ".join(label for label, kind in methods.METHODS.items() if has_one(kind))
        raise AmbleError(
            f"penalised=True was given with {labels}, which minimises no penalised F; leave it out, "
            f"or take a method that has one: {having}."
        )


@np.errstate(over="ignore", invalid="ignore")  # a diverged run has an infinite F
def penalised(method: Method, problem: Problem, state: State) -> float:
    """F of all local models and tokens; the tokens of a round method are the mean of what agents say."""
    x = np.asarray(state.agents.x)
    M = tokens(method)
    if methods.is_round(method):
        z = [x.mean(axis=0)] * M
    elif methods.is_gift(method) and isinstance(state.tokens, Token):
        tokens_now, account = tree_map(np.asarray, state.tokens), tree_map(np.asarray, state.agents.account)
        z = [MeetingRules(method).whole(tokens_now, account)]
    elif methods.is_gift(method) and M > 1:
        ledgers, m = tree_map(np.asarray, state.tokens.board), np.arange(M)  # each token knows its own to the last gift
        z = [BoardRules(method).read(tree_map(lambda a: a[m, m], ledgers))]
    else:
        stacked, rule = tree_map(np.asarray, state.tokens), methods.rules(method)
        z = [rule.estimate(tree_map(lambda a: a[m], stacked)) for m in range(M)]  # noqa: B023
    tau = methods.settings(method)[str(penalty(method))]
    loss = sum(problem.objective(i).value(x[i]) for i in range(problem.agents))
    return float(loss + tau / 2 * sum(np.sum((x - z_m) ** 2) for z_m in z))
