"""The penalised F as a column of the history: eq. (3) and (10), and theorems 1 to 3 in whole runs."""

import numpy as np
import pytest

import amble
from amble import AmbleError, engines
from amble.cli import main
from paper_samples import enough_rho, penalised, some_problem

N, TAU = 6, 0.4
HAVING = {
    "I-BCD": amble.IBCD(tau=TAU),
    "I-BCD, three tokens": amble.IBCD(tau=TAU, tokens=3),
    "API-BCD": amble.APIBCD(tau=TAU, tokens=3),
    "API-BCD, tracked": amble.APIBCD(tau=TAU, tokens=3, token_rule="tracked"),
    "gAPI-BCD": amble.GAPIBCD(tau=TAU, tokens=2),
    "Central": amble.Central(tau=TAU),
    "SyncWalks": amble.SyncWalks(tau=TAU, tokens=3),
}
REST = [kind() for label, kind in amble.methods.METHODS.items() if label not in HAVING]


def go(method, kind="least squares", **options):
    problem = some_problem(kind, agents=N, features=3)
    return problem, amble.simulate(method, problem, **{"hops": 60, "penalised": True, "progress": False, **options})


def descent_of(run):
    """F from record to record, each relative to what it begins with."""
    F = run.history["penalised"]
    return np.diff(F) / F[0]


@pytest.mark.parametrize("engine", ["plain", "compiled"])
@pytest.mark.parametrize("kind", ["least squares", "logistic"])
@pytest.mark.parametrize("method", HAVING.values(), ids=HAVING)
def test_the_column_is_f_of_all_models_and_tokens(method, kind, engine):
    """F(x, z) = sum_i f_i(x_i) + tau/2 sum_i sum_m |x_i - z_m|^2, written out, at every record."""
    problem, run = go(method, kind, every=1, engine=engine)
    machine = engines.engine_for("plain", method, problem, run.network, meets=run.meets)
    state, objectives = machine.start(), [problem.objective(i) for i in range(N)]
    assert len(run.history["penalised"]) == len(run.recorded) > 10
    for k, F in enumerate(run.history["penalised"]):
        state = state if k == 0 else machine.advance(state, run.schedule, k - 1, k)
        if amble.methods.is_round(method):
            z = np.tile(state.agents.x.mean(axis=0), (getattr(method, "tokens", 1), 1))
        elif isinstance(method, amble.IBCD):  # one account, of which each agent's last gift is its x
            z = state.agents.x.mean(axis=0)[None]
        else:
            z = state.tokens.total / state.tokens.weight[:, None]
        assert penalised(objectives, state.agents.x, z, TAU) == pytest.approx(F, rel=1e-8)


@pytest.mark.parametrize("kind", ["least squares", "logistic"])
def test_theorems_1_to_3_show_in_the_column(kind):
    """F falls at every hop: I-BCD (theorem 1), API-BCD (theorem 2) and gAPI-BCD with enough rho (theorem 3), both with
    one walk, for then the token is always fresh; and the synchronous forms, which minimise F block by block."""
    problem = some_problem(kind, agents=N, features=3)
    L = max(float(problem.objective(i).smoothness) for i in range(N))
    for method in (
        amble.IBCD(tau=TAU),
        amble.APIBCD(tau=TAU, tokens=1),
        amble.GAPIBCD(tau=TAU, tokens=1, rho=enough_rho(L, TAU, 1, N)),
        amble.Central(tau=TAU),
        amble.SyncWalks(tau=TAU, tokens=3),
    ):
        _, run = go(method, kind, every=1, walk="metropolis")
        assert (descent_of(run) <= 1e-12).all()
        assert descent_of(run).sum() < -0.1


def test_tokens_that_share_an_account_have_one_z():
    """F of three tokens ends where F of one token does: it has one z, and each agent counts once."""
    one, three = (go(amble.IBCD(tau=TAU, tokens=tokens), hops=3000)[1].history["penalised"] for tokens in (1, 3))
    assert three[0] == one[0]
    assert three[-1] == pytest.approx(one[-1], rel=1e-9)


def test_stale_tokens_are_outside_the_theorem():
    """Theorem 2 is for "sharing fresh tokens"; several tokens that walk on their own can raise F, and the column shows
    it."""
    _, run = go(amble.APIBCD(tau=TAU, tokens=3), every=1, hops=200)
    assert descent_of(run).max() > 1e-6


@pytest.mark.parametrize("method", [HAVING["API-BCD"], HAVING["SyncWalks"]], ids=["hops", "rounds"])
def test_a_resumed_and_a_loaded_run_keep_the_column(method, tmp_path):
    problem, run = go(method, hops=40 * N)
    _, part = go(method, hops=13 * N)
    whole = amble.resume(amble.load_run(part.save(tmp_path / "part")), problem, hops=40 * N, progress=False)
    assert np.array_equal(whole.history["penalised"], run.history["penalised"])
    assert np.array_equal(amble.load_run(run.save(tmp_path / "run")).history["penalised"], run.history["penalised"])


def test_without_asking_it_is_not_computed(monkeypatch):
    monkeypatch.setattr(amble.simulation.penalised, "penalised", None)  # a call would fail
    problem, run = go(amble.IBCD(), penalised=False)
    assert "penalised" not in run.history
    assert "penalised" not in amble.resume(run, problem, hops=80, progress=False).history


@pytest.mark.parametrize("method", REST, ids=lambda method: method.label)
def test_a_method_without_f_is_refused_in_one_sentence(method, tmp_path):
    words = f"penalised=True was given with {method.label}, which minimises no penalised F; .*I-BCD, API-BCD, gAPI-BCD"
    with pytest.raises(AmbleError, match=words):
        go(method)
    with pytest.raises(AmbleError, match=words):  # before the first of them runs
        amble.compare([method, method], some_problem(agents=N), penalised=True, keep=tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


def test_a_comparison_has_the_column_where_there_is_an_f():
    options = {"penalised": True, "hops": 12, "progress": False}
    with pytest.warns(UserWarning, match="WPG, DGD: no column penalised, because there is no F to record"):
        runs = amble.compare([amble.WPG(), amble.IBCD(), amble.DGD()], some_problem(agents=N), **options)
    assert ["penalised" in run.history for run in runs] == [False, True, False]


def test_on_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "e.toml").write_text('penalised = true\nhops = 60\nagents = 4\n[[methods]]\nname = "I-BCD"\n')
    given = {"file": ["e.toml"], "options": ["-m", "I-BCD", "--penalised", "--hops", "60", "-n", "4"]}
    for folder, words in given.items():
        monkeypatch.setattr("sys.argv", ["amble", "compare", *words, "--out", folder])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code in (None, 0)
    runs = [amble.load_run(tmp_path / folder / "1-i-bcd") for folder in given]
    assert np.array_equal(*(run.history["penalised"] for run in runs))
    assert runs[0].history["penalised"][-1] < runs[0].history["penalised"][0]
    monkeypatch.setattr("sys.argv", ["amble", "compare", "--penalised", "--hops", "20", "-n", "4", "--out", "default"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code in (None, 0)
    assert "note: WPG: no column penalised" in capsys.readouterr().out
    assert "penalised" in amble.load_run(tmp_path / "default" / "1-i-bcd").history
    monkeypatch.setattr("sys.argv", ["amble", "compare", "--penalised", "-m", "WPG", "--out", "none"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "minimises no penalised F" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()
