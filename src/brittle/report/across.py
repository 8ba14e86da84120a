"""The report's section that compares the three papers: the sheets X1 to X3 and the meaning of their columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from brittle.report.page import Column, Figure, Row, Section, Sheet

WORDS = (
    "Each paper has a world of its own. Here every vector, probe and remedy goes through all of them, so that they "
    "can be compared."
)

VECTORS = Sheet(
    "vectors",
    "One vector",
    "VYS flip all samples with z = Σ yᵢxᵢ, SB with a universal perturbation along S, FP with a dense sum of words. "
    "Are these one idea? z is the first moment in which the labels differ, T₁. Where it is noise, because the classes "
    "have the same mean, the next moments Tₖ = Σ yᵢxᵢ^⊗k are tried, up to the first that tells the labels. None of "
    "these needs a network. Beside them: the perturbation found on a network of another seed, and chance.",
    [
        Column("world", "World", "where the network was trained"),
        Column("vector", "Vector", "the direction that is added to every sample, against its label"),
        Column("needs", "Needs", "what one must know to compute it"),
        Column("cosine", "Cosine", "with the universal perturbation found by ascent; 1 is the same direction", ".3f"),
        Column("half", "Halves at", "the ℓ2 size at which this vector halves the accuracy", ".3g"),
        Column("uap_half", "Ascent's halves at", "the same for the universal perturbation found by ascent", ".3g"),
        Column("random_half", "Random halves at", "the same for a random direction", ".3g"),
        Column("net", "Network", "its architecture"),
    ],
    (),
    filter="world",
)

PROBES = Sheet(
    "probes",
    "Every probe in every world",
    "What one paper measures on its own networks, measured on those of the others. A dash stands where a probe has no "
    "meaning.",
    [
        Column("world", "World", "where the network was trained"),
        Column("simple", "S is", "what counts as the simple feature there"),
        Column("training", "Training", "without an attacker (nothing), or against one (adversarial)"),
        Column("accuracy", "Accuracy", "on test samples as they are", ".3f"),
        Column("auc", "AUC", "area under the ROC curve, samples as they are", ".3f"),
        Column("auc_s", "AUC, S\u00a0rand.", "the same with S taken from other samples; ½ is chance (SB)", ".3f"),
        Column("auc_rest", "AUC, Sᶜ\u00a0rand.", "the same with all but S taken from other samples (SB)", ".3f"),
        Column("reliance", "Reliance", "on S: from 0, none, to 1, on nothing else", ".2f"),
        Column("kkt", "KKT", "relative residual of the KKT conditions of maximal margin (VYS)", ".2g"),
        Column(
            "theta", "θ", "how alike neurons are before and after, in the median; 1 is the same direction (FP)", ".2f"
        ),
        Column("density", "Density", "of a neuron's weights: 1 if all coordinates are alike (FP)", ".2f"),
        Column("density_delta", "Density of δ", "the same for the perturbations of single samples (FP)", ".2f"),
        Column(
            "certified", "Certified", "ℓ2 radius within which no perturbation changes the label, in the median", ".3g"
        ),
        Column("attacked", "Attacked", "ℓ2 size of the smallest perturbation found, in the median", ".3g"),
        Column("universal", "Universal", "ℓ2 size at which one perturbation for all halves the accuracy", ".3g"),
        Column("net", "Network", "its architecture"),
    ],
    (),
    filter="world",
)

REMEDIES = Sheet(
    "remedies",
    "The leaderboard of remedies",
    "Every remedy in every world, the most robust first; sort by any column. Nothing: plain SGD. Adversarial: from "
    "there, trained against PGD. Diverse: two networks with orthogonal input gradients. Noised: half of the samples "
    "have S of others. Muon: updates with all singular values alike. Power relu: cubes of ReLU. The rest are what "
    "their names say. User-supplied remedies appear among them.",
    [
        Column("world", "World", "where the network was trained"),
        Column("remedy", "Remedy", "what training did against brittleness"),
        Column("robust", "Robust", "accuracy under the strongest attack found at this radius", ".3f"),
        Column("spread", "Spread", "of that: largest minus smallest over seeds", ".3f"),
        Column("best", "Best", "share that the best classifier known for this world provably keeps", ".3f"),
        Column("gap", "Gap", "best minus robust: the possible improvement", ".3f"),
        Column("certified", "Certified", "share of the samples that are provably robust at this radius", ".3f"),
        Column(
            "off_span",
            "Off\u00a0span",
            "ℓ2 size of the smallest perturbation found that is orthogonal to all training samples, in the median; a "
            "dash where these span the whole space",
            ".3g",
        ),
        Column("accuracy", "Accuracy", "on test samples as they are", ".3f"),
        Column("reliance", "Reliance", "on the simple feature S: from 0, none, to 1, on nothing else", ".2f"),
        Column("radius", "Radius", "ℓ2 size of the perturbations", ".3g"),
        Column("cost", "Cost", "samples through the network in training, relative to no remedy", ".3g"),
        Column("net", "Network", "its architecture"),
        Column("seeds", "Seeds", "how many networks the numbers are means of", ".0f"),
        Column("yours", "Plugin", "ticked: it is user-supplied, from a plugin", "mark"),
    ],
    (),
    filter="world",
)

ATTACKS = Sheet(
    "attacks",
    "Every attack alone",
    "The accuracy that each attack leaves by itself, at the world's radius. The leaderboard counts the samples that "
    "withstand all attacks.",
    [
        Column("world", "World", "where the network was trained"),
        Column("remedy", "Remedy", "what training did against brittleness"),
        Column("attack", "Attack", "the attack's name"),
        Column("kept", "Left", "accuracy that it leaves", ".3f"),
        Column("net", "Network", "its architecture"),
        Column("yours", "Plugin", "ticked: the attack is user-supplied, from a plugin", "mark"),
    ],
    (),
    filter="world",
)

SHEETS = {  # by the path of the table that each sheet shows
    "plots/cross_vectors.csv": VECTORS,
    "plots/cross_probes.csv": PROBES,
    "plots/cross_remedies.csv": REMEDIES,
    "plots/cross_attacks.csv": ATTACKS,
}
DRAWN = {"vectors": "cross_vectors", "remedies": "cross_remedies"}  # the figure above each sheet


def section(rows: Mapping[str, Sequence[Row]], figures: Mapping[str, Figure]) -> Section:
    """Build the section from the rows of each table and the figures by name."""
    sheets = [
        replace(sheet, rows=rows[path], figure=figures[DRAWN[sheet.id]] if sheet.id in DRAWN else None)
        for path, sheet in SHEETS.items()
    ]
    return Section("across", "Across the papers", WORDS, sheets=sheets)
