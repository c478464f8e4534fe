"""Whole agents in this process: their driver, protocol and journal are real, and the links are in memory."""

import threading

from amble.live.agent.agent import address_of, course_of
from amble.live.agent.node import Node
from amble.live.settings.agent_config import AgentConfig
from amble.live.transport.memory import Memory

WITHIN_S = 60.0


class Nodes:
    """The agents of a folder that `amble init` or a cluster made."""

    def __init__(self, folder, names):
        self.folder, self.memory, self.nodes, self.threads = folder, Memory(), {}, {}
        for name in names:
            self.start(name)

    def start(self, name):
        home = self.folder / name
        config = AgentConfig.read(home, agreed=False)
        course = course_of(config, home)
        node = self.nodes[name] = Node(config, home, course, threading.Event())
        address = address_of(config, home, course.bytes_max)
        self.threads[name] = threading.Thread(target=node.run, args=(self.memory.open, address), daemon=True)
        self.threads[name].start()

    def stop(self, name):
        """As SIGTERM does."""
        self.nodes[name].ending.set()
        self.nodes[name].wake()
        self.wait(name)

    def wait(self, *names):
        """Until these have ended, or all have."""
        for name in names or self.threads:
            self.threads[name].join(WITHIN_S)
            assert not self.threads[name].is_alive(), f"{name} has not ended"
