"""Short messages: the rounding against NumPy's own types, what it leaves out, and the same numbers in live runs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import amble
from amble import AmbleError
from amble.engines import engine_for
from amble.live.cluster import up
from amble.live.core.message import Epoch, Token
from amble.live.core.packing import Refusal, flat
from amble.live.core.visits import visits_for
from amble.live.formats import wire
from amble.live.records import collect
from amble.methods.rounding import BLOCK, message_bytes, rounded
from test_live_own import JAX, prepared, trained
from test_tokensgd import go, problem

SHORT = ("float32", "float16", "int8")


def numbers(count=5000):
    rng = np.random.default_rng(0)
    edges = [0.0, -0.0, 1e-300, 65504, 65519.9, 65520, -7e4, 2.0**-24, 2.0**-25, 1.0, -1.0, np.inf, np.nan]
    return np.concatenate([rng.normal(size=count) * np.exp(8 * rng.normal(size=count)), edges])


@pytest.mark.parametrize("kind", ["float32", "float16"])
def test_floats_are_rounded_as_numpy_does(kind):
    with np.errstate(all="ignore"):
        expected = numbers().astype(kind).astype(np.float64) + 0.0  # and no -0
        found = rounded(numbers(), kind)
    np.testing.assert_array_equal(found, expected)
    assert not np.signbit(found[found == 0]).any()


def test_int8_by_hand():
    """A block of 64 has one unit: 1/64 where the largest number is from 1 to 2."""
    y = np.zeros(BLOCK + 3)
    y[[0, 1, 2, 3]] = 1.0, -0.51, 1 / 128 + 1e-9, 1 / 128 - 1e-9
    y[BLOCK:] = 127.4, 199.0, 255.9  # 255.9 is more than 127 units of 2, so the unit is 4
    q = rounded(y, "int8")
    assert q[:4].tolist() == [1.0, -33 / 64, 1 / 64, 0.0]
    assert q[BLOCK:].tolist() == [128.0, 200.0, 256.0]
    assert rounded(np.array([2.0**101]), "int8").tolist() == [np.inf]


@pytest.mark.parametrize("kind", SHORT)
def test_rounding_twice_is_rounding_once_and_jax_rounds_alike(kind):
    y = numbers()[:-2]
    with np.errstate(all="ignore"):
        q = rounded(y, kind)
        np.testing.assert_array_equal(rounded(q, kind), q)
    with jax.enable_x64(True):
        np.testing.assert_array_equal(np.asarray(jax.jit(lambda v: rounded(v, kind))(jnp.asarray(y))), q)


@pytest.mark.parametrize("kind", ["float16", "int8"])
def test_what_rounding_leaves_out_is_added_later(kind):
    """Steps far below half a unit: without r_i the model would never move; with it, no step is lost."""
    alpha = 1e-5

    def line(w, batch):
        return jnp.sum(w) + 0 * jnp.sum(batch)

    given = amble.Problem.from_objectives(amble.losses.JaxLoss(line, np.ones(3), [np.ones(2)] * 4))
    assert rounded(np.ones(3) - alpha, kind).tolist() == [1.0, 1.0, 1.0]
    run = go(amble.TokenSGD(alpha=alpha, message=kind), given, hops=4000, engine="plain")
    left = run.state.agents.left.sum(axis=0)
    np.testing.assert_allclose(run.model + left, 1 - 4000 * alpha, rtol=1e-11)
    assert (run.model < 1).all()


@pytest.mark.parametrize("kind", ["float64", *SHORT])
def test_both_engines_agree_and_bytes_are_counted(kind):
    method = amble.TokenSGD(alpha=0.05, tokens=2, message=kind)
    runs = [go(method, problem(batch_size=5), engine=engine) for engine in ("plain", "compiled")]
    np.testing.assert_allclose(runs[0].model, runs[1].model, rtol=1e-10)
    size = {"float64": 8 * 3, "float32": 4 * 3, "float16": 2 * 3, "int8": 3 + 1}[kind] + 8
    assert runs[0].message_bytes == method.message_bytes(3) == size
    np.testing.assert_array_equal(runs[0].history["bytes"], size * runs[0].history["comm_units"])
    assert [message_bytes("int8", p) for p in (1, 64, 65)] == [2, 65, 67]


def shape_of(method, p=200):
    visits = visits_for(method, p, 2, start=np.random.default_rng(1).normal(size=p))
    return visits, wire.Shape(wire.run_digest({}), ("a", "b"), 1, visits.parcel(0), short=visits.short)


@pytest.mark.parametrize("kind", SHORT)
def test_a_live_message_is_short_and_loses_nothing(kind):
    visits, shape = shape_of(amble.TokenSGD(message=kind))
    _, whole = shape_of(amble.TokenSGD())
    message = Token(0, Epoch(0, 0), 0, "a", visits.parcel(0))
    data = wire.encode(shape, message)
    back = wire.decode_question(shape, data, "a")
    np.testing.assert_array_equal(flat(back.payload), flat(message.payload))
    plain = wire.encode(whole, message)
    assert len(plain) - len(data) == 8 * 200 - message_bytes(kind, 200)
    assert shape.fingerprint != whole.fingerprint
    assert len(data) <= shape.bytes_max == whole.bytes_max  # a parcel may have to be sent whole
    with pytest.raises(Refusal):
        wire.decode_question(shape, data[:-9] + data[-8:], "a")


def test_a_parcel_that_would_lose_digits_is_sent_whole():
    visits, shape = shape_of(amble.TokenSGD(message="float16"))
    parcel = visits.parcel(0)
    parcel = parcel._replace(token=parcel.token._replace(z=parcel.token.z + 1e-9))
    data = wire.encode(shape, Token(0, Epoch(0, 0), 0, "a", parcel))
    assert 8 * shape.parcel.numbers < len(data) <= shape.bytes_max
    np.testing.assert_array_equal(flat(wire.decode_question(shape, data, "a").payload), flat(parcel))


@pytest.mark.parametrize("kind", ["float16", "int8"])
def test_a_live_run_with_short_messages_has_the_numbers_of_the_simulator(tmp_path, kind):
    plan = prepared(tmp_path, JAX, f"TokenSGD:alpha=0.05,message={kind}", hops=1000)
    trained(plan)
    outcome = up.again(collect.agent_folders([plan.folder]), plan=plan)
    assert outcome.whole, outcome
    live = amble.load_run(plan.folder / "run.json")
    machine = engine_for("plain", plan.config.method, plan.problem, plan.network, plan.problem.trains.start)
    state = machine.advance(machine.start(), live.schedule, 0, live.schedule.hops)
    np.testing.assert_array_equal(state.agents.x, live.state.agents.x)
    np.testing.assert_array_equal(state.agents.left, live.state.agents.left)


def test_wrong_types_are_refused():
    with pytest.raises(AmbleError, match=r"message of TokenSGD.*float8.*float64"):
        amble.TokenSGD(message="float8")
    with pytest.raises(AmbleError, match=r"message='int8' was given, and the moments of step='adam'.*memory=\"agent\""):
        amble.TokenSGD(message="int8", step="adam")
    assert amble.TokenSGD(message="int8", step="adam", memory="agent").message_bytes(64) == 64 + 1 + 8
