"""Start stages without waiting for Python's libraries: a process that has loaded them forks once for each stage.

Python, torch, pandas and matplotlib take about two seconds to start; half of all stages take no longer than that for
their work. The process, this file as a program, holds no module of brittle but the one that fixes the kernels, and
has computed nothing when it forks. So a stage computes what `python -m MODULE` would.

Between the stage and that process there is a keeper, which leads the stage's process group. It reports the exit code,
and kills the group when our end of its socket closes: also when we are killed.
"""

from __future__ import annotations

import atexit
import ctypes
import importlib
import json
import os
import re
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

LIBRARIES = ("numpy", "pandas", "scipy.optimize", "torch", "matplotlib.pyplot", "pydantic", "ruamel.yaml", "tqdm")
# The command of every stage of ours. Any other is for a shell.
COMMAND = re.compile(r"PYTHONPATH=src python -m (brittle(?:\.\w+)+)((?: [\w.@-]+)*)")
DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of prctl(2)
LEFT, READY = b"-", b"+"  # what goes over the socket between the runner and the process


class Forked:
    """A stage under way, as far as a run needs to know: like the Popen that `processes.guarded` returns."""

    def __init__(self, keeper: socket.socket, words: dict[str, Any]) -> None:
        self.stdin = keeper  # closing it ends the stage
        self.said = keeper.makefile()
        keeper.sendall(f"{json.dumps(words)}\n".encode())
        self.pid = int(self.said.readline())  # of the keeper, and so of the process group

    def wait(self) -> int:
        with self.said:
            return int(self.said.readline() or -signal.SIGKILL)  # a keeper that was killed says nothing


class Preloaded:
    """The process, for as long as this object lives. It may be asked by several threads at once."""

    def __init__(self, root: Path) -> None:
        self.root, self.ready, self.lock = root, False, threading.Lock()
        self.socket, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                ["python", __file__],
                cwd=root,
                env=os.environ | {"PYTHONPATH": "src"},
                stdin=theirs,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for the runner
            )

    def start(self, command: str, folder: Path, environment: dict[str, str], log: int) -> Forked | None:
        """Start a stage that prints to this file; None if the process has not loaded yet or cannot do it."""
        ours = COMMAND.fullmatch(command)
        with self.lock:
            if not ours or folder.resolve() != self.root.resolve() or not self._loaded():
                return None
            ends = socket.socketpair()
            try:
                with ends[1]:
                    socket.send_fds(self.socket, [LEFT], [ends[1].fileno(), log])
                words = [ours[1], *ours[2].split()]
                return Forked(ends[0], {"words": words, "environment": environment})
            except (OSError, ValueError):  # the process has gone
                ends[0].close()
                self.ready = False
                return None

    def _loaded(self) -> bool:
        if not self.ready and select.select([self.socket], [], [], 0)[0]:
            self.ready = self.socket.recv(1) == READY
        return self.ready

    def close(self) -> None:
        self.socket.close()
        self.process.kill()
        self.process.wait()


def preloaded(root: Path) -> Preloaded | None:
    """Start such a process where there can be one: elsewhere than on Linux libraries do not survive a fork."""
    return Preloaded(root) if sys.platform == "linux" and hasattr(os, "pidfd_open") else None


# --- The process


def serve(control: socket.socket) -> None:
    """Load the libraries; then fork a keeper for each stage, until the runner has gone."""
    import brittle  # noqa: F401, before the numerical libraries: it tells them which kernels to take

    for name in LIBRARIES:
        importlib.import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for keepers
    control.sendall(READY)
    while True:
        _, files, _, _ = socket.recv_fds(control, len(LEFT), 2)
        if not files:
            return
        if os.fork() == 0:
            control.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            keep(socket.socket(fileno=files[0]), files[1])
        for file in files:
            os.close(file)


def keep(runner: socket.socket, log: int) -> NoReturn:
    """Fork the stage, report its exit code, and end the whole process group when the runner lets go."""
    os.setsid()
    if nice := os.nice(0):  # which Linux may take into account within a session only (see processes.py)
        with suppress(OSError):
            Path("/proc/self/autogroup").write_text(f"{nice}")
    asked = json.loads(runner.makefile().readline())
    stage = os.fork()
    if stage == 0:
        runner.close()
        become(asked["words"], asked["environment"], log)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # that is for the stage
    os.close(log)
    runner.sendall(f"{os.getpid()}\n".encode())
    ended = os.pidfd_open(stage)
    if ended in select.select([ended, runner], [], [])[0]:
        code = os.waitstatus_to_exitcode(os.waitpid(stage, 0)[1])
        with suppress(OSError):
            runner.sendall(f"{code}\n".encode())
        runner.recv(1)  # until the runner lets go
    os.killpg(0, signal.SIGKILL)
    raise AssertionError("that was the end")


def become(words: list[str], environment: dict[str, str], log: int) -> NoReturn:
    """Do what `python -m` with these words does in that environment, and end."""
    null = os.open(os.devnull, os.O_RDONLY)
    for file, number in ((null, 0), (log, 1), (log, 2)):
        os.dup2(file, number)
    os.closerange(3, max(null, log) + 1)
    os.environ.clear()
    os.environ.update(environment | {"PYTHONPATH": "src"})
    sys.modules["brittle"].machine.fix()
    with suppress(OSError):
        Path("/proc/self/comm").write_text(words[0][-15:])  # the name that `ps` and `top` show
    sys.argv = words.copy()
    sys.path.insert(0, os.getcwd())
    code: object = 0
    try:
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
        code = 1
    if isinstance(code, str):
        print(code, file=sys.stderr)
    with suppress(Exception):
        threading._shutdown()  # what Python does before it ends: wait for threads, and
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)  # also while it is loading
    sys.path.pop(0)  # this folder, whose modules are not to be found by their last names
    serve(socket.socket(fileno=os.dup(0)))
