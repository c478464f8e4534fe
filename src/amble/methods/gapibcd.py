"""gAPI-BCD: API-BCD with a gradient step instead of the argmin (the paper's remark 1, eq. 15, theorem 3)."""

from typing import ClassVar, final

from amble.arrays import Array
from amble.losses.objective import Objective
from amble.methods.copies import TOKEN_RULES
from amble.methods.parameters import method


@final
@method
class GAPIBCD:
    r"""API-BCD with f_i replaced by its first-order model and a proximal term.

        x_i' = argmin_x <grad f_i(x_i), x - x_i> + tau/2 sum_m |x - c_im|^2 + rho/2 |x - x_i|^2     (eq. 15)
             = (rho x_i + tau s - grad f_i(x_i)) / (rho + tau M),   s = sum_m c_im

    where
        rho  stabilises the step; the paper gives no value, ours is L_i, the smoothness of f_i
    Tokens and copies are those of API-BCD (methods/copies.py).

    Parameters
    ----------
    tau : the penalty on the distance to each token, above zero
    tokens : how many walk at once
    rho : the weight of the proximal term, zero or more; without it, the smoothness L_i of f_i
    token_rule : what a token takes: published (eq. 12b), scaled or tracked (methods/copies.py)

    Example
    -------
    >>> import amble
    >>> amble.GAPIBCD(tokens=3)
    GAPIBCD(tau=0.1, tokens=3, rho=None, token_rule='published')
    """

    tau: float = 0.1
    tokens: int = 5
    rho: float | None = None
    token_rule: str = "published"

    label: ClassVar[str] = "gAPI-BCD"
    work: ClassVar[dict[str, int]] = {"grad": 1}
    positive: ClassVar[tuple[str, ...]] = ("tau",)
    penalty: ClassVar[str] = "tau"  # of the penalised F (eq. 10)
    choices: ClassVar[dict[str, tuple[str, ...]]] = {"token_rule": TOKEN_RULES}

    @property
    def needs(self) -> tuple[str, ...]:
        return ("smoothness",) if self.rho is None else ()

    def local(self, f: Objective, x: Array, s: Array) -> Array:
        M, tau = self.tokens, self.tau
        rho = f.smoothness if self.rho is None else self.rho
        return (rho * x + tau * s - f.grad(x)) / (rho + tau * M)
