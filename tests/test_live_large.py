"""Live messages of many megabytes, between real processes; and those that are refused before anything runs."""

import pytest

from amble import AmbleError
from amble.live.cluster import up
from amble.live.cluster.cluster import Cluster
from amble.live.core.packing import Packing
from amble.live.core.short import ShortPacking
from amble.live.records import collect
from test_live_own import prepared, wait_for

pytest.importorskip("zenoh")

HALVES = """
import numpy as np

class Half:
    def __init__(self, X, y):
        self.start = np.zeros({unknowns})
    def value(self, w):
        return float(np.mean((w - 1.0) ** 2)) / 2
    def grad(self, w):
        return w - 1.0

objective = Half
"""


@pytest.mark.long
def test_messages_of_40_megabytes_pass_and_replay(tmp_path):
    """Five million unknowns: each visit goes half-way to 1, so the model says how many came before."""
    code = HALVES.format(unknowns=5_000_000)
    plan = prepared(tmp_path, code, "TokenSGD:alpha=0.5", hops=6, agents=2)
    with Cluster.create(plan.folder, plan.config, plan.rows) as cluster:
        cluster.start_all()
        wait_for(lambda: not cluster.running(), 300)
        assert cluster.failed() == {}
        model = up.finish(plan, cluster)
    outcome = up.again(collect.agent_folders([plan.folder]))
    assert outcome.whole, outcome
    assert outcome.visits == 6
    visits = plan.config.agent("agent00").visits()
    assert ShortPacking(Packing(visits.parcel(0)), visits.short).size > 40_000_000
    assert (model.w == 1 - 0.5**5).all()  # as it came to the last visit


def test_a_model_of_too_many_unknowns_is_refused(tmp_path):
    with pytest.raises(AmbleError, match="has 10,000,001 unknowns; a message holds 1 to 10,000,000"):
        prepared(tmp_path, HALVES.format(unknowns=10_000_001))
