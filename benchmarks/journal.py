"""How large a journal gets, how long it takes to open, and what a visit's transaction costs, by the visits behind it.

    python benchmarks/journal.py                    # 10,000 and 1,000,000 visits, all kept and the newest 100,000 kept
    python benchmarks/journal.py --ratio            # a visit's transaction beside a bare one of as many bytes

WPG with 11 unknowns and 3 tokens. The visits behind it are made in few transactions without the disk's sync, for these
are not what is measured. `open` is what a start waits for (Journal.open and load); beside it is what checking the whole
file would take, which a start does not do.
"""

import itertools
import sqlite3
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
from measure import clocked, compare, parser, table

import amble
from amble.live.core import visits
from amble.live.core.effects import Custody, Persist, Share, Sight, Visit
from amble.live.core.message import Epoch, Token
from amble.live.formats.shape import Shape, run_digest
from amble.live.journal.journal import BATCH, VISIT, Journal

TOKENS, AGENTS = 3, tuple(f"agent{k:02d}" for k in range(8))
TRANSACTIONS = 4 * BATCH  # so that lines are dropped a few times
OPENED = 5


def parts():
    data = amble.load("diabetes")
    problem = amble.Problem.from_arrays(data.X, data.y, agents=len(AGENTS), ridge=1e-2)
    kind = visits.visits_for(amble.WPG(alpha=0.1, tokens=TOKENS), problem.dimension, len(AGENTS))
    return Shape(run_digest({}), AGENTS, TOKENS, kind.parcel(0)), kind, problem.objective(0)


def effect(kind, f, number):
    m, epoch = number % TOKENS, Epoch(0, 0)
    holder, share, parcel = kind.visit(f, kind.holder(f), kind.share(), kind.parcel(m), 0, 1, True)
    custody = Custody(Token(m, epoch, number, AGENTS[0], parcel), AGENTS[1], AGENTS[2], Sight(epoch, number), True)
    rows = {"holder": holder, f"share/{m}": Share(epoch, share), f"sight/{m}": Sight(epoch, number)}
    return Persist(rows | {f"custody/{m}": custody}, Visit(m, epoch, number, AGENTS[2], number, parcel, parcel))


def fill(journal, last, visits_max):
    """As after so many visits, of which the newest `visits_max` are kept."""
    journal.connection.execute("PRAGMA synchronous = OFF")
    digest = "0" * 16
    first = max(1, last - visits_max + 1) if visits_max else 1
    lines = ((n, n % TOKENS, 0, 0, n, AGENTS[2], 1e9 + n, 1e-3, 1e-3, digest, digest) for n in range(first, last + 1))
    journal.connection.execute("BEGIN")
    journal.connection.executemany(VISIT, lines)
    journal.connection.execute("COMMIT")
    journal.connection.execute("PRAGMA synchronous = FULL")


def timed(work, times):
    taken = []
    for k in range(times):
        begin = time.perf_counter()
        work(k)
        taken.append(time.perf_counter() - begin)
    return taken


def measure(path, last, visits_max):
    shape, kind, f = parts()

    def opened():
        return Journal.open(path, shape, kind, f, AGENTS[0], visits_max)

    journal = opened()
    fill(journal, last, visits_max)
    effects = [effect(kind, f, last + 1 + k) for k in range(TRANSACTIONS)]
    visit_s = timed(lambda k: journal.persist(effects[k], 0.0), TRANSACTIONS)
    (kept,) = journal.connection.execute("SELECT count(*) FROM visits").fetchone()
    check_s = timed(lambda _: journal.connection.execute("PRAGMA quick_check").fetchone(), 1)
    journal.close()

    def start(_):
        journal = opened()
        journal.load()
        journal.close()

    figures = (1e3 * statistics.median(timed(start, OPENED)), 1e3 * check_s[0])
    return kept, path.stat().st_size / 1e6, *figures, 1e3 * statistics.median(visit_s), 1e3 * np.mean(visit_s)


def bare(path, journal):
    """Transactions of bare SQLite that write as many rows and bytes, with the same pragmas."""
    connection = sqlite3.connect(path, isolation_level=None)
    for pragma in ("locking_mode = EXCLUSIVE", "synchronous = FULL", "journal_mode = WAL"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute("CREATE TABLE rows (name TEXT PRIMARY KEY, body BLOB) WITHOUT ROWID")
    connection.execute(f"CREATE TABLE visits (number INTEGER PRIMARY KEY, {', '.join('abcdefghij')})")
    bodies = dict(journal.connection.execute("SELECT name, body FROM rows"))
    rows = [[(name, bodies[name]) for name in ("holder", *(f"{row}/{m}" for row in ("share", "sight", "custody")))]
            for m in range(TOKENS)]  # fmt: skip
    (line,) = journal.connection.execute("SELECT * FROM visits ORDER BY number DESC LIMIT 1").fetchall()
    number = 0

    def work(times):
        nonlocal number
        for _ in range(times):
            number += 1
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("REPLACE INTO rows VALUES (?, ?)", rows[number % TOKENS])
            connection.execute(f"INSERT INTO visits VALUES ({', '.join('?' * 11)})", (number, *line[1:]))
            connection.execute("COMMIT")

    return work


def ratio():
    """A visit's transaction beside a bare one, on the same disk: by the clock, and in CPU time."""
    shape, kind, f = parts()
    with tempfile.TemporaryDirectory() as folder_name:
        journal = Journal.open(Path(folder_name) / "journal.db", shape, kind, f, AGENTS[0])
        numbers, effects = itertools.count(TOKENS), [effect(kind, f, number) for number in range(TOKENS)]

        def visits(times):
            for number in itertools.islice(numbers, times):
                made = effects[number % TOKENS]
                journal.persist(made._replace(visit=made.visit._replace(number=number)), 0.0)

        visits(TOKENS)
        others = bare(Path(folder_name) / "bare.db", journal)
        for name, clock in (("by the clock", time.perf_counter), ("CPU time", time.process_time)):
            own, other = clocked(visits, clock), clocked(others, clock)
            yield compare(f"a visit's transaction, {name}", own, "a transaction of bare SQLite", other)
        journal.close()


def main(counts, keep):
    print("| visits | visits_max | kept | file MB | open ms | a check of all of it ms | a visit ms | mean |")
    print("|---" * 8 + "|")
    with tempfile.TemporaryDirectory() as folder_name:
        for last in counts:
            for visits_max in (0, keep):
                kept, *figures = measure(Path(folder_name) / f"{last}-{visits_max}.db", last, visits_max)
                cells = (f"{last:,}", f"{visits_max:,}" if visits_max else "all", f"{kept:,}")
                print("| " + " | ".join([*cells, *(f"{each:,.2f}" for each in figures)]) + " |", flush=True)


if __name__ == "__main__":
    options = parser(__doc__)
    options.add_argument("--ratio", action="store_true")
    options.add_argument("--visits", type=int, nargs="+", default=[10_000, 1_000_000])
    options.add_argument("--keep", type=int, default=100_000)
    arguments = options.parse_args()
    if arguments.ratio:
        table(ratio(), arguments.json)
    else:
        main(arguments.visits, arguments.keep)
