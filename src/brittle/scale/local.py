"""A run on this machine: `dvc repro`, with as many stages side by side as there are cores.

DVC runs one stage after the other, because its own work (what has changed, the caches, the lock files) is for one
thread at a time. So it is here: DVC itself reproduces each stage, in a thread of its own, and the threads take
turns. Only while the command of a stage runs, nearly all of the time, others have their turn. What is written is
therefore what `dvc repro` writes. (DVC itself gives up its lock of the workspace while a command runs.)
"""

from __future__ import annotations

import math
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import dvc.stage.run
from dvc.stage import PipelineStage
from dvc.stage.exceptions import StageCmdFailedError
from dvc.utils.serialize import modify_yaml

from brittle.core.errors import BadInput
from brittle.core.progress import Pace
from brittle.processes import guarded
from brittle.scale.display import FIGURES
from brittle.scale.estimate import tails
from brittle.scale.graph import Node
from brittle.scale.preloaded import Forked, Preloaded, preloaded
from brittle.scale.run import Run, Stopped, interruptible

POLL = 0.2  # seconds between two looks at the bar
PATIENCE = 5.0  # seconds that stopped stages have to end by themselves
KEPT = 10.0  # seconds after which it is written down how long stages have been running

Amounts = dict[str, float]  # of what a machine offers, or a stage needs: CORES, MEMORY in bytes, GPU


def cores() -> int:
    """The cores that this process may use: those it is bound to, or what a container's share of their time is worth."""
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with suppress(OSError, ValueError):  # no such file, or "max": no limit
        quota, period = map(int, Path("/sys/fs/cgroup/cpu.max").read_text().split())
        return max(1, min(bound, round(quota / period)))
    return bound


def memory() -> float:
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


def gpus() -> int:
    """The number of CUDA devices that this process may use."""
    import torch  # imported here because it is slow

    return torch.cuda.device_count()


def _gpus(wanted: int) -> list[str]:
    """The names that CUDA_VISIBLE_DEVICES has for so many GPUs; the user may have chosen some of the machine's."""
    if wanted and (there := gpus()) < wanted:
        raise BadInput(f"--resources GPU={wanted}: this machine has {there} CUDA devices")
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = [name.strip() for name in chosen.split(",")] if chosen else [str(i) for i in range(wanted)]
    return names[:wanted]


