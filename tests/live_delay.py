"""A line with long round trips: a TCP relay that passes everything on, but later."""

import contextlib
import queue
import socket
import threading
import time

from live_samples import HOST, free_port


class Delay:
    """Listens on `port` and passes on to `to`; each byte takes `delay_s`, and so does each leg of the handshake."""

    def __init__(self, to, delay_s):
        self.to, self.delay_s, self.port = to, delay_s, free_port()
        self.stack = contextlib.ExitStack()
        self.listener = self.stack.enter_context(socket.create_server((HOST, self.port)))
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self.stack.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                near = self.stack.enter_context(self.listener.accept()[0])
                threading.Thread(target=self._join, args=(near,), daemon=True).start()

    def _join(self, near):
        time.sleep(2 * self.delay_s)  # who dials believes to be connected already: what it says comes later for that
        with contextlib.suppress(OSError):
            far = self.stack.enter_context(socket.create_connection((HOST, self.to)))
            for one, other in ((near, far), (far, near)):
                late = queue.Queue()
                threading.Thread(target=self._read, args=(one, late), daemon=True).start()
                threading.Thread(target=self._write, args=(other, late), daemon=True).start()

    def _read(self, one, late):
        data = b"-"
        while data:
            try:
                data = one.recv(65536)
            except OSError:
                data = b""
            late.put((time.monotonic() + self.delay_s, data))

    def _write(self, other, late):
        with contextlib.suppress(OSError):
            while True:
                at_s, data = late.get()
                time.sleep(max(0.0, at_s - time.monotonic()))
                if not data:
                    other.shutdown(socket.SHUT_WR)
                    return
                other.sendall(data)
