"""Relay: gifts that carry their own weight, so that there is nothing to tune and no agent needs to know N."""

from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

from amble.arrays import Array, namespace
from amble.errors import AmbleError
from amble.losses import LOSSES
from amble.losses.objective import Objective, knows, number_of
from amble.methods.optional import FAVOURS, Gifts
from amble.methods.parameters import method
from amble.methods.protocol import Dealt
from amble.methods.relay_dual import Dual, inexact, scalar
from amble.methods.relay_full import GIFTS, GUARD, Look, Seen, again, full, look

FULL_UP_TO = 500  # unknowns: a full message is then at most 125,750 numbers, 1 MB
HELD_UP_TO = 125_000_000  # numbers that all agents keep of their full gifts, 1 GB: many agents of many unknowns
PENALISED_UP_TO = 1000  # the same under a penalty that only the full form takes: 4 MB
CHARGED = 12  # gradients that an inexact visit counts as: the mean of seven laps, as a first visit takes 37


class Last(NamedTuple):
    x: Array


@method
class Relay:
    r"""The token is a sum of gifts (v, w), and its estimate z = total / weight; four forms of gift.

    full: the token that solves as it walks, an incremental Newton method
        v = H z - grad f_i(z),  w = H,   H = Hessian of f_i at z (+ lift + m, for a loss that is not quadratic)
        For least squares z is the exact minimiser of the losses of all agents visited: the optimum after one lap.
        For another loss the agent gives again, at the z' that its gift has led to, up to three times in a visit, while
        |e - h d| > 0.1 |h d|, d = z' - z, h = w - m, e = grad f_i(z') - (w z - v), in units of own curvature:
        w' = w - (hd)(hd)'/(d'hd) + ee'/(d'e),  v' = w' z' - grad f_i(z'):  e is the change of the slope (BFGS)
        The last gift counts. If it is off by more than |h d|, so it led away, the one that was off least counts.

    scalar: a prox with a dual, and a penalty beta that balances itself
        x' = argmin_x f_i(x) + beta/2 |x - (z + y/beta)|^2
        y' = y + beta (z - x')                        (not while the token is empty)
        v  = beta' x' - y',  w = beta'
        Fixed point: every x_i = z and sum_i y_i = 0, so sum_i grad f_i(z) = 0.

    inexact: the scalar form with cheap visits, for logistic and softmax losses of many unknowns
        c  = x + 1.8 (z - x) + y / beta               (over-relaxed: the scalar form has 1 for 1.8)
        x' = one Newton step from x towards argmin f_i + beta/2 |. - c|^2, by six conjugate gradients
        y' = grad f_i(x'),  v = beta' x' - y',  w = beta'
        The first gift of an agent is its own model near the start: c = start, four Newton steps, y' = 0.
        Fixed point: as of the scalar form.

    gradient: for a loss with neither Hessian nor prox
        v = L z - grad f_i(z),  w = L,   L = smoothness of f_i

    where
        form  auto takes full up to 500 unknowns (a message of 1 MB) if all agents' gifts fit in 1 GB, then scalar;
              gradient where nothing else goes. A problem with l1= or positive= takes full up to 1,000 unknowns (4 MB),
              and no other form:  z = argmin 1/2 z' weight z - total' z + N l1 |z|_1
        beta  starts at the mean curvature of f_i; r = |x' - z|, s = |z - z_last|: beta 1.5 times up if r > 3 s, down if
              s > 3 r, within 1e-3 .. 1e3 of the curvature, and frozen once both are below 1e-9 |z|; inexact: from an
              agent's third visit on
        m     guard * diagonal of H * min(1, |z - z_last| / |z|), each unknown in units of its own curvature. The guard
              is 1e-6; it grows fourfold at a visit that finds the token turning back, unless in steps that halve, and
              halves at any other
        lift  H is made steeper along the agent's last step d where the loss at its beginning lies above the parabola
              at its end, so that the parabola meets it: D = diagonal of H, b = 1/2 d'Hd, a = f(x - d) - f(x) + g.d
              H + 2 (a - b) Dd (Dd)' / (d'Dd)^2   if a > b (a > 1.25 b once steps halve); a counts as at most 1e6 b
        reach poisson, gamma and cox bend by an exponential, so H and grad f_i are taken at the point on the way from
              the agent's last one to z up to which no row's x.w changes by more than 2; near the end that is z.
              Logistic and softmax go on up to 4 in the root mean square over rows
        excess H of huber has while the token moves also its share min(1, |z - z_last| / |z|) of the rows on the
              straight part, each at 1.35 / |residual|: the quadratic is then nowhere below the loss

    Parameters
    ----------
    tokens : how many walk at once, or what the network chooses them for: auto, time or communication (docs/relay.md)
    form : auto, full, scalar, inexact or gradient
    message : the type of the matrices' numbers that travel, in the full form: float64 or float32 (docs/relay.md)

    Example
    -------
    >>> import amble
    >>> amble.Relay(tokens=2)
    Relay(tokens=2, form='auto', message='float64')
    """

    tokens: Any = 1  # a number or, until a run begins, a word
    form: str = "auto"
    message: str = "float64"

    label: ClassVar[str] = "Relay"
    positive: ClassVar[tuple[str, ...]] = ()
    choices: ClassVar[dict[str, tuple[str, ...]]] = {
        "tokens": FAVOURS,
        "form": ("auto", "full", "scalar", "inexact", "gradient"),
        "message": ("float64", "float32"),
    }

    def for_problem(self, problem: Dealt) -> "Relay":
        """The method with its form chosen, if it is auto."""
        if self.form == "inexact" and problem.loss not in (None, "least-squares") and not bends_within_bounds(problem):
            raise AmbleError(
                'the inexact form of Relay is for loss="logistic" and loss="softmax", whose curvature is bounded, and '
                f'this loss is "{problem.loss}"; give form="scalar" or form="full".'
            )
        made = replace(self, form=self._form(problem)) if self.form == "auto" else self
        if self.message != "float64" and made.form != "full":
            chosen = f"with {problem.dimension:,} unknowns auto takes" if self.form == "auto" else "here its form is"
            raise AmbleError(
                f"message={self.message!r} of Relay is for the matrices of its full form, and {chosen} {made.form!r}, "
                "which sends none; leave message out, or give form='full'."
            )
        return made

    def _form(self, problem: Dealt) -> str:
        """What auto takes."""
        if problem.penalty is not None:
            p = problem.dimension
            if p > PENALISED_UP_TO:
                raise AmbleError(
                    f"only the full form of Relay takes l1= or positive=, and {p:,} unknowns are messages of "
                    f'{4e-6 * p * p:,.3g} MB; give form="full" if you want that, or ridge= alone.'
                )
            return "full"

        def have(name: str) -> bool:
            return all(knows(f, name) for f in problem.own or ())

        p = problem.dimension
        small = p <= FULL_UP_TO and problem.agents * p * p <= HELD_UP_TO
        if small and have("hessian") and have("grad"):
            return "full"
        return "scalar" if have("prox") and have("curvature") else "gradient"

    @property
    def weigh(self) -> str:
        return "full" if self.form == "full" else "scalar"

    @property
    def weight_type(self) -> str:
        return self.message if self.form == "full" else "float64"

    @property
    def work(self) -> dict[str, int]:
        # the two values of the lift take about as long as a gradient, which every loss says the operations of
        return {
            "full": {"grad": 2, "hessian": 1},
            "scalar": {"prox": 1},
            "inexact": {"grad": CHARGED},
        }.get(self.form, {"grad": 1})

    def own_flops(self, p: int) -> float:
        """Operations besides the objective's: the full form solves two systems of p unknowns for its estimate."""
        return 4 / 3 * p**3 + 4.0 * p * p if self.form == "full" else 0.0

    def gifts_in_visit(self, f: Objective) -> Gifts:
        return GIFTS if self.form == "full" and not number_of(f, "quadratic", False) else Gifts()

    def look(self, f: Objective, agent: Seen, v: Array, w: Array, z: Array) -> Look:
        return look(f, agent, v, w, z)

    def again(self, agent: Seen, v: Array, w: Array, look: Look) -> tuple[Seen, Array, Array]:
        return again(agent, v, w, look)

    @property
    def needs(self) -> tuple[str, ...]:
        if self.form == "inexact":
            return ("curvature", "hessian_times")
        return ("smoothness",) if self.form == "gradient" else ("curvature",)

    def agent(self, f: Objective, start: Array) -> Any:
        none = namespace(start).asarray(0.0)
        if self.form in ("scalar", "inexact"):
            return Dual(x=start, y=0 * start, beta=f.curvature + none, z=start, visits=none)
        return Seen(start, 0 * start, none + GUARD, 0 * start, none) if self.form == "full" else Last(start)

    def gift(self, f: Objective, agent: Any, z: Array) -> tuple[Any, Array, Array]:
        if self.form == "full":
            return full(f, agent, z)
        if self.form == "scalar":
            return scalar(f, agent, z)
        if self.form == "inexact":
            return inexact(f, agent, z)
        return Last(z), f.smoothness * z - f.grad(z), f.smoothness + 0.0 * z[0]


def bends_within_bounds(problem: Dealt) -> bool:
    """Whether a problem's loss is one that the inexact form is for: a score's curvature has a bound and a stride."""
    return problem.loss is not None and knows(LOSSES[problem.loss], "stride")
