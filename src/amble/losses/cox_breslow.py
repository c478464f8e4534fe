"""Cox's partial likelihood with ties by Breslow: every event is compared with all rows at risk, its ties too."""

from amble.arrays import Array
from amble.losses.cox import Cox


class CoxBreslow(Cox):
    """Mean negative log partial likelihood, ties by Breslow; all else as of Cox."""

    __slots__ = ()

    @staticmethod
    def parts(efron: Array) -> Array:
        return 0 * efron
