"""A run on a cluster: stages of DVC's graph become tasks of Dask, and their results are restored in the workspace."""

from __future__ import annotations

import hashlib
import secrets
import signal
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from distributed import Client, Future, KilledWorker

from brittle.core import store
from brittle.core.errors import BadInput
from brittle.scale import sandbox
from brittle.scale.estimate import tails
from brittle.scale.graph import Node, Pipeline
from brittle.scale.options import Options
from brittle.scale.run import Run, Stopped, interruptible
from brittle.scale.task import Task, unpack
from brittle.scale.workers import connected
from brittle.scale.workspace import Command

TOGETHER = 20  # at most this many stages are restored in one command, for whose end Ctrl-C has to wait


class ClusterRun(Run):
    def __init__(self, root: Path, options: Options) -> None:
        super().__init__(root)
        self.options = options
        self.token = secrets.token_hex(8)
        self.tasks: dict[str, Task] = {}  # of the stages for workers
        self.demands: dict[str, dict[str, float]] = {}  # what each of them asks of its worker
        self.futures: dict[str, Future] = {}  # stages that workers run now
        self.outcomes: dict[str, sandbox.Outcome] = {}  # stages that workers have run; `done`: on a worker or here
        self.restored: set[str] = set()  # stages whose results are in the workspace
        self.restoring: tuple[list[str], Command] | None = None  # in progress
        self.apart = False  # whether workers share only the remote, not the workspace

    def go(self, targets: Sequence[str]) -> int:
        """Run the stages; return 0 if everything is up to date in the end, 1 if a stage failed."""
        self._plan(targets)
        if not self.nodes:
            print("Data and pipelines are up to date.")
            return 0
        with connected(self.options) as client, interruptible(self._close):
            try:
                self._welcome(client)
                self._watch(client)
                client.unregister_worker_plugin(f"brittle-{self.token}")
            except KeyboardInterrupt:
                self._stop(client)
                self.times.keep()
                raise Stopped(
                    f"stopped: {len(self.restored)} of {len(self.nodes)} stages are in the workspace, "
                    f"{len(self.done - self.restored)} more in the run cache; run the same command again to resume"
                ) from None
            finally:
                if self.restoring:  # after an error: let DVC finish writing
                    self.restoring[1].wait()
        return self.report(len(self.restored))

    def _close(self) -> None:
        self.display.close()
        self.workspace.token.unlink(missing_ok=True)

    # --- Before

    def _plan(self, targets: Sequence[str]) -> None:
        """Run the stages that must run here first; then find out what is out of date."""
        nodes = self.pipeline.out_of_date(targets)
        if first := [node for node in nodes if node.first]:
            for node in first:
                print(f"{node.name}, here", flush=True)
                code, log = self.workspace.dvc("repro", "--single-item", node.address).wait()
                if code:
                    self.failed[node.name] = log
            self.pipeline = Pipeline(self.workspace.root)
            nodes = self.pipeline.out_of_date(targets)
        self.plan(nodes, 1)
        self.tasks = {node.name: self.pipeline.task(node) for node in nodes if not node.here}

    def _welcome(self, client: Client) -> None:
        """Tell workers, whenever they join, where the workspace is; check that they offer what stages ask for."""
        store.save_bytes(self.workspace.token, self.token.encode())
        remotes, root = self.pipeline.remotes(), self.workspace.root
        self.host = sandbox.Host(root, self.pipeline.cache, self.token, remotes, self.options.environment)
        try:
            client.register_plugin(self.host)
        except Exception as error:  # whatever keeps a worker from loading it
            raise BadInput(f"a worker cannot run this pipeline: {error}") from None
        if not client.scheduler_info()["workers"]:
            print("waiting for the first worker", file=sys.stderr)
        client.wait_for_workers(1)
        self.apart = not all(client.run(sees, self.host.name).values())
        if self.apart:
            self._share()
        offered = list(offers(client).values())
        self.demands = {name: demanded(self.nodes[name], offered) for name in self.tasks}

    def _share(self) -> None:
        """Push what is up to date here to the remote, for workers that do not see the workspace."""
        if not self.pipeline.remotes()["default"]:
            raise BadInput(
                "these workers do not see the workspace, and there is no DVC remote to share: "
                "dvc remote add --default NAME URL (docs/sharing.md)"
            )
        if kept := self.pipeline.kept_for(self.nodes.values(), self.tasks.values()):
            code, log = self.workspace.dvc("push", "--quiet", *kept).wait()
            if code:
                raise BadInput(f"dvc push: {log.strip().splitlines()[-1]}")

    # --- While it runs

    def _watch(self, client: Client) -> None:
        upstream = {name: node.upstream for name, node in self.nodes.items()}
        urgent = tails(upstream, self.display.expected())
        while any(name not in self.restored and not self.over(name) for name in self.nodes):
            for name in [name for name, future in self.futures.items() if future.done()]:
                self._ended(name, self.futures.pop(name))
            working = assigned(client)
            idle = [worker for worker, tasks in working.items() if not tasks]
            self.display.places = max(1, len(working))
            self._give(client, idle, urgent)
            self._restore(idle=len(self.futures) < max(1, len(working)))
            self.display.update(self.left())
            time.sleep(0.2)

    def _give(self, client: Client, idle: list[str], urgent: dict[str, float]) -> None:
        """Give each idle worker the most urgent stage that is ready and that it can run.

        Dask would assign every ready stage to a worker at once, without knowing how long stages take, so that some
        workers would be idle while others have a queue.
        """
        ready = [name for name in self.demands if self._ready(name)]
        if not (ready and idle):
            return
        free = [amounts for worker, amounts in offers(client).items() if worker in idle]
        for name in placed(sorted(ready, key=urgent.__getitem__, reverse=True), self.demands, free):
            self.display.started(name)
            self.futures[name] = client.submit(
                sandbox.run,
                self.tasks[name],
                self.host.name,
                self.apart,
                *(self.outcomes[before] for before in self.nodes[name].upstream),
                key=f"{name}-{self.token}",
                resources={"STAGE": 1} | self.demands[name],
                priority=urgent[name],
                pure=False,
            )

    def _ready(self, name: str) -> bool:
        begun = name in self.done or name in self.futures or self.over(name)
        return not begun and self.outcomes.keys() >= set(self.nodes[name].upstream)

    def _ended(self, name: str, future: Future) -> None:
        if future.status == "finished":
            outcome = self.outcomes[name] = future.result()
            self.finish(name, outcome.seconds if outcome.ran else None)
            if self.apart:
                self._receive(outcome)
            return
        error = future.exception() if future.status == "error" else "the cluster gave it up"
        if isinstance(error, sandbox.StageFailed):
            self.fail(name, error.log)
        elif isinstance(error, KilledWorker):
            self.fail(name, f"its worker died {error.allowed_failures + 1} times in a row (out of memory?)\n")
        else:
            self.fail(name, f"{error}\n")

    def _receive(self, outcome: sandbox.Outcome) -> None:
        """Put metrics and tables into the cache, from which DVC restores them: `dvc push` leaves those to Git."""
        for content in unpack(outcome.packed).values():
            md5 = hashlib.md5(content, usedforsecurity=False).hexdigest()
            store.save_bytes(Path(self.pipeline.cache) / "files/md5" / md5[:2] / md5[2:], content)

    def _restore(self, idle: bool) -> None:
        """Let DVC restore the next stages in the workspace, in its order: from the cache, or by running them here."""
        if self.restoring:
            if not self.restoring[1].ended:
                return
            self._restored()
        batch: list[str] = []
        for name, node in self.nodes.items():
            if name in self.restored or self.over(name):
                continue
            if node.here and not batch and self.restored.issuperset(node.upstream):
                self.display.started(name)
                self.restoring = [name], self.workspace.dvc("repro", "--single-item", node.address)
                self.since = time.monotonic()
                return
            if name not in self.done or len(batch) == TOGETHER:
                break
            batch.append(name)
        # The command takes seconds and a core: while all workers are busy, it is not worth it for a few stages.
        if len(batch) == TOGETHER or (batch and idle):
            entries = {name: self.outcomes[name].entry for name in batch}
            self.restoring = batch, self.workspace.restore(entries, pull=self.apart)

    def _restored(self) -> None:
        names, command = self.restoring
        self.restoring = None
        code, log = command.wait()
        if not code:
            self.restored.update(names)
            for name in names:
                if self.nodes[name].here:
                    self.finish(name, time.monotonic() - self.since)
        elif self.nodes[names[0]].here:
            self.fail(names[0], log)
        else:
            raise BadInput(f"{', '.join(names)}: cannot be restored into the workspace: {log.strip().splitlines()[-1]}")
        for name in names:
            if name in self.tasks and f"Running stage '{self.nodes[name].address}'" in log:
                self.display.say(f"{name} ran again here: its result was not in the cache")

    def _stop(self, client: Client) -> None:
        """End stages by SIGTERM, so that they keep their checkpoints; let DVC finish writing in the workspace."""
        client.cancel(list(self.futures.values()), force=True)
        for sent in (signal.SIGTERM, signal.SIGKILL):
            with suppress(OSError, TimeoutError):
                client.run(end_stages, sent, f"brittle-{self.token}", on_error="ignore")
        if self.restoring:
            self._restored()


def demanded(node: Node, offered: Sequence[dict[str, float]]) -> dict[str, float]:
    """What the stage asks of its worker. A GPU is optional: without one it runs on the CPU."""
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
    """The first of these stages for which there are free workers, one for each; Dask picks the actual worker."""
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
        raise BadInput("Dask's scheduler is gone; start it and run the same command again to resume") from None


def sees(name: str, dask_worker: object) -> bool:
    """Whether this worker sees the workspace."""
    return dask_worker.plugins[name].shares


def end_stages(sent: signal.Signals, name: str, dask_worker: object) -> None:
    """End the stages of this worker, and wait until they have ended."""
    host = dask_worker.plugins[name]
    host.signal(sent)
    deadline = time.monotonic() + 5
    while host.running and time.monotonic() < deadline:
        time.sleep(0.05)
