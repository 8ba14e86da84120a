"""Commands that end with the process that started them, however that ends."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

# The shell leads a process group, which is killed when our end of the pipe closes: also when we are killed.
GUARD = """exec 3<&0
"$@" < /dev/null 3<&- & stage=$!
{ read line <&3; kill -KILL 0; } > /dev/null 2>&1 &
wait $stage"""


def guarded(command: list[str], folder: Path, environment: dict[str, str], **options: Any) -> subprocess.Popen:
    """Start a command in a process group of its own that dies with this process. Close `stdin` to end it."""
    process = subprocess.Popen(
        ["sh", "-c", GUARD, "sh", *command],
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
        **options,
    )
    # Linux may share out the cores by sessions, and by `nice` only within one: a new session has to be made nice, too.
    if nice := os.nice(0):
        with suppress(OSError):
            Path(f"/proc/{process.pid}/autogroup").write_text(f"{nice}")
    return process
