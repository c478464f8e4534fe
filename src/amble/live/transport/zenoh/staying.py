"""Keeps Python's state of Zenoh's threads, which call us often."""

import ctypes
import threading

THREADS_MAX = 16  # of a process: Zenoh receives with a few, always the same ones

_here = threading.local()
_counted = threading.Lock()
_stayed = 0


def stay() -> None:
    """To be called in a callback. Python makes a state for a foreign thread at each call and takes it down after it,
    memory mapping and all, which costs more than most callbacks; one that is held once more outlives the call.
    """
    global _stayed
    if getattr(_here, "stays", False):
        return
    with _counted:
        if _stayed >= THREADS_MAX:
            return
        _stayed += 1
    _here.stays = True
    ctypes.pythonapi.PyGILState_Ensure()
