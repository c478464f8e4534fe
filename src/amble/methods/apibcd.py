"""API-BCD: asynchronous parallel incremental block-coordinate descent (the paper's eq. 12 and algorithm 2)."""

from typing import ClassVar, final

from amble.arrays import Array
from amble.losses.objective import Objective
from amble.methods.copies import TOKEN_RULES
from amble.methods.parameters import method


@final
@method
class APIBCD:
    r"""M tokens at once; agent i keeps a copy c_im of each.

        x_i' = argmin_x f_i(x) + tau/2 sum_m |x - c_im|^2                          (eq. 12a)
             = argmin_x f_i(x) + tau M/2 |x - s/M|^2,  s = sum_m c_im

    where
        tau         is the penalty on the distance to each token
        token_rule  is what the token gets: eq. 12b as published, or one of two rules that fix it (methods/copies.py)
    The tokens z_m and the copies follow eq. 12b and 12c in methods/copies.py. With M = 1 this is I-BCD.

    Parameters
    ----------
    tau : the penalty on the distance to each token, above zero
    tokens : how many walk at once
    token_rule : what a token takes: published (eq. 12b), scaled or tracked (methods/copies.py)

    Example
    -------
    >>> import amble
    >>> amble.APIBCD(tokens=3, token_rule="tracked")
    APIBCD(tau=0.1, tokens=3, token_rule='tracked')
    """

    tau: float = 0.1
    tokens: int = 5
    token_rule: str = "published"

    label: ClassVar[str] = "API-BCD"
    work: ClassVar[dict[str, int]] = {"prox": 1}
    positive: ClassVar[tuple[str, ...]] = ("tau",)
    penalty: ClassVar[str] = "tau"  # of the penalised F (eq. 10)
    choices: ClassVar[dict[str, tuple[str, ...]]] = {"token_rule": TOKEN_RULES}

    def local(self, f: Objective, x: Array, s: Array) -> Array:
        M, tau = self.tokens, self.tau
        return f.prox(s / M, tau * M, x)
