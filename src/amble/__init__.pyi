# What `amble.NAME` is, for editors and type checkers: `__init__.py` imports each name when it is first used.
# tests/test_typing.py checks that the two name the same things.

from amble import networks as networks
from amble.data.datasets import Dataset as Dataset
from amble.data.datasets import load as load
from amble.data.files import read_file as read_file
from amble.errors import AmbleError as AmbleError
from amble.losses import LeastSquares as LeastSquares
from amble.losses import Logistic as Logistic
from amble.losses import Softmax as Softmax
from amble.methods.apibcd import APIBCD as APIBCD
from amble.methods.central import Central as Central
from amble.methods.dadmm import DADMM as DADMM
from amble.methods.dgd import DGD as DGD
from amble.methods.extra import EXTRA as EXTRA
from amble.methods.fedavg import FedAvg as FedAvg
from amble.methods.gapibcd import GAPIBCD as GAPIBCD
from amble.methods.ibcd import IBCD as IBCD
from amble.methods.parameters import method as method
from amble.methods.pwadmm import PWADMM as PWADMM
from amble.methods.relay import Relay as Relay
from amble.methods.syncwalks import SyncWalks as SyncWalks
from amble.methods.wadmm import WADMM as WADMM
from amble.methods.wpg import WPG as WPG
from amble.networks.network import Network as Network
from amble.problem.problem import Problem as Problem
from amble.problem.problem import split as split
from amble.results.loading import load_run as load_run
from amble.results.run import Run as Run
from amble.schedule.timing import Timing as Timing
from amble.simulation.comparison import Comparison as Comparison
from amble.simulation.comparison import compare as compare
from amble.simulation.simulate import resume as resume
from amble.simulation.simulate import simulate as simulate

__version__: str
