"""Words on a command line: what is wrong with them is told in one line, as any other bad input."""

from __future__ import annotations

import argparse
from typing import NoReturn

from brittle.core.errors import BadInput


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        usage = " ".join(self.format_usage().split()[1:])
        raise BadInput(f"{message.removeprefix('argument ')}; usage: {usage}")
