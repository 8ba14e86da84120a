"""The pipeline as DVC sees it: which stages are out of date, in DVC's order, and what each needs to run elsewhere."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dvc.dvcfile import PROJECT_FILE
from dvc.exceptions import DvcException
from dvc.repo import Repo
from dvc.repo.reproduce import get_active_graph, plan_repro
from dvc.stage import PipelineStage
from ruamel.yaml import YAML

from brittle.core.errors import BadInput
from brittle.scale.task import Task, pack


@dataclass(frozen=True)
class Node:
    """A stage that is out of date, or may be once the stages before it have run."""

    name: str  # unique over all files of the pipeline
    address: str  # as `dvc repro` takes it: pipelines/slabs/dvc.yaml:slabs_probe
    upstream: tuple[str, ...]  # the names of the out-of-date stages that it waits for
    runs: bool  # whether it will have to, even if those make again what the lock files say
    resources: dict[str, float]  # what it needs besides a core
    first: bool  # `meta: {local: true}` in dvc.yaml: on a cluster it runs in the workspace, before all others
    here: bool  # on a cluster it runs in the workspace, because DVC's run cache cannot carry its results
    stage: PipelineStage = field(repr=False, compare=False)


class Pipeline:
    """dvc.yaml and pipelines/*/dvc.yaml, their lock files, and the files in Git, read once."""

    def __init__(self, root: Path) -> None:
        for name in ("dvc", "dvc_data", "dvc_objects"):  # also their progress bars, which would spoil ours
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self.root = root
        try:
            self.repo = Repo(str(root))
            self.graph = get_active_graph(self.repo.index.graph)
            self.definitions, self.locked = self._read()
        except DvcException as error:
            raise BadInput(f"dvc.yaml: {error}") from None
        self.producer = {out.fs_path: (out, stage) for stage in self.graph for out in stage.outs}

    def _read(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The definitions of all stages and their entries in the lock files, as if they were in one file at the root.

        Paths are the same in both, because every stage of pipelines/*/dvc.yaml has the root as its working folder.
        """
        definitions: dict[str, Any] = {}
        locked: dict[str, Any] = {}
        for file in {stage.path: stage.dvcfile for stage in self.graph if isinstance(stage, PipelineStage)}.values():
            for name, definition in file.contents["stages"].items():
                if name in definitions:
                    raise BadInput(f"{file.relpath}: stage {name} is in another dvc.yaml, too; rename one of them")
                definitions[name] = {key: value for key, value in definition.items() if key != "wdir"}
            locked |= file.lockfile_contents.get("stages", {})
        return definitions, locked

    def out_of_date(self, targets: Iterable[str] = ()) -> list[Node]:
        """The stages that have changed and all stages after them, in the order of `dvc repro`."""
        order = self._planned(targets)
        stale: set[PipelineStage] = set()
        new: set[PipelineStage] = set()  # will make something else than the lock files say, as far as can be told
        with self.repo.lock:
            for stage in order:
                feeding = set(self.graph.successors(stage))
                if new & feeding or stage.changed_stage() or stage.changed_deps(allow_missing=True):
                    new.add(stage)
                if stale & feeding or stage in new or stage.changed():
                    stale.add(stage)
            runs = {stage for stage in stale if stage in new or stage.changed_outs()}
        here: set[PipelineStage] = set()
        nodes = []
        for stage in (stage for stage in order if stage in stale):
            needed = [other for other in order if other in stale and self.graph.has_edge(stage, other)]
            if _uncarried(stage) or here.intersection(needed):
                here.add(stage)
            names = tuple(other.name for other in needed)
            first, resources = bool((stage.meta or {}).get("local")), self._resources(stage)
            about = (stage in runs, resources, first, stage in here, stage)
            nodes.append(Node(stage.name, stage.addressing, names, *about))
        return nodes

    def _planned(self, targets: Iterable[str]) -> list[PipelineStage]:
        """The targets and all that they need; without targets, as in `dvc repro`, those of the dvc.yaml at the root."""
        names = {name for target in targets or [PROJECT_FILE] for name in self._named(target)}
        chosen = [stage for stage in self.graph if getattr(stage, "name", None) in names]
        return [stage for stage in plan_repro(self.graph, chosen) if isinstance(stage, PipelineStage)]

    def _named(self, target: str) -> set[str]:
        """The stages that a target means: a stage or matrix of any file by its name, or any target that DVC accepts."""
        every = [stage.name for stage in self.graph if isinstance(stage, PipelineStage)]
        if found := {name for name in every if target in (name, name.partition("@")[0])}:
            return found
        try:
            return {stage.name for stage in self.repo.stage.collect(target)}
        except DvcException as error:
            raise BadInput(f"{error}; `dvc stage list --all` names all stages") from None

    def _resources(self, stage: PipelineStage) -> dict[str, float]:
        """What a stage needs: a GPU if it reads `device`, and what dvc.yaml says under `meta: {resources: …}`."""
        reads = {key for dep in stage.deps for key in getattr(dep, "params", [])}
        wanted = (stage.meta or {}).get("resources", {})
        if not isinstance(wanted, dict) or not all(isinstance(amount, int | float) for amount in wanted.values()):
            raise BadInput(f"dvc.yaml: stage {stage.name}: meta.resources = {wanted}: must be names with numbers")
        return ({"GPU": 1.0} if "device" in reads else {}) | {name: float(amount) for name, amount in wanted.items()}

    def task(self, node: Node) -> Task:
        """Everything that a folder must contain so that DVC can run this stage alone in it."""
        stage = node.stage
        feeding = list(self.graph.successors(stage))
        files, cached = [], []
        for dep in stage.deps:
            inside = [out for path, (out, _) in self.producer.items() if out.use_cache and _overlap(path, dep.fs_path)]
            cached += [dep.def_path if _within(dep.fs_path, out.fs_path) else out.def_path for out in inside]
            # A folder of a matrix's tables, which are in Git, stands for all outputs of its cells, including models.
            cells = {stage for out, stage in self.producer.values() if _below(out.fs_path, dep.fs_path)}
            cached += [out.def_path for cell in cells for out in cell.outs if out.use_cache]
            covered = [Path(out.fs_path) for out in inside]
            for path in self._files(Path(dep.fs_path)):
                if not any(path.is_relative_to(out) for out in covered):
                    files.append(path)
        groups = {_group(other) for other in (stage, *feeding)}
        stages = {name: definition for name, definition in self.definitions.items() if name in groups}
        names = [other.name for other in (stage, *feeding)]
        files += [path for path in (self.root / "params.yaml", self.root / ".dvcignore") if path.exists()]
        return Task(
            stage=stage.name,
            packed=pack(self.root, files),
            pipeline=_yaml({"stages": stages}),
            entries={name: self.locked[name] for name in names if name in self.locked},
            kept=not any(out.changed_cache() for out in stage.outs if out.use_cache),
            cached=tuple(sorted(set(cached))),
            uncached=tuple(out.def_path for out in stage.outs if not out.use_cache),
        )

    def _files(self, path: Path) -> list[Path]:
        """The file itself, or the files that DVC sees in the folder."""
        if not path.is_dir():
            return [path] if path.is_file() else []
        return [Path(name) for name in self.repo.dvcignore.find(self.repo.fs, str(path))]

    def kept_for(self, nodes: Iterable[Node], tasks: Iterable[Task]) -> list[str]:
        """Data and models that are up to date and that the tasks, which are among these stages, read."""
        making = {node.name for node in nodes}
        made = {out.def_path for out, stage in self.producer.values() if stage.name in making}
        return sorted({path for task in tasks for path in task.cached} - made)

    def remotes(self) -> dict[str, Any]:
        """The shared storage that .dvc/config (in Git) names; never .dvc/config.local, which holds credentials."""
        config = self.repo.config.load_one("repo")
        return {"default": config["core"].get("remote"), "all": config["remote"]}

    @property
    def cache(self) -> str:
        return self.repo.cache.legacy.path


def _uncarried(stage: PipelineStage) -> bool:
    """Whether some outputs are in Git but neither metrics nor plots: DVC never takes those from its run cache."""
    return any(not (out.use_cache or out.metric or out.plot) for out in stage.outs)


def _group(stage: PipelineStage) -> str:
    return stage.name.partition("@")[0]


def _within(path: str, folder: str) -> bool:
    return Path(path).is_relative_to(folder)


def _below(path: str, folder: str) -> bool:
    return path != folder and _within(path, folder)


def _overlap(one: str, other: str) -> bool:
    return _within(one, other) or _within(other, one)


def _yaml(content: Any) -> str:
    buffer = io.StringIO()
    YAML(typ="safe", pure=True).dump(content, buffer)
    return buffer.getvalue()