class LocalRun(Run):
    """until: when to stop, by the monotonic clock. ended: is told the name of each stage that has ended well."""

    def __init__(
        self,
        root: Path,
        workers: int,
        environment: dict[str, str],
        resources: Amounts | None = None,
        *,
        until: float = math.inf,
        ended: Callable[[str], object] = lambda name: None,
    ) -> None:
        super().__init__(root)
        self.until, self.tell = until, ended
        self.noting = Pace(KEPT)
        self.environment = environment  # variables that every stage is given
        self.offered: Amounts = {"CORES": float(workers), "MEMORY": memory()} | (resources or {})
        self.gpus = _gpus(int(self.offered.get("GPU", 0)))  # those that no stage has
        self.free = dict(self.offered)
        self.turn = threading.Lock()  # whoever holds it is inside DVC
        self.running: dict[str, Amounts] = {}
        self.commands: dict[str, subprocess.Popen | Forked] = {}
        self.preloaded: Preloaded | None = None
        self.seconds: dict[str, float] = {}  # of the commands; a stage from the cache has none
        self.unchanged: set[str] = set()  # stages that turned out to be up to date
        self.differing: set[str] = set()  # stages that have made something else than the lock files said
        self.ended: queue.SimpleQueue[tuple[str, str]] = queue.SimpleQueue()  # names, and logs of those that failed
        self.stopping = False

    def go(self, targets: Sequence[str], in_order: bool = False) -> int:
        """Run the stages; return 0 if everything is up to date in the end, 1 if a stage failed.

        in_order: what the first target needs comes first, and so on; else what the longest chain waits for.
        """
        self.plan(self.pipeline.out_of_date(targets), int(self.offered["CORES"] // self._cores()))
        if not self.nodes:
            print("Data and pipelines are up to date.")
            return 0
        self.needs = {name: self._needed(node) for name, node in self.nodes.items()}
        self.first = self._with_upstream(FIGURES)
        self.rank: dict[str, int] = {}
        for place, target in enumerate(targets if in_order else ()):
            for name in self._with_upstream([target]):
                self.rank.setdefault(name, place)
        self.before = set(self.pipeline.locked)
        if not self.gpus:  # a process that forks must not have touched one
            self.preloaded = preloaded(self.workspace.root)
        with interruptible(self.display.close), self.pipeline.repo.scm_context(), self._commands_outside_dvc():
            try:
                self._watch()
            except KeyboardInterrupt:
                under_way = self._seconds()
                self._stop()
                self.times.keep(under_way)
                raise Stopped(
                    f"stopped: {len(self.done)} of {len(self.nodes)} stages are done; "
                    "run the same command again to resume"
                ) from None
            finally:
                if self.preloaded:
                    self.preloaded.close()
                self._in_order()
        return self.report(len(self.done))

    def _needed(self, node: Node) -> Amounts:
        """What a stage needs: not more cores than there are, and no GPU where there is none."""
        needed = {"CORES": self._cores()} | node.resources
        needed["CORES"] = min(needed["CORES"], self.offered["CORES"])
        if "GPU" not in self.offered:
            needed.pop("GPU", None)
        for name, amount in needed.items():
            if amount > self.offered.get(name, 0):
                offers = f"{self.offered.get(name, 0):.3g}"
                raise BadInput(f"dvc.yaml: stage {node.name} needs {name} {amount:.3g}; this machine offers {offers}")
        return needed

    def _cores(self) -> float:
        """What a stage takes: one for each of its threads, if there are so many."""
        return min(float(self.environment.get("BRITTLE_THREADS", 1)), self.offered["CORES"])

    # --- While it runs

    def _watch(self) -> None:
        while True:
            self._start()
            if not self.running:
                return
            self.display.update(self.left())
            if self.noting.due():
                self.times.keep(self._seconds())
            if time.monotonic() > self.until:
                raise KeyboardInterrupt
            with suppress(queue.Empty):
                name, log = self.ended.get(timeout=POLL)
                for what, amount in self.running.pop(name).items():
                    self.free[what] += amount
                if log:
                    self.fail(name, log)
                else:
                    if name in self.differing:
                        self.display.differs(name)
                    self.finish(
                        name, self.seconds.get(name), "up to date" if name in self.unchanged else "from the cache"
                    )
                    self.tell(name)

    def _seconds(self) -> dict[str, float]:
        """How long the stages under way have been running."""
        return {name: time.monotonic() - since for name, since in self.display.running.items()}

    def _start(self) -> None:
        """Start what is ready: first what the first figures need, then what has the longest chain behind it."""
        longest = tails({name: node.upstream for name, node in self.nodes.items()}, self.display.expected())
        ready = [name for name in self.nodes if name not in self.running and self.waits(name) and self._fed(name)]
        last = len(self.rank)
        for name in sorted(ready, key=lambda name: (name not in self.first, self.rank.get(name, last), -longest[name])):
            needed = self.needs[name]
            if all(self.free[what] >= amount for what, amount in needed.items()):
                for what, amount in needed.items():
                    self.free[what] -= amount
                self.running[name] = needed
                self.display.started(name)
                threading.Thread(target=self._reproduce, args=(name,), daemon=True).start()

    def _with_upstream(self, names: Iterable[str]) -> set[str]:
        found = set(names) & self.nodes.keys()
        return found.union(*(self._with_upstream(self.nodes[name].upstream) for name in found))

    def _fed(self, name: str) -> bool:
        return self.done.issuperset(self.nodes[name].upstream)

    def _reproduce(self, name: str) -> None:
        """Let DVC reproduce a stage, as `dvc repro --single-item` does."""
        stage, log = self.nodes[name].stage, ""
        try:
            with self.turn, self.pipeline.repo.lock:
                before = [out.hash_info for out in stage.outs]
                if stage.reproduce():
                    stage.dump(update_pipeline=False)
                    if before != [out.hash_info for out in stage.outs]:
                        self.differing.add(name)
                else:
                    self.unchanged.add(name)
        except StageCmdFailedError as error:
            log = f"{self.workspace.log(name).read_text(encoding='utf-8', errors='replace')}{error}\n"
        except Exception as error:  # whatever keeps DVC from it
            log = f"{error}{f': {error.__cause__}' if error.__cause__ else ''}\n"
        self.ended.put((name, log))

    @contextmanager
    def _commands_outside_dvc(self) -> Iterator[None]:
        """Let others have their turn inside DVC while DVC waits for the command of a stage."""
        before: Callable = dvc.stage.run.cmd_run
        dvc.stage.run.cmd_run = self._command
        try:
            yield
        finally:
            dvc.stage.run.cmd_run = before

    def _command(self, stage: PipelineStage, dry: bool = False, run_env: dict[str, str] | None = None) -> None:
        """What DVC calls to run the command of a stage, in a process group that ends with this process."""
        own = dvc.stage.run.prepare_kwargs(stage)
        environment = own["env"] | self.environment
        gpu = self.gpus.pop() if "GPU" in self.needs[stage.name] else None
        if gpu:
            environment |= {"CUDA_VISIBLE_DEVICES": gpu}
        self.turn.release()
        try:
            begun = time.monotonic()
            code = self._waited(stage.name, stage.cmd, Path(own["cwd"]), environment)
            self.seconds[stage.name] = time.monotonic() - begun
        finally:
            self.turn.acquire()
            if gpu:
                self.gpus.append(gpu)
        if code:
            raise StageCmdFailedError(stage.cmd, code)

    def _waited(self, name: str, command: str, folder: Path, environment: dict[str, str]) -> int:
        """Run a command to its end, with all that it prints in the stage's log; its exit code."""
        with self.workspace.log(name).open("wb") as log:
            process = self.preloaded and self.preloaded.start(command, folder, environment, log.fileno())
            process = process or guarded(["sh", "-c", command], folder, environment, stdout=log)
            self.commands[name] = process
            try:
                if self.stopping:
                    self._signal(signal.SIGTERM)
                return process.wait()
            finally:
                self.commands.pop(name, None)
                process.stdin.close()

    def _stop(self) -> None:
        """End the commands and wait until DVC has written what it was writing."""
        self.stopping = True
        for sent in (signal.SIGTERM, signal.SIGKILL):
            self._signal(sent)
            end = time.monotonic() + PATIENCE
            while self.running and time.monotonic() < end:
                with suppress(queue.Empty):
                    self.running.pop(self.ended.get(timeout=POLL)[0])

    def _in_order(self) -> None:
        """Put entries that are new in lock files into the order in which `dvc repro` would have written them."""
        new = [node.stage for node in self.nodes.values() if node.name in self.done and node.name not in self.before]
        for path in dict.fromkeys(stage.dvcfile._lockfile.path for stage in new):
            with modify_yaml(path) as content:
                for stage in (stage for stage in new if stage.dvcfile._lockfile.path == path):
                    content["stages"].move_to_end(stage.name)

    def _signal(self, sent: signal.Signals) -> None:
        for process in list(self.commands.values()):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, sent)
