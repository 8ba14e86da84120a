"""The command line of a benchmark: its docstring as help, `--tiny`, and a one-line message for a wrong argument."""

from __future__ import annotations

import argparse
import signal
import sys
from typing import NoReturn


class Command(argparse.ArgumentParser):
    def __init__(self, doc: str | None) -> None:
        super().__init__(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
        self.add_argument("--tiny", action="store_true", help="seconds: whether it runs, not how fast anything is")

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def stoppable() -> None:
    """Make SIGTERM end the program as an exception does, so that the processes it has started are ended, too."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
