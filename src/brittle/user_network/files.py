"""The files that a user names: the Python file with the function that builds the network, weights, and samples."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
from torch import nn

from brittle.core import store
from brittle.core.errors import BadInput
from brittle.nets import weights
from brittle.plugins import Plugin

GROUP, OWN = "group.", "net."  # how names of groups, and of weights beside the samples, begin


def arrays(path: str) -> dict[str, np.ndarray]:
    """The tensors of a safetensors file."""
    if not Path(path).is_file():
        raise BadInput(f"{path}: is missing; must be a safetensors file")
    try:
        return store.load_tensors(path, {})
    except BadInput as error:
        raise BadInput(re.sub(r"; remove it and run `dvc repro`", "", str(error))) from None


def samples(path: str) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray], dict[str, np.ndarray]]:
    """x, y, the groups of coordinates, and the weights if they are in the same file."""
    found = arrays(path)
    parts = [{}, {}]
    for name in list(found):
        for part, prefix in zip(parts, (GROUP, OWN), strict=True):
            if name.startswith(prefix):
                part[name.removeprefix(prefix)] = found.pop(name)
    absent, unknown = [name for name in "xy" if name not in found], sorted(set(found) - {"x", "y"})
    if absent or unknown:
        problem = f"has no tensor {absent[0]}" if absent else f"has a tensor {unknown[0]}"
        raise BadInput(f"{path}: {problem}; must have x and y, and may have {GROUP}NAME and {OWN}NAME (weights)")
    return found["x"], found["y"], *parts


def network(path: str, function: str, state: dict[str, np.ndarray], weights_from: str) -> nn.Module:
    """The network that the function in the file builds, with these weights if there are any."""
    file = Path(path)
    if file.suffix != ".py" or not file.is_file():
        raise BadInput(f"{path}: must be a Python file (.py) with a function {function}() that returns a network")
    module = Plugin("file", file.stem, lambda: _imported(file), path)()
    found = getattr(module, function, None)
    if not callable(found):
        raise BadInput(f"{path}: has no function {function}(); write one, or name another with --function")
    source = Plugin("function", function, found, path)
    net = source()
    if not isinstance(net, nn.Module):
        raise source.wrong(f"must return a torch.nn.Module, not {type(net).__name__}")
    if state:
        try:
            weights.restore(net, state)
        except RuntimeError as error:
            words = " ".join(str(error).split("\n", 1)[-1].split())[:300]
            raise BadInput(f"{weights_from}: does not fit the network that {path} builds: {words}") from None
    return net.eval()


def _imported(file: Path) -> object:
    """The user's module. It may import its neighbours, as if it were run by itself; nothing is left beside it."""
    spec = importlib.util.spec_from_file_location(f"user_network_{file.stem}", file)
    module, before = importlib.util.module_from_spec(spec), sys.dont_write_bytecode
    sys.modules[spec.name] = module  # dataclasses look for their module there
    sys.path.insert(0, str(file.parent.resolve()))
    sys.dont_write_bytecode = True
    try:
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
        sys.path.remove(str(file.parent.resolve()))
    return module
