"""The losses that have a name: that of their file. A new loss is a file and a line here.

The order matters: without a name, the first loss that fits the task is used.
"""

# isort: off
from amble.losses.least_squares import LeastSquares as LeastSquares
from amble.losses.logistic import Logistic as Logistic
from amble.losses.softmax import Softmax as Softmax
