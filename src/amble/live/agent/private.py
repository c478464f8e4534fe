"""The level of log lines that may quote the agent's own rows. They stay in its log: no page shows them."""

import logging

PRIVATE = logging.WARNING + 5
logging.addLevelName(PRIVATE, "PRIVATE")
