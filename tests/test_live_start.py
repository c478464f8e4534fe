"""The initial model of a live run: one for all agents, checked before anything begins."""

import numpy as np
import pytest

from amble.live.model.start import FILE
from amble.live.settings.agent_config import AgentConfig
from amble.live.settings.config import Config
from config_samples import made, model, refused, settings

NUMBERS = [1.0, -2.0, 0.5, 4.0]  # three columns and the intercept


def test_a_list_and_a_file_are_the_same_initial_model(tmp_path):
    np.save(tmp_path / "first.npy", np.array(NUMBERS))
    listed, filed = made(**model(start=NUMBERS)), Config.from_settings(settings(**model(start="first.npy")), tmp_path)
    assert listed.start == filed.start
    assert filed.agent("a").visits().initial.tolist() == NUMBERS
    assert filed.agent("a").digest == listed.agent("b").digest


def test_agents_with_other_initial_models_are_of_other_runs():
    digests = {made(**model(**start)).agent("a").digest
               for start in ({}, {"start": NUMBERS}, {"start": [0.0] * 4}, {"start": [*NUMBERS[:3], 5.0]})}  # fmt: skip
    assert len(digests) == 4


def test_a_trained_model_is_an_initial_model_for_the_same_columns_and_scaling(tmp_path):
    plain = made().model
    plain.trained(np.array(NUMBERS)).save(tmp_path / "model.npz")
    assert Config.from_settings(settings(**model(start="model.npz")), tmp_path).start.numbers.tolist() == NUMBERS
    for changed, key in (
        ({"X_std": [1.0, 2.0, 1.0]}, "X_std"),
        ({"y_mean": 3.0}, "y_mean"),
        ({"columns": 4}, "columns"),
    ):
        with refused(f"was trained with another {key} than"):
            Config.from_settings(settings(**model(start="model.npz", **changed)), tmp_path)


@pytest.mark.parametrize(
    ("start", "sentence"),
    [
        (
            [1.0, 2.0],
            r"has shape \(2,\), and the run's model has 4 unknowns; give 4 numbers, one per column, the intercept",
        ),
        ([1.0, 2.0, 3.0, float("nan")], r"\[model\]: start = .* was given; it must be a list of numbers, or the path"),
        ([1e200] * 4, "not finite, or too large for a model"),
        ([True] * 4, "it must be a list of numbers"),
        (7.0, "it must be a list of numbers"),
        ("nowhere.npy", "there is no file .*nowhere.npy, which .* start names"),
        ("nowhere.npz", "there is no model"),
        ("text.npy", "is not a .npy file of numbers; write it with numpy.save"),
        ("words.npy", "is no list of numbers"),
        ("flat.npy", r"has shape \(2, 2\)"),
    ],
)
def test_what_is_no_initial_model_is_refused_in_a_sentence(tmp_path, start, sentence):
    (tmp_path / "text.npy").write_text("1 2 3")
    np.save(tmp_path / "words.npy", np.array(["a", "b", "c", "d"]))
    np.save(tmp_path / "flat.npy", np.zeros((2, 2)))
    with refused(sentence):
        Config.from_settings(settings(**model(start=start)), tmp_path)


def test_classes_have_their_numbers_in_turn():
    with refused("give 12 numbers, one per column, the intercept last, for each of the 3 labels in turn"):
        made(**model(task="classification", labels=["a", "b", "c"], start=NUMBERS))


def test_an_agents_folder_has_it_and_it_is_checked_there(tmp_path):
    config = made(**model(start=NUMBERS)).agent("a")
    config.write(tmp_path)
    again = AgentConfig.read(tmp_path)
    assert again == config
    assert again.visits().initial.tolist() == NUMBERS
    np.save(tmp_path / FILE, np.zeros(4))
    with refused("start.npy is not the initial model that the run began with; copy it again"):
        AgentConfig.read(tmp_path)
    (tmp_path / FILE).unlink()
    assert AgentConfig.read(tmp_path).digest == config.digest  # which is all that amble collect needs
    with refused("the run has an initial model, and start.npy is not beside agent.toml of a"):
        AgentConfig.read(tmp_path).visits()


def test_without_one_nothing_is_written_and_all_begins_with_zeros(tmp_path):
    made().agent("a").write(tmp_path)
    assert not (tmp_path / FILE).exists()
    assert AgentConfig.read(tmp_path).visits().initial.tolist() == [0.0] * 4
