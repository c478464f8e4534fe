"""The losses that have a name: that of their file. A new loss is a file and a line here.

The order matters: without a name, the first loss that fits the task is used.
"""

# isort: off
from amble.losses.least_squares import LeastSquares as LeastSquares
from amble.losses.logistic import Logistic as Logistic
from amble.losses.softmax import Softmax as Softmax
from amble.losses.poisson import Poisson as Poisson
from amble.losses.gamma import Gamma as Gamma
from amble.losses.huber import Huber as Huber
from amble.losses.cox import Cox as Cox
from amble.losses.cox_breslow import CoxBreslow as CoxBreslow
