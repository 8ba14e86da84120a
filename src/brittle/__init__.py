"""Why gradient-trained neural networks are brittle, and what fixes it."""

import importlib

from brittle.core import machine

machine.fix()


def __getattr__(name: str) -> object:
    """Load `brittle.probe(net, x, y)` when it is asked for: no stage needs it, so none depends on it."""
    if name == "probe":
        return importlib.import_module("brittle.probe")
    raise AttributeError(f"module 'brittle' has no attribute {name!r}")
