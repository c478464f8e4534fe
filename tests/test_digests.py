"""digests.py is SHA-256, whoever computes it; and an agent loads no OpenSSL for it."""

import hashlib
import subprocess
import sys

import numpy as np
import pytest

from amble.digests import MUCH_BYTES, hasher, sha256

SIZES = (0, 1, 55, 56, 64, 1000, MUCH_BYTES, MUCH_BYTES + 1)


@pytest.mark.parametrize("size", SIZES)
def test_a_digest_is_that_of_hashlib(size):
    content = np.random.default_rng(size).bytes(size)
    expected = hashlib.sha256(content).hexdigest()
    assert sha256(content).hexdigest() == sha256(memoryview(content)).hexdigest() == expected
    assert sha256(content).digest().hex() == expected
    whole = hasher(size)
    for k in range(0, size, 1000):
        whole.update(content[k : k + 1000])
    assert whole.hexdigest() == expected


def test_the_numbers_of_an_array_are_digested_as_bytes():
    numbers = np.linspace(0, 1, MUCH_BYTES // 8 + 1)
    for part in (numbers[:5], numbers):
        assert sha256(part.data).hexdigest() == hashlib.sha256(part.tobytes()).hexdigest()


def test_an_agent_loads_no_openssl():
    code = """import sys
before = set(sys.modules)  # a measurement of coverage has loaded it
import amble.live.agent.agent, amble.live.transport.zenoh.transport, zenoh
new = set(sys.modules) - before
print("_hashlib" in new and bool({"_sha2", "_sha256"} & set(sys.modules)))"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
