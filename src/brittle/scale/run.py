"""A run from first to last: DVC's graph becomes a Dask graph, whose results come home to the workspace."""

from __future__ import annotations

import hashlib
import json
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from distributed import Client, Future, KilledWorker
from tqdm import tqdm

from brittle import store
from brittle.params.base import BadInput
from brittle.scale import room
from brittle.scale.estimate import makespan
from brittle.scale.graph import Node, Pipeline
from brittle.scale.workers import Wanted, connected
from brittle.stages.progress import Bar, bar

TOGETHER = 5  # stages that come home in one command of DVC; Ctrl-C waits for its end
GUESS = 10.0  # seconds of a stage that was never timed, until others have been
SHOWN = 30  # last lines of a log


class Stopped(Exception):
    """By Ctrl-C or SIGTERM, in good order."""


class Run:
    def __init__(self, root: Path, wanted: Wanted) -> None:
        self.root, self.wanted = root, wanted
        self.folder = root / ".dvc/tmp/scale"
        self.token = secrets.token_hex(8)
        self.begun = time.monotonic()
        self.nodes: dict[str, Node] = {}  # out of date, in DVC's order
        self.futures: dict[str, Future] = {}
        self.done: set[str] = set()  # by a worker, or at home
        self.home: set[str] = set()  # in the workspace
        self.failed: dict[str, str] = {}  # with their logs
        self.coming: tuple[list[str], subprocess.Popen[str]] | None = None
        self.apart = False

    def go(self, targets: Sequence[str]) -> int:
        """0 if everything is up to date in the end, 1 if a stage failed."""
        if not self._plan(targets):
            print("Data and pipelines are up to date.")
            return 0
        with connected(self.wanted) as client, self._interruptible():
            self._submit(client)
            try:
                self._watch(client)
            except KeyboardInterrupt:
                self._stop(client)
                raise Stopped(
                    f"stopped: {len(self.home)} of {len(self.nodes)} stages are in the workspace, "
                    f"{len(self.done - self.home)} more in the run cache; run the same command again to go on"
                ) from None
        return self._report()

    def _plan(self, targets: Sequence[str]) -> bool:
        """Run what must run here and comes first; then see what is out of date."""
        pipeline = Pipeline(self.root)
        nodes = pipeline.out_of_date(targets)
        first = [node.name for node in nodes if node.first]
        for name in first:
            print(f"{name}, here", flush=True)
            done = self._dvc("repro", "--single-item", name)
            log, _ = done.communicate()
            if done.returncode:
                self.failed[name] = log
        if first:
            pipeline = Pipeline(self.root)
            nodes = pipeline.out_of_date(targets)
        self.pipeline = pipeline
        self.nodes = {node.name: node for node in nodes}
        return bool(self.nodes)

    def _submit(self, client: Client) -> None:
        """The Dask graph is DVC's graph; small results travel along its edges, the artefacts through DVC's cache."""
        store.save_bytes(self.folder / "token", self.token.encode())
        host = room.Host(self.root, self.pipeline.cache, self.token, self.pipeline.remotes(), self.wanted.environment)
        try:
            client.register_plugin(host)
        except Exception as error:  # whatever keeps a worker from loading it
            raise BadInput(f"a worker cannot work for this pipeline: {error}") from None
        if not client.scheduler_info()["workers"]:
            print("waiting for a first worker", file=sys.stderr)
        client.wait_for_workers(1)
        self.apart = not all(client.run(lambda dask_worker: dask_worker.plugins["brittle"].shares).values())
        if self.apart:
            self._share()
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
        offered = [worker["resources"] for worker in workers]
        for node in self.nodes.values():
            if node.task is None or self._over(node.name):
                continue
            self.futures[node.name] = client.submit(
                room.run,
                node.task,
                self.apart,
                *(self.futures[name] for name in node.upstream),
                key=f"{node.name}-{self.token}",
                resources={"STAGE": 1} | _demanded(node, offered),
                pure=False,
            )

    def _share(self) -> None:
        """Workers that do not see the workspace find in the remote what is up to date here."""
        if not self.pipeline.remotes()["default"]:
            raise BadInput(
                "these workers do not see the workspace, and there is no DVC remote to share: "
                "dvc remote add --default NAME URL (docs/sharing.md)"
            )
        kept = self.pipeline.kept_for(self.nodes.values())
        pushing = self._dvc("push", "--quiet", *kept) if kept else None
        if pushing and (log := pushing.communicate()[0]) and pushing.returncode:
            raise BadInput(f"dvc push: {log.strip().splitlines()[-1]}")

    def _watch(self, client: Client) -> None:
        times = self._times()
        with bar(1.0, "") as shown:
            while any(name not in self.home and not self._over(name) for name in self.nodes):
                for name, future in self.futures.items():
                    if name not in self.done and name not in self.failed and future.done():
                        self._ended(name, future, times)
                self._bring()
                self._show(shown, client, times)
                time.sleep(0.2)
        store.save_metrics(self.folder / "times.json", times)

    def _ended(self, name: str, future: Future, times: dict[str, float]) -> None:
        if future.status == "finished":
            outcome = future.result()
            self.done.add(name)
            tqdm.write(f"{outcome.seconds:8.1f} s  {name}{'' if outcome.ran else '  (from the run cache)'}")
            if outcome.ran:
                times[name] = outcome.seconds
            if self.apart:
                self._receive(outcome)
            return
        error = future.exception() if future.status == "error" else "the cluster gave it up"
        if isinstance(error, room.StageFailed):
            if error.stage == name:
                self.failed[name] = error.log
        elif isinstance(error, KilledWorker):
            if error.task.startswith(f"{name}-{self.token}"):
                self.failed[name] = f"its worker died, {error.allowed_failures + 1} times in a row (out of memory?)\n"
        elif not any(other in self.failed for other in self._before(name)):
            self.failed[name] = f"{error}\n"
        if name in self.failed:
            tqdm.write(f"  failed    {name}")

    def _receive(self, outcome: room.Outcome) -> None:
        """Metrics and tables into the cache, from which DVC will restore them: `dvc push` leaves those to Git."""
        for content in room.unpack(outcome.packed).values():
            md5 = hashlib.md5(content, usedforsecurity=False).hexdigest()
            store.save_bytes(Path(self.pipeline.cache) / "files/md5" / md5[:2] / md5[2:], content)

    def _bring(self) -> None:
        """The next stages in DVC's order into the workspace, by DVC: from the run cache, or by running them here."""
        if self.coming:
            names, process = self.coming
            if process.poll() is None:
                return
            log = process.stdout.read()
            self.coming = None
            if process.returncode and self.nodes[names[0]].task is None:
                self.failed[names[0]] = log
                tqdm.write(f"  failed    {names[0]}")
            elif process.returncode:
                raise BadInput(f"dvc repro {' '.join(names)}: {log.strip().splitlines()[-1]}")
            else:
                self.home.update(names)
                self.done.update(names)
            for name in names:
                if self.nodes[name].task and f"Running stage '{name}'" in log:
                    tqdm.write(f"            {name}: ran again here, its result was not in the run cache")
        batch: list[str] = []
        for name, node in self.nodes.items():
            if name in self.home or self._over(name):
                continue
            if node.task is None and not batch and all(other in self.home for other in node.upstream):
                batch = [name]
            if name not in self.done or len(batch) == TOGETHER:
                break
            batch.append(name)
        # Each command of DVC takes a second to start: not for one stage, while workers have more to do.
        busy = any(name not in self.done and not self._over(name) for name in self.futures)
        if len(batch) == TOGETHER or (batch and not busy) or (batch and self.nodes[batch[0]].task is None):
            pull = ["--pull"] if self.apart else []
            self.coming = batch, self._dvc("repro", "--single-item", *pull, *batch)

    def _show(self, shown: Bar, client: Client, times: dict[str, float]) -> None:
        if shown.disable:
            return
        elapsed = time.monotonic() - self.begun
        keys = {key for keys in client.processing().values() for key in keys}
        running = [name for name, future in self.futures.items() if future.key in keys and name not in self.done]
        running += [name for name in self.coming[0] if self.nodes[name].task is None] if self.coming else []
        gone = self.done.union(self.failed, self._stopped())
        left = {name: node.upstream for name, node in self.nodes.items() if name not in gone}
        known = [times[name] for name in self.nodes if name in times]
        typical = sum(known) / len(known) if known else GUESS
        seconds = {name: times.get(name, typical) for name in left}
        under_way = {name: seconds[name] / 2 for name in running if name in left}
        remaining = makespan(left, seconds, len(client.nthreads()), under_way)
        shown.total = max(elapsed + remaining, 1e-9)
        shown.set_description_str(f"{len(self.done)} of {len(self.nodes)} stages: {', '.join(running)[:60]}", False)
        shown.reach(elapsed)

    def _stop(self, client: Client) -> None:
        """Stages end by SIGTERM, with their checkpoints; what DVC writes in the workspace is written to its end."""
        client.cancel(list(self.futures.values()), force=True)
        for blow in (signal.SIGTERM, signal.SIGKILL):
            with suppress(OSError, TimeoutError):
                client.run(_strike, blow, on_error="ignore")
        if self.coming:
            self.coming[1].wait()
            self._bring_nothing_more()

    def _bring_nothing_more(self) -> None:
        names, process = self.coming
        if not process.returncode:
            self.home.update(names)
        self.coming = None

    def _report(self) -> int:
        for name, log in self.failed.items():
            file = self.folder / f"{name}.log"
            store.save_bytes(file, log.encode())
            lines = log.strip().splitlines()
            print(f"\nstage {name} failed (all it said: {file.relative_to(self.root)}):", file=sys.stderr)
            print("\n".join(f"    {line}" for line in lines[-SHOWN:]), file=sys.stderr)
        if stopped := self._stopped():
            print(f"\nnot run, because they need what failed: {', '.join(stopped)}", file=sys.stderr)
        elapsed = time.monotonic() - self.begun
        print(f"{len(self.home)} of {len(self.nodes)} stages in {elapsed:.0f} s")
        return 1 if self.failed else 0

    def _before(self, name: str) -> set[str]:
        """All that a stage waits for, directly or not."""
        found: set[str] = set()
        todo = list(self.nodes[name].upstream)
        while todo:
            if (other := todo.pop()) not in found:
                found.add(other)
                todo += self.nodes[other].upstream
        return found

    def _over(self, name: str) -> bool:
        """It has failed, or something before it has."""
        return bool(self.failed) and (name in self.failed or not self._before(name).isdisjoint(self.failed))

    def _stopped(self) -> list[str]:
        return [name for name in self.nodes if name not in self.failed and self._over(name)]

    def _times(self) -> dict[str, float]:
        """How long each stage took when it last ran on a cluster."""
        with suppress(OSError, ValueError):
            return json.loads((self.folder / "times.json").read_text(encoding="utf-8"))
        return {}

    def _dvc(self, *command: str) -> subprocess.Popen[str]:
        """In the workspace, out of reach of Ctrl-C: DVC does not write dvc.lock in one piece."""
        return subprocess.Popen(
            ["dvc", *command],
            cwd=self.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )

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
            (self.folder / "token").unlink(missing_ok=True)


def _demanded(node: Node, offered: Sequence[dict[str, float]]) -> dict[str, float]:
    """What the stage asks of its worker. A GPU is a wish: without one it runs on the CPU."""
    wanted = dict(node.resources)
    if not any(worker.get("GPU") for worker in offered):
        wanted.pop("GPU", None)
    if not any(all(worker.get(name, 0) >= amount for name, amount in wanted.items()) for worker in offered):
        needs = ", ".join(f"{name} {amount:.3g}" for name, amount in wanted.items())
        raise BadInput(f"dvc.yaml: stage {node.name} needs {needs}; no worker offers that")
    return wanted


def _strike(blow: signal.Signals, dask_worker: object) -> None:
    host = dask_worker.plugins["brittle"]
    host.signal(blow)
    deadline = time.monotonic() + 5
    while host.running and time.monotonic() < deadline:
        time.sleep(0.05)
