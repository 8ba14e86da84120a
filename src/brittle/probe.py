"""The pipeline's probes on a network of your own: `python -m brittle.probe mine.py --data mine.safetensors`.

mine.py has a function net() that returns a torch.nn.Module; mine.safetensors has samples x and labels y, may have
groups of coordinates (group.NAME), and has the weights (net.NAME) unless --weights names another file. Writes a table
and a page that stands alone. docs/your-network.md has an example.

In a notebook the module is a function: `import brittle`, then `brittle.probe(net, x, y)`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from brittle.arguments import Parser
from brittle.core import machine, store
from brittle.core.errors import BadInput

if TYPE_CHECKING:  # torch takes seconds to load: only once the arguments have been read
    from torch import nn

    from brittle.user_network.result import Probed

SAMPLES = 200


def probe(
    net: nn.Module,
    x: object,
    y: object,
    groups: Mapping[str, object] | None = None,
    *,
    radius: float | None = None,
    samples: int = SAMPLES,
    name: str = "the network",
) -> Probed:
    """Measure how brittle a network is; `print` what it returns, or look at its data frames and its page().

    net: samples (n, ...) -> (n, classes), or (n,) with the score of label 1. x, y: test samples and their labels, as
    tensors or arrays. groups: coordinates by name, as masks of a sample's shape or as places in a flat sample. radius:
    the largest at which robust accuracy is measured. samples: how many are attacked. The network is left in eval mode.
    """
    from brittle.user_network.measure import measured
    from brittle.user_network.result import Probed
    from brittle.user_network.subject import subject

    if radius is not None and not 0 < radius < float("inf"):
        raise BadInput(f"radius = {radius}: must be a number > 0")
    if samples < 1:
        raise BadInput(f"samples = {samples}: must be an integer ≥ 1")
    of = subject(net, x, y, groups)
    about = {"name": name, "shape": of.shape, "classes": of.classes, "layers": len(of.mlp.weights) if of.mlp else 0}
    return Probed.of(measured(of, radius, samples), **about)


def main(words: list[str] | None = None) -> None:
    asked = _arguments(words)
    out = Path(asked.out or Path(asked.file).stem)
    from brittle.user_network import files

    machine.use_threads(2)
    x, y, groups, state = files.samples(asked.data)
    if asked.weights:
        state = files.arrays(asked.weights)
    net = files.network(asked.file, asked.function, state, asked.weights or asked.data)
    if not state:
        print(f"no weights are given: the network is probed as {asked.function}() returns it", file=sys.stderr)
    found = probe(net, x, y, groups, radius=asked.radius, samples=asked.samples, name=Path(asked.file).stem)
    page = found.page().encode()
    store.save_table(f"{out}.csv", found.table())
    store.save_bytes(f"{out}.html", page)
    print(found)
    print(f"\nwritten: {out}.csv, {out}.html")


def _arguments(words: list[str] | None) -> argparse.Namespace:
    parser = Parser(prog="python -m brittle.probe", description="Measure how brittle a network of your own is.")
    parser.add_argument("file", help="a Python file with a function that returns the network, a torch.nn.Module")
    parser.add_argument("--data", required=True, help="safetensors: x, y, and perhaps group.NAME and net.NAME")
    parser.add_argument("--weights", help="safetensors: the network's state_dict, if it is not in DATA as net.NAME")
    parser.add_argument("--function", default="net", help="the function's name (default: net)")
    parser.add_argument("--out", help="write OUT.csv and OUT.html (default: the name of the Python file)")
    parser.add_argument("--radius", type=float, help="the largest l2 radius (default: what flips most samples)")
    parser.add_argument("--samples", type=int, default=SAMPLES, help=f"how many are attacked (default: {SAMPLES})")
    return parser.parse_args(words)


class _Function(ModuleType):
    """A module that can be called, so that the command and the function have one name."""

    def __call__(self, *arguments: object, **options: object) -> Probed:
        return probe(*arguments, **options)


_Function.__call__.__doc__, _Function.__call__.__wrapped__ = probe.__doc__, probe
sys.modules[__name__].__class__ = _Function

if __name__ == "__main__":
    try:
        main()
    except BadInput as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
