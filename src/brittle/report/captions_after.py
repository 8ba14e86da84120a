"""The captions of the chapter on later papers; each of its parts draws its own figure."""

from __future__ import annotations

from brittle.report.caption import Caption

UNSEEN = "pipelines/after/dvc.yaml:unseen_figures"
POWERS = "pipelines/after/dvc.yaml:powers_figures"

FIGURES = [
    Caption(
        "unseen",
        "Clusters: one vector for fresh samples (Frei and others 2023)",
        "Networks trained on k clusters, measured on samples that they have not seen. (a) The size at which z of the "
        "training data flips 99 % of them, over √(d/k); filled where the paper's assumption holds. (b) The share that "
        "z flips, and a random direction. (c) How far they are from the boundary: of the trained network, from above, "
        "and of Thm 3.1's network on the centres, from below.",
        UNSEEN,
        "after",
    ),
    Caption(
        "powers",
        "Powers of ReLU (Min and Vidal 2024)",
        "Networks of σ(w·x)^p, trained on K clusters whose centres are √2 apart. (a) The size of single perturbations "
        "that halves the accuracy on fresh samples; dotted and dashed: the closed forms for neurons that point at the "
        "average of a class, and at single centres. (b) Accuracy against the size, by single perturbations and along "
        "z. (c) What neurons point at: mean cosines, weighted by what each neuron contributes.",
        POWERS,
        "after",
    ),
]
