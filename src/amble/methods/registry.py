"""The methods that have a name, in the order of help and docs. A new method is a file and a line here."""

# isort: off
from amble.methods.ibcd import IBCD as IBCD
from amble.methods.apibcd import APIBCD as APIBCD
from amble.methods.gapibcd import GAPIBCD as GAPIBCD
from amble.methods.wpg import WPG as WPG
from amble.methods.tokensgd import TokenSGD as TokenSGD
from amble.methods.wadmm import WADMM as WADMM
from amble.methods.pwadmm import PWADMM as PWADMM
from amble.methods.dualbcd import DualBCD as DualBCD
from amble.methods.mhlj import MHLJ as MHLJ
from amble.methods.relay import Relay as Relay
from amble.methods.dgd import DGD as DGD
from amble.methods.extra import EXTRA as EXTRA
from amble.methods.diging import DIGing as DIGing
from amble.methods.datos import DATOS as DATOS
from amble.methods.adpsgd import ADPSGD as ADPSGD
from amble.methods.dadmm import DADMM as DADMM
from amble.methods.central import Central as Central
from amble.methods.syncwalks import SyncWalks as SyncWalks
from amble.methods.fedavg import FedAvg as FedAvg
