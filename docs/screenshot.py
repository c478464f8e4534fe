"""Makes docs/page.png, the picture of docs/page.md, from a real run in a real browser: python docs/screenshot.py"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from amble.live import status

ROOT = Path(__file__).parent.parent
RUN = ("--data", "diabetes", "--agents", "12", "--density", "0.3", "-m", "Relay:tokens=3,form=scalar")
SLOW = ("--pause", "0.12", "--tolerance", "0", "--hops", "100000000", "--page", "--no-browser")
SHOWN_S, DOWN_S = 40.0, 3.0  # before one agent is killed, and after that
STATES = "return [...document.querySelectorAll('#agents tbody td:nth-child(2)')].map((cell) => cell.textContent)"


def main() -> None:
    sys.path.insert(0, str(ROOT / "tests"))
    from browser import Browser

    with tempfile.TemporaryDirectory() as folder, Browser(1280, 860) as browser:
        command = [sys.executable, "-m", "amble", "up", *RUN, *SLOW, "-o", f"{folder}/run"]
        run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert run.stdout is not None
        try:
            url = next(match[0] for line in run.stdout if (match := re.search("http://[^ \n]+", line)))
            browser.open(url)
            browser.wait(f"return (() => {{ {STATES} }})().every((state) => state === 'up')")
            time.sleep(SHOWN_S)
            killed = status.read(Path(folder) / "run" / "agent07").process
            assert killed is not None
            os.kill(killed.pid, signal.SIGKILL)
            time.sleep(DOWN_S)
            browser.picture(ROOT / "docs/page.png")
        finally:
            run.terminate()
            run.wait()


if __name__ == "__main__":
    main()
