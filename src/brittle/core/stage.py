"""A stage as a program: `python -m brittle.CHAPTER.NAME` reads params.yaml, runs, and reports errors plainly."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import TypeVar

from pydantic import BaseModel

from brittle.core import machine
from brittle.core.errors import BadInput
from brittle.core.params import load

P = TypeVar("P", bound=BaseModel)


def run(stage: Callable[..., None], schema: type[P]) -> None:
    """Run the stage on its section of params.yaml.

    A cell of a matrix takes its coordinate, a number or a name, as its only argument.
    """
    axes = list(inspect.signature(stage).parameters.values())[1:]
    cell = sys.argv[1:]
    try:
        machine.use_threads()
        if len(cell) != len(axes) or not all(map(_fits, cell, axes)):
            usage = " ".join(axis.name.upper() for axis in axes)
            raise BadInput(f"usage: python -m {stage.__globals__['__spec__'].name} {usage}")
        stage(load(schema), *(int(value) if value.isdecimal() else value for value in cell))
    except BadInput as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    except (MemoryError, RuntimeError) as error:
        from brittle.core.device import is_out_of_memory  # which imports torch: figures do without

        if not is_out_of_memory(error):
            raise
        print("out of memory; use smaller sizes in params.yaml", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("stopped; run the same command again to resume", file=sys.stderr)
        sys.exit(130)


def _fits(value: str, axis: inspect.Parameter) -> bool:
    return value.isdecimal() == (axis.annotation == "int")
