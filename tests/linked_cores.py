"""Two or three agents, joined by a link that the test holds in its hands."""

from amble.live.chaos.tally import Mean
from amble.live.core.effects import Ask, Persist, Reply, Report, Settings
from amble.live.core.message import Passed, Token
from amble.live.core.protocol import Core
from amble.live.core.visits import GiftVisits, RawVisits
from amble.live.journal.journal import event_of, line_of
from amble.live.records.record import Record

NAMES = ("a", "b", "c")
WAY = {"a": "b", "b": "c", "c": "a"}
PATIENCE_S, SILENCE_S = 2.0, 120.0


class Link:
    """Cores that all know each other. What they ask waits here until the test delivers, repeats or drops it."""

    def __init__(self, names=NAMES, tokens=1, exact=True, method=None, start=None, kind=None, **stop):
        self.settings = Settings(names, tokens, 1, (WAY,) * tokens if len(names) == 3 else (), PATIENCE_S, **stop)
        kind = kind or (GiftVisits if exact else RawVisits)
        self.visits = kind(method or Mean(tokens), 1, len(names), self.settings.tolerance, start=start)
        self.disks = {name: {} for name in names}
        self.lines, self.holders = {name: [] for name in names}, {}
        self.asks, self.reports, self.replies, self.now, self.number = [], [], {}, 0.0, 0
        self.cores = {}
        for name in names:
            self.begin(name)
        for name in names:
            self.meet(name)

    def begin(self, name):
        near = tuple(other for other in self.disks if other != name)
        value = 1.0 + list(self.disks).index(name)
        self.cores[name] = Core(name, near, self.settings, self.visits, value, rows=dict(self.disks[name]))
        self.do(name, self.cores[name].start(self.now))

    def meet(self, name):
        for other in self.disks:
            if other != name:
                self.do(name, self.cores[name].peer(self.now, other, True))

    def do(self, name, effects):
        for effect in effects:
            if isinstance(effect, Persist):
                self.disks[name].update(effect.rows)
                if effect.visit:
                    self.lines[name].append(line_of(effect.visit, self.now + 1e-6 * len(self.visited()), 0.0, 0.0))
                    self.holders[name, effect.visit.number] = effect.rows["holder"]
            elif isinstance(effect, Ask):
                self.asks.append((name, effect))
            elif isinstance(effect, Reply):
                self.replies[effect.question] = effect.answer
            elif isinstance(effect, Report):
                self.reports.append((name, effect))

    def take(self, kind=Token):
        """The next question of this kind that is under way."""
        for k, (_, ask) in enumerate(self.asks):
            if isinstance(ask.question, kind):
                return self.asks.pop(k)
        return None

    def hear(self, asked):
        """It arrives; the answer is not on its way back yet."""
        self.number += 1
        _, ask = asked
        self.do(ask.to, self.cores[ask.to].heard(self.now, self.number, ask.question))
        return self.replies.pop(self.number)

    def answer(self, asked, answer):
        name, ask = asked
        self.do(name, self.cores[name].answered(self.now, ask.number, answer))

    def deliver(self, kind=Token):
        asked = self.take(kind)
        if asked:
            self.answer(asked, self.hear(asked))
        return asked

    def walk(self, hops):
        for _ in range(hops):
            self.deliver(Token)
            while self.deliver(Passed):
                pass

    def wait(self, seconds, *names):
        self.now += seconds
        for name in names or self.cores:
            self.do(name, self.cores[name].tick(self.now))

    def down(self, at, *names):
        for name in names:
            self.do(at, self.cores[at].peer(self.now, name, False))

    def said(self, kind):
        return [(name, report) for name, report in self.reports if report.kind == kind]

    def record(self):
        """As amble collect has it from journals."""
        visits = {name: tuple(lines) for name, lines in self.lines.items()}
        events = {name: tuple(event_of(_fields(report)) for who, report in self.reports if who == name)
                  for name in self.disks}  # fmt: skip
        agents = self.settings.agents
        return Record("made up", agents, len(agents), self.settings.tokens, visits, events, {})

    def visited(self):
        return [(name, report.hop) for name, report in self.said("visit")]


def _fields(report):
    """A report as the journal has it."""
    number, author = report.epoch or (None, None)
    return report._asdict() | {"epoch": number, "author": author, "time_s": 0.0}
