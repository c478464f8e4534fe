"""What all tests share."""

import gc
import os
import tempfile


def pytest_configure(config):
    """Many tests start programs that compile the same loops: what one has compiled, the next one reads. Each process
    that runs tests has a folder of its own, as JAX does not write such files in one piece."""
    folder = tempfile.TemporaryDirectory(prefix="amble-compiled-")
    config.add_cleanup(folder.cleanup)
    os.environ["JAX_COMPILATION_CACHE_DIR"] = folder.name
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"


def pytest_collection_modifyitems(items):
    """The long ones first, so that no process is left alone with one at the end."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def pytest_collection_finish():
    gc.freeze()  # what is loaded by now stays: looking through it again and again takes a tenth of the time
