"""A run from first to last: stages of DVC's graph become tasks of Dask, whose results come home to the workspace."""

from __future__ import annotations

import hashlib
import secrets
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from distributed import Client, Future, KilledWorker
from tqdm import tqdm

from brittle import store
from brittle.params.base import BadInput
from brittle.scale import room
from brittle.scale.estimate import expected, makespan, tails
from brittle.scale.graph import Node, Pipeline
from brittle.scale.workers import Wanted, connected
from brittle.scale.workspace import Command, Workspace
from brittle.stages.progress import Bar, bar

TOGETHER = 20  # stages that come home in one command; Ctrl-C waits for its end
GUESS = 10.0  # seconds of a stage that was never timed, until others have been
SHOWN = 30  # last lines of a log


class Stopped(Exception):
    """By Ctrl-C or SIGTERM, in good order."""


class Run:
    def __init__(self, root: Path, wanted: Wanted) -> None:
        self.wanted, self.workspace = wanted, Workspace(root)
        self.token = secrets.token_hex(8)
        self.begun = time.monotonic()
        self.nodes: dict[str, Node] = {}  # out of date, in DVC's order
        self.demands: dict[str, dict[str, float]] = {}  # of those that workers run: what each asks of its worker
        self.futures: dict[str, Future] = {}  # those that workers run now
        self.outcomes: dict[str, room.Outcome] = {}  # those that they have run
        self.done: set[str] = set()  # by a worker or here
        self.home: set[str] = set()  # and in the workspace
        self.failed: dict[str, str] = {}  # with what they said
        self.coming: tuple[list[str], Command] | None = None  # home, just now
        self.apart = False  # do workers share the remote alone?

    def go(self, targets: Sequence[str]) -> int:
        """0 if everything is up to date in the end, 1 if a stage failed."""
        self._plan(targets)
        if not self.nodes:
            print("Data and pipelines are up to date.")
            return 0
        with connected(self.wanted) as client, self._interruptible():
            try:
                self._welcome(client)
                self._watch(client)
                client.unregister_worker_plugin(f"brittle-{self.token}")
            except KeyboardInterrupt:
                self._stop(client)
                raise Stopped(
                    f"stopped: {len(self.home)} of {len(self.nodes)} stages are in the workspace, "
                    f"{len(self.done - self.home)} more in the run cache; run the same command again to go on"
                ) from None
            finally:
                if self.coming:  # after an error: DVC writes to its end
                    self.coming[1].wait()
        return self._report()

    # --- Before

    def _plan(self, targets: Sequence[str]) -> None:
        """Run what must run here and comes first; then see what is out of date."""
        self.pipeline = Pipeline(self.workspace.root)
        nodes = self.pipeline.out_of_date(targets)
        if first := [node.name for node in nodes if node.first]:
            for name in first:
                print(f"{name}, here", flush=True)
                code, log = self.workspace.dvc("repro", "--single-item", name).wait()
                if code:
                    self.failed[name] = log
            self.pipeline = Pipeline(self.workspace.root)
            nodes = self.pipeline.out_of_date(targets)
        self.nodes = {node.name: node for node in nodes}

    def _welcome(self, client: Client) -> None:
        """Workers learn where the workspace is, whenever they join; and whether they can do what stages ask for."""
        store.save_bytes(self.workspace.token, self.token.encode())
        remotes, root = self.pipeline.remotes(), self.workspace.root
        self.host = room.Host(root, self.pipeline.cache, self.token, remotes, self.wanted.environment)
        try:
            client.register_plugin(self.host)
        except Exception as error:  # whatever keeps a worker from loading it
            raise BadInput(f"a worker cannot work for this pipeline: {error}") from None
        if not client.scheduler_info()["workers"]:
            print("waiting for a first worker", file=sys.stderr)
        client.wait_for_workers(1)
        self.apart = not all(client.run(sees, self.host.name).values())
        if self.apart:
            self._share()
        offered = list(offers(client).values())
        self.demands = {name: demanded(node, offered) for name, node in self.nodes.items() if node.task is not None}

    def _share(self) -> None:
        """Workers that do not see the workspace find in the remote what is up to date here."""
        if not self.pipeline.remotes()["default"]:
            raise BadInput(
                "these workers do not see the workspace, and there is no DVC remote to share: "
                "dvc remote add --default NAME URL (docs/sharing.md)"
            )
        if kept := self.pipeline.kept_for(self.nodes.values()):
            code, log = self.workspace.dvc("push", "--quiet", *kept).wait()
            if code:
                raise BadInput(f"dvc push: {log.strip().splitlines()[-1]}")

    # --- While it runs

    def _watch(self, client: Client) -> None:
        times = self.workspace.times()
        upstream = {name: node.upstream for name, node in self.nodes.items()}
        urgent = tails(upstream, expected(list(self.nodes), times, GUESS))
        with bar(1.0, "") as shown:
            while any(name not in self.home and not self._over(name) for name in self.nodes):
                for name in [name for name, future in self.futures.items() if future.done()]:
                    self._ended(name, self.futures.pop(name), times)
                working = assigned(client)
                idle = [worker for worker, tasks in working.items() if not tasks]
                self._give(client, idle, urgent)
                self._bring(idle=len(self.futures) < max(1, len(working)))
                if not shown.disable:
                    self._show(shown, len(working), times)
                time.sleep(0.2)
        self.workspace.keep_times(times)

    def _give(self, client: Client, idle: list[str], urgent: dict[str, float]) -> None:
        """Each worker that has nothing to do gets the most urgent stage that is ready and that it can run.

        Dask would choose a worker for every ready stage at once, without a notion of how long stages take, and then
        leave one idle beside another's queue.
        """
        ready = [name for name in self.demands if self._ready(name)]
        if not (ready and idle):
            return
        free = [amounts for worker, amounts in offers(client).items() if worker in idle]
        for name in placed(sorted(ready, key=urgent.__getitem__, reverse=True), self.demands, free):
            node = self.nodes[name]
            self.futures[name] = client.submit(
                room.run,
                node.task,
                self.host.name,
                self.apart,
                *(self.outcomes[before] for before in node.upstream),
                key=f"{name}-{self.token}",
                resources={"STAGE": 1} | self.demands[name],
                priority=urgent[name],
                pure=False,
            )

    def _ready(self, name: str) -> bool:
        begun = name in self.done or name in self.futures or self._over(name)
        return not begun and self.outcomes.keys() >= set(self.nodes[name].upstream)

    def _ended(self, name: str, future: Future, times: dict[str, float]) -> None:
        if future.status == "finished":
            outcome = self.outcomes[name] = future.result()
            self.done.add(name)
            tqdm.write(f"{outcome.seconds:8.1f} s  {name}{'' if outcome.ran else '  (from the run cache)'}")
            if outcome.ran:
                times[name] = outcome.seconds
            if self.apart:
                self._receive(outcome)
            return
        error = future.exception() if future.status == "error" else "the cluster gave it up"
        if isinstance(error, room.StageFailed):
            self._fail(name, error.log)
        elif isinstance(error, KilledWorker):
            self._fail(name, f"its worker died {error.allowed_failures + 1} times in a row (out of memory?)\n")
        else:
            self._fail(name, f"{error}\n")

    def _fail(self, name: str, log: str) -> None:
        if name not in self.failed:
            self.failed[name] = log
            tqdm.write(f"    failed  {name}")

    def _receive(self, outcome: room.Outcome) -> None:
        """Metrics and tables into the cache, from which DVC will restore them: `dvc push` leaves those to Git."""
        for content in room.unpack(outcome.packed).values():
            md5 = hashlib.md5(content, usedforsecurity=False).hexdigest()
            store.save_bytes(Path(self.pipeline.cache) / "files/md5" / md5[:2] / md5[2:], content)

    def _bring(self, idle: bool) -> None:
        """The next stages in DVC's order into the workspace, by DVC: from the cache, or by running them here."""
        if self.coming:
            if not self.coming[1].ended:
                return
            self._came()
        batch: list[str] = []
        for name, node in self.nodes.items():
            if name in self.home or self._over(name):
                continue
            if node.task is None and not batch and self.home.issuperset(node.upstream):
                self.coming = [name], self.workspace.dvc("repro", "--single-item", name)
                return
            if name not in self.done or len(batch) == TOGETHER:
                break
            batch.append(name)
        # The command takes seconds, and a core: not for a stage or two, while every worker has something to do.
        if len(batch) == TOGETHER or (batch and idle):
            entries = {name: self.outcomes[name].entry for name in batch}
            self.coming = batch, self.workspace.bring(entries, pull=self.apart)

    def _came(self) -> None:
        names, command = self.coming
        self.coming = None
        code, log = command.wait()
        if not code:
            self.home.update(names)
            self.done.update(names)
        elif self.nodes[names[0]].task is None:
            self._fail(names[0], log)
        else:
            raise BadInput(f"{', '.join(names)}: cannot be brought into the workspace: {log.strip().splitlines()[-1]}")
        for name in names:
            if self.nodes[name].task and f"Running stage '{name}'" in log:
                tqdm.write(f"            {name} ran again here: its result was not in the cache")

    def _show(self, shown: Bar, workers: int, times: dict[str, float]) -> None:
        """A bar for the whole graph. The time left is that of a schedule of what is left."""
        elapsed = time.monotonic() - self.begun
        left = {name: node.upstream for name, node in self.nodes.items() if not (name in self.done or self._over(name))}
        here = self.coming[0] if self.coming else []
        running = [name for name in left if name in here or name in self.futures]
        seconds = expected(list(self.nodes), times, GUESS)
        half = {name: seconds[name] / 2 for name in running}  # of those that run, so much on average
        shown.total = elapsed + makespan(left, seconds, workers, half) + 1e-9
        shown.set_description_str(f"{len(self.done)} of {len(self.nodes)} stages: {', '.join(running)[:60]}", False)
        shown.reach(elapsed)

    def _stop(self, client: Client) -> None:
        """Stages end by SIGTERM, with their checkpoints; what DVC writes in the workspace is written to its end."""
        client.cancel(list(self.futures.values()), force=True)
        for blow in (signal.SIGTERM, signal.SIGKILL):
            with suppress(OSError, TimeoutError):
                client.run(strike, blow, f"brittle-{self.token}", on_error="ignore")
        if self.coming:
            self._came()

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Ctrl-C and SIGTERM, with which batch systems end a job, are the same."""
        blows = (signal.SIGINT, signal.SIGTERM)
        before = [signal.signal(blow, signal.default_int_handler) for blow in blows]
        try:
            yield
        finally:
            for blow, handler in zip(blows, before, strict=True):
                signal.signal(blow, handler)
            self.workspace.token.unlink(missing_ok=True)

    # --- Afterwards

    def _report(self) -> int:
        for name, log in self.failed.items():
            file = self.workspace.keep_log(name, log)
            print(f"\nstage {name} failed (all it said: {file}):", file=sys.stderr)
            print("\n".join(f"    {line}" for line in log.strip().splitlines()[-SHOWN:]), file=sys.stderr)
        if stopped := [name for name in self.nodes if name not in self.failed and self._over(name)]:
            print(f"\nnot run, because they need what failed: {', '.join(stopped)}", file=sys.stderr)
        print(f"{len(self.home)} of {len(self.nodes)} stages in {time.monotonic() - self.begun:.0f} s")
        return 1 if self.failed else 0

    def _over(self, name: str) -> bool:
        """It has failed, or one that it waits for, directly or not."""
        return name in self.failed or (bool(self.failed) and any(map(self._over, self.nodes[name].upstream)))


def demanded(node: Node, offered: Sequence[dict[str, float]]) -> dict[str, float]:
    """What the stage asks of its worker. A GPU is a wish: without one it runs on the CPU."""
    wanted = dict(node.resources)
    if not any(worker.get("GPU") for worker in offered):
        wanted.pop("GPU", None)
    if not any(suffices(worker, wanted) for worker in offered):
        needs = ", ".join(f"{name} {amount:.3g}" for name, amount in wanted.items())
        raise BadInput(f"dvc.yaml: stage {node.name} needs {needs}; no worker offers that")
    return wanted


def placed(
    ready: Iterable[str], demands: Mapping[str, dict[str, float]], free: Sequence[dict[str, float]]
) -> list[str]:
    """The first of these stages for which there is a worker, each with one to itself: which one, Dask will find."""
    free, found = list(free), []
    for name in ready:
        able = [offered for offered in free if suffices(offered, demands[name])]
        if able:
            free.remove(min(able, key=len))  # the one that offers least: others may need more
            found.append(name)
    return found


def suffices(offered: dict[str, float], wanted: dict[str, float]) -> bool:
    return all(offered.get(name, 0) >= amount for name, amount in wanted.items())


def offers(client: Client) -> dict[str, dict[str, float]]:
    """The resources of each worker, by its address."""
    return {worker: known["resources"] for worker, known in client.scheduler_info(n_workers=-1)["workers"].items()}


def assigned(client: Client) -> dict[str, Sequence[str]]:
    """The tasks that each worker has."""
    try:
        return client.processing()
    except (OSError, TimeoutError):
        raise BadInput("Dask's scheduler is gone; start it and run the same command again to go on") from None


def sees(name: str, dask_worker: object) -> bool:
    """Does this worker see the workspace?"""
    return dask_worker.plugins[name].shares


def strike(blow: signal.Signals, name: str, dask_worker: object) -> None:
    """End the stages of this worker, and wait until they have ended."""
    host = dask_worker.plugins[name]
    host.signal(blow)
    deadline = time.monotonic() + 5
    while host.running and time.monotonic() < deadline:
        time.sleep(0.05)
