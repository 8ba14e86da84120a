"""A stage as a program: `python -m brittle.stages.NAME` reads params.yaml, works, and says plainly what is wrong."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

from pydantic import BaseModel

from brittle.params.base import BadInput, load

P = TypeVar("P", bound=BaseModel)


def run(stage: Callable[[P], None], schema: type[P]) -> None:
    try:
        stage(load(schema))
    except BadInput as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "memory" not in str(error):
            raise
        print("out of memory; smaller d, alpha or width need less", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("stopped; run the same command again to go on", file=sys.stderr)
        sys.exit(130)
