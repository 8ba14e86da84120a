"""What a preset asks for, table by table: which stages make it, how long that takes, which claims it settles."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from brittle import long_runs
from brittle.core.params import read
from brittle.evidence.costs import seconds
from brittle.params import changes, leaves, overlaid
from brittle.report.papers import PAPERS
from brittle.tools.graph import ROOT, Stage, stages

PRESET = Path("presets/evidence.yaml")
CORES = 2  # of the machine that times are predicted for
# Tables that a stage gathers cell by cell are kept cell by cell, so that each is evidence as soon as it is made.
CELLS = {"plots/sweep.csv": "sweep_attack", "plots/widths.csv": "widths_attack", "plots/title.csv": "title_attack"}
FOLDERS = {"margin": "margin", "theory": "margin"}  # of pipelines/, and the chapter
FOLDERS |= {name: name for name in ("slabs", "sparse", "pictures", "after")}
CHAPTERS = tuple(dict.fromkeys(FOLDERS.values()))


@dataclass(frozen=True)
class Unit:
    """One file of evidence, and what makes it."""

    table: str  # the table of this run that it belongs to: plots/sweep.csv
    made: str  # the file that the stage writes: plots/sweep/400.csv
    stage: str  # its name: sweep_attack@400
    address: str  # as `dvc repro` takes it
    chapter: str
    params: dict[str, Any]  # what the preset changes, of what the stages read
    needs: tuple[str, ...]  # the stages to run, itself included
    claims: tuple[str, ...]

    @property
    def kept(self) -> Path:
        """Its file in evidence/."""
        return long_runs.FOLDER / self.made.removeprefix("plots/")

    @property
    def done(self) -> bool:
        """Whether the evidence is there, with the parameters that the preset asks for."""
        return self.kept in long_runs.files(str(self.kept.relative_to(long_runs.FOLDER).with_suffix(""))) and (
            long_runs.provenance(self.kept)["params"] == self.params
        )


@dataclass(frozen=True)
class Plan:
    """All that a preset asks for."""

    preset: Path
    units: tuple[Unit, ...]
    quick: dict[str, Any]  # parameters by dotted name
    wanted: dict[str, Any]

    def seconds(self, names: Iterable[str]) -> float:
        """The predicted seconds of these stages, side by side on so many cores."""
        return sum(seconds(name, self.quick, self.wanted) for name in names) / CORES

    def predicted(self, units: Iterable[Unit]) -> dict[str, float]:
        """The predicted seconds of each stage that these units need, on one core."""
        return {name: seconds(name, self.quick, self.wanted) for unit in units for name in unit.needs}

    def seconds_of(self, units: Iterable[Unit]) -> float:
        """The same for all that these units need, what they share once."""
        return self.seconds({name for unit in units for name in unit.needs})

    def missing(self, chapter: str = "") -> list[Unit]:
        """The units that are not there yet, cheapest for its claims first; shared stages are paid for once."""
        left = [unit for unit in self.units if chapter in ("", unit.chapter) and not unit.done]
        paid: set[str] = set()
        ordered = []
        while left:
            best = min(left, key=lambda unit: (self.seconds(set(unit.needs) - paid) / len(unit.claims), unit.made))
            ordered.append(best)
            paid |= set(best.needs)
            left.remove(best)
        return ordered


def plan(preset: Path = PRESET) -> Plan:
    """The units of a preset: of every table that a claim reads, if the preset changes what it is made from."""
    changed = changes(preset)
    base = read(Path("params.yaml"))
    quick, wanted = dict(leaves(base)), dict(leaves(overlaid(base, read(preset))))
    every = stages()
    makers = {output: stage for stage in every.values() for output in stage.outputs}
    readers: dict[str, list[str]] = {}
    for claim in (claim for paper in PAPERS for claim in paper.in_order()):
        for path in claim.reads:
            readers.setdefault(path, []).append(claim.id)
    units = []
    for table, claims in readers.items():
        stage = every[CELLS[table]] if table in CELLS else makers.get(table)
        if stage is None or stage.file == ROOT / "dvc.yaml" or stage.file.parent.name not in FOLDERS:
            continue
        for cell in stage.cells(wanted) if table in CELLS else [None]:
            needed = upstream(stage, cell, every, makers, wanted)
            params = {key: changed[key] for key in changed if any(_reads(every[_base(n)], key) for n in needed)}
            if params or (cell is not None and cell not in quick[stage.axis[1]]):
                name, made = _named(stage, cell, table)
                address = f"{stage.file.relative_to(ROOT)}:{name}"
                chapter = FOLDERS[stage.file.parent.name]
                units.append(Unit(table, made, name, address, chapter, params, tuple(sorted(needed)), tuple(claims)))
    return Plan(preset, tuple(units), quick, wanted)


def _named(stage: Stage, cell: Any, table: str) -> tuple[str, str]:
    """The name of the stage or of its cell, and the file that it writes."""
    if cell is None:
        return stage.name, table
    (out,) = (out for out in stage.outputs if out.startswith("plots/"))
    return f"{stage.name}@{cell}", out.replace(f"${{item.{stage.axis[0]}}}", str(cell))


def upstream(
    stage: Stage, cell: Any, every: dict[str, Stage], makers: dict[str, Stage], wanted: dict[str, Any]
) -> set[str]:
    """The stages that a stage needs, itself included; a stage that reads a folder needs all cells that write there."""
    found = {stage.name if cell is None else f"{stage.name}@{cell}"}
    for path in stage.inputs:
        for out, maker in makers.items():
            same = out == path or out.startswith(f"{path}/")
            if not same or maker.name == stage.name:
                continue
            matched = stage.axis and maker.axis and stage.axis[1] == maker.axis[1] and cell is not None
            for each in [cell] if matched else maker.cells(wanted):
                found |= upstream(maker, each, every, makers, wanted)
    return found


def _base(name: str) -> str:
    return name.partition("@")[0]


def _reads(stage: Stage, key: str) -> bool:
    """Whether a stage reads a parameter, by its own name or by that of its section."""
    return any(key == name or key.startswith(f"{name}.") for name in stage.definition.get("params", []))
