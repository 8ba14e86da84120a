"""A bar with the time left on a terminal, silence elsewhere; and the commands of the Makefile."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import termios

from conftest import ENV, ROOT

WORK = """
import time
from brittle.core.progress import bar, tracked
for _ in tracked(range(4), "attacking"):
    time.sleep(0.15)
with bar(2, "training") as shown:
    for _ in range(4):
        time.sleep(0.15)
        shown.update(0.5)
"""


def test_a_terminal_sees_the_time_left() -> None:
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    process = subprocess.Popen([sys.executable, "-c", WORK], env=ENV, stderr=theirs)
    os.close(theirs)
    seen = b""
    while True:
        try:
            chunk = os.read(ours, 4096)
        except OSError:  # Linux's way to say that the other side is closed
            break
        if not chunk:
            break
        seen += chunk
    assert process.wait() == 0
    for what in (b"attacking", b"training"):
        assert what + b"  50% |" in seen
        assert what + b" 100% |" in seen
    assert b"00:00 left" in seen


def test_a_log_file_sees_nothing() -> None:
    done = subprocess.run([sys.executable, "-c", WORK], env=ENV, capture_output=True, text=True, check=True)
    assert done.stdout + done.stderr == ""


def test_make_help_lists_every_target() -> None:
    out = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    phony = next(line for line in (ROOT / "Makefile").read_text().splitlines() if line.startswith(".PHONY:"))
    for target in phony.split()[1:]:
        assert f"make {target} " in out


def test_make_refuses_another_python_in_one_line() -> None:
    command = ["make", "--always-make", "env", "PYTHON=false"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith(
        "brittle needs Python 3.11, 3.12 or 3.13 with venv (Debian: python3-venv); name one with: make env "
    )
