"""What was measured on a user's network, for a terminal, for a table and for a page that stands alone."""

from __future__ import annotations

from dataclasses import dataclass, fields

import pandas as pd

from brittle.drawing import style
from brittle.report.page import Column, Figure, Section, Sheet, document
from brittle.user_network import plot
from brittle.user_network.measure import Measured

DPI = 100
ABOUT = {  # what each row of a table is about, and the position that it is at
    "robust": (None, "radius"),
    "samples": ("sample", None),
    "universal": ("class", None),
    "curves": ("class", "size"),
    "reliance": ("group", None),
    "density": ("basis", None),
}


@dataclass(frozen=True)
class Probed(Measured):
    """The measurements, each as a data frame; `print(probed)`, `probed.table()` and `probed.page()` show them all."""

    name: str  # of the network
    shape: tuple[int, ...]  # of one sample
    classes: int
    layers: int  # of the ReLU MLP that certificates are for; 0 for another network

    @classmethod
    def of(cls, measured: Measured, **about: object) -> Probed:
        return cls(**{field.name: getattr(measured, field.name) for field in fields(Measured)}, **about)

    def table(self) -> pd.DataFrame:
        """Every number in one long table: what was measured, of what, at which radius or size, and the value."""
        rows = [{"part": "accuracy", "measure": "accuracy", "value": self.accuracy}]
        for part, (of, at) in ABOUT.items():
            for row in getattr(self, part).to_dict("records"):
                about = {"part": part, "of": row.pop(of) if of else "", "at": row.pop(at) if at else None}
                if part == "curves":
                    about["measure"], row = row["vector"], {row["vector"]: row["accuracy"]}
                rows += [about | {"measure": name, "value": value} for name, value in row.items() if value is not None]
        return pd.DataFrame(rows, columns=["part", "of", "at", "measure", "value"])

    def __str__(self) -> str:
        half = self.robust.iloc[len(self.robust) // 2]
        lines = [f"{self.name}: {self.classes} classes, samples of the shape {self.shape}, {self._kind}"]
        lines.append(f"accuracy            {self.accuracy:.3f}")
        words = f"{half['all']:.3f} at the l2 radius {half['radius']:.3g}"
        words += f" (certified: {half['certified']:.3f})" if "certified" in half else ""
        lines.append(f"robust accuracy     {words}")
        words = f"{self.samples['attacked'].median():.3g} in the median"
        if self.layers:
            words += f" (certified: {self.samples['certified'].median():.3g})"
        lines.append(f"smallest flip       {words}")
        if len(self.universal):
            cosine = self.universal["cosine"].mean()
            lines.append(f"cosine with z       {cosine:.3f} of the universal perturbation found by ascent")
        lines += [f"relies on {row.group:10.10}{row.reliance:.3f}" for row in self.reliance.itertuples()]
        lines += [f"density             {row.density:.3f} in {row.basis}" for row in self.density.itertuples()]
        return "\n".join(lines)

    @property
    def _kind(self) -> str:
        return f"a ReLU MLP of {self.layers} layers" if self.layers else "no ReLU MLP, so that nothing is certified"

    def page(self) -> str:
        """One HTML document, with everything in it."""
        style.use(10)
        return document("user_network/page.html", probed=self, kind=self._kind, sections=self._sections())

    def _sections(self) -> list[Section]:
        """The parts of the page; one that has no numbers for this network is left out."""
        figures = {
            "robust": [
                _figure("robust-figure", *FIGURES["robust"], plot.robust(self.robust), self.robust),
                _figure("samples-figure", *FIGURES["samples"], plot.bracket(self.samples), self.samples),
            ]
        }
        if len(self.universal):
            drawn = plot.universal(self.curves)
            figures["universal"] = [_figure("universal-figure", *FIGURES["universal"], drawn, self.curves)]
        return [
            Section(id, title, words, figures.get(id, ()), [_sheet(f"{id}-sheet", caption, columns, getattr(self, id))])
            for id, title, words, caption, columns in SECTIONS
            if len(getattr(self, id))
        ]


FIGURES = {
    "robust": (
        "Robust accuracy against the radius",
        "The share of the samples that keep their class: attacked from above, certified from below.",
    ),
    "samples": (
        "The smallest perturbation of each sample",
        "Sorted by the size of the smallest perturbation found, and below it the radius that is proved, if any.",
    ),
    "universal": (
        "One vector for all samples",
        "Accuracy, one class against the rest, against the size of the vector: the mean over classes, and the range.",
    ),
}
ROBUST = [
    Column("radius", "Radius", "l2", ".3g"),
    Column("pgd", "PGD", "share that withstands projected gradient descent, from two starts", ".3f"),
    Column(
        "nearest", "Nearest", "share of which no smaller perturbation was found by searching the nearest flip", ".3f"
    ),
    Column("all", "Both", "share that withstands both", ".3f"),
    Column("certified", "Certified", "share that provably keeps its class within the radius", ".3f"),
]
UNIVERSAL = [
    Column("class", "Class", "against the rest", ".0f"),
    Column("samples", "Samples", "of the class and of others together, on which vectors were found", ".0f"),
    Column("cosine", "Cosine", "of z with the vector found by ascent", ".3f"),
    Column("ascent_half", "Ascent halves at", "the l2 size at which this vector halves the accuracy", ".3g"),
    Column("z_half", "z halves at", "the same for z = Σ yᵢxᵢ", ".3g"),
    Column("random_half", "Random halves at", "the same for a random direction", ".3g"),
]
RELIANCE = [
    Column("group", "Group", "of coordinates"),
    Column("coordinates", "Coordinates", "how many", ".0f"),
    Column("auc", "AUC", "samples as they are", ".3f"),
    Column("auc_s", "AUC, group rand.", "with the group from other samples; ½ is chance", ".3f"),
    Column("auc_rest", "AUC, rest rand.", "with all but the group from other samples", ".3f"),
    Column("reliance", "Reliance", "on the group: from 0, none, to 1, on nothing else", ".2f"),
]
DENSITY = [Column("basis", "Basis"), Column("density", "Density", "‖·‖₁/(√n ‖·‖₂), the median over samples", ".3f")]

SECTIONS = [  # the name of the data frame, then what the page says of it
    (
        "robust",
        "Robust accuracy",
        "How many of the attacked samples keep their class when each may be perturbed by a vector of its own of this "
        "ℓ2 size at most. What an attack finds is an upper bound; what is certified is a lower one.",
        "By radius",
        ROBUST,
    ),
    (
        "universal",
        "Universal perturbations",
        "One vector for all samples, added against the label: samples of a class are moved out of it, others into it. "
        "It is found on one half of the samples, as many of the class as of all others, and tested on the other half.",
        "By class",
        UNIVERSAL,
    ),
    (
        "reliance",
        "Reliance on groups of coordinates",
        "The area under the ROC curve, one class against the rest, when a group of coordinates, or all others, come "
        "from another sample. Means over classes.",
        "By group",
        RELIANCE,
    ),
    (
        "density",
        "Density of perturbations",
        "How evenly the smallest perturbations are spread, in the median: 1 if all coefficients are equal in size, 0.8 "
        "for Gaussian noise, near 0 if a few of them carry everything.",
        "By basis",
        DENSITY,
    ),
]


def _sheet(id: str, title: str, columns: list[Column], table: pd.DataFrame) -> Sheet:
    shown = [column for column in columns if column.key in table]
    return Sheet(id, title, "", shown, table.to_dict("records"))


def _figure(name: str, title: str, words: str, drawn: plot.Figure, table: pd.DataFrame) -> Figure:
    rows = [",".join(table.columns), *(",".join(map(_cell, row)) for row in table.itertuples(index=False))]
    data = {f"{name.removesuffix('-figure')}.csv": "\n".join(rows) + "\n"}
    return Figure(name, title, words, "", style.render(drawn, "svg", DPI).decode(), data)


def _cell(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else "" if value is None else str(value)
