"""An agent that echoes what it is asked, for tests: commands come in and events go out as lines of JSON."""

import ctypes
import json
import logging
import os
import queue
import sys
import threading
import time
from pathlib import Path

from amble.live.transport.address import Address, Link
from amble.live.transport.zenoh import engine_log
from amble.live.transport.zenoh.transport import ZenohTransport


def say(**event):
    sys.stdout.write(json.dumps(event) + "\n")  # one write: lines of several threads do not mix
    sys.stdout.flush()


class Logged(logging.Handler):
    def emit(self, record):
        say(log=record.getMessage())


def address_of(given):
    given["neighbours"] = tuple(Link(*link) for link in given["neighbours"])
    return Address(**{name: Path(v) if name in ("authority", "certificate", "key") else v for name, v in given.items()})


def answer(heard):
    """Echo; but hold back what begins with `hold` for as long as it lasts, and throw away what begins with `drop`."""
    held = []
    while (question := heard.get()) is not None:
        sender, payload, reply = question
        say(heard=sender, words=payload[:20].decode(), size=len(payload))
        if payload.startswith(b"hold"):
            held.append(reply)
        elif not payload.startswith(b"drop"):
            reply(sender.encode() + b" said " + payload[:100])
        del reply, question


def ask(transport, command):
    """Many questions at once, at most `together` under way."""
    free = threading.Semaphore(command.get("together", 1))
    payload = command["words"].encode().ljust(command.get("size", 0), b".")
    done = threading.Semaphore(0)
    counts, times, last = {}, [], [None]

    def answered(i, began, reply):
        times.append(time.perf_counter() - began)
        counts[i] = counts.get(i, 0) + 1
        last[0] = reply
        free.release()
        done.release()

    count = command.get("count", 1)
    for i in range(count):
        free.acquire()
        began = time.perf_counter()
        timeout_s = command.get("timeout_s", 10.0)
        transport.ask(command["to"], payload, timeout_s, lambda reply, i=i, began=began: answered(i, began, reply))
    for _ in range(count):
        done.acquire()
    times.sort()
    last = None if last[0] is None else last[0][:40].decode()
    figures = {"median_s": times[count // 2], "p99_s": times[int(count * 0.99)], "most_s": times[-1]}
    say(asked=command["words"], last=last, each_once=sorted(counts.values()) == [1] * count, **figures)


def main():
    logging.getLogger("amble").addHandler(Logged())
    logging.getLogger("amble").setLevel(logging.INFO)
    heard = queue.Queue()
    threading.Thread(target=answer, args=(heard,), daemon=True).start()
    given = json.loads(sys.argv[1])
    if given.pop("engine_log", False):
        engine_log.listen()
    address = address_of(given)
    try:
        transport = ZenohTransport.open(address, lambda *q: heard.put(q), lambda name, up: say(peer=name, up=up))
    except ValueError as error:
        say(error=str(error))
        return
    say(open=address.name)
    asking = []
    for line in sys.stdin:
        command = json.loads(line)
        if "to" in command:
            asking.append(threading.Thread(target=ask, args=(transport, command), daemon=True))
            asking[-1].start()
        elif "rss" in command:
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            say(rss_mb=pages * os.sysconf("SC_PAGE_SIZE") / 1e6, threads=len(os.listdir("/proc/self/task")))
        elif "doubled" in command:
            say(doubled=sorted(transport.doubled()))
        elif "block_s" in command:  # Python's lock is kept: no thread of Python's runs
            ctypes.PyDLL(None).usleep(int(command["block_s"] * 1e6))
        else:
            break
    transport.close()
    transport.close()
    say(closed=address.name, threads=[t.name for t in threading.enumerate() if not t.daemon or "amble" in t.name])
    heard.put(None)
    for thread in asking:
        thread.join(10)  # it has yet to say that there is no answer


if __name__ == "__main__":
    main()
