# What `amble.NAME` is, for editors and type checkers: `__init__.py` imports each name when it is first used.
# tests/test_typing.py checks that the two name the same things.

from amble import networks as networks
from amble.data.datasets import Dataset as Dataset
from amble.data.files import read_file as read_file
from amble.data.loading import load as load
from amble.errors import AmbleError as AmbleError
from amble.estimators.classifier import Classifier as Classifier
from amble.estimators.regressor import Regressor as Regressor
from amble.live.following import follow as follow
from amble.live.loading import load_model as load_model
from amble.live.loading import load_params as load_params
from amble.losses.registry import *
from amble.methods.parameters import method as method
from amble.methods.registry import *
from amble.networks.network import Network as Network
from amble.problem.problem import Problem as Problem
from amble.problem.split import split as split
from amble.results.loading import load_run as load_run
from amble.results.model import Model as Model
from amble.results.penalty_path import PenaltyPath as PenaltyPath
from amble.results.run import Run as Run
from amble.schedule.timing import Timing as Timing
from amble.simulation.comparison import Comparison as Comparison
from amble.simulation.comparison import compare as compare
from amble.simulation.path import path as path
from amble.simulation.simulate import resume as resume
from amble.simulation.simulate import simulate as simulate
from amble.sweeps.results import Sweep as Sweep
from amble.sweeps.sweep import sweep as sweep
from amble.tracking.mlflow import to_mlflow as to_mlflow
from amble.tracking.record import Record as Record
from amble.tracking.tensorboard import to_tensorboard as to_tensorboard
from amble.tracking.tracker import Tracker as Tracker

__version__: str
