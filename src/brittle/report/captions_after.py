"""The captions of the chapter on later papers; each of its parts draws its own figure."""

from __future__ import annotations

from brittle.report.caption import Caption

UNSEEN = "pipelines/after/dvc.yaml:unseen_figures"
POWERS = "pipelines/after/dvc.yaml:powers_figures"
OFF_SUBSPACE = "pipelines/after/dvc.yaml:off_subspace_figures"
GEOMETRY = "pipelines/after/dvc.yaml:geometry_figures"
PERTURBED = "pipelines/after/dvc.yaml:perturbed_noise_figures"
RECONSTRUCT = "pipelines/after/dvc.yaml:reconstruct_figures"
XOR = "pipelines/after/dvc.yaml:xor_figures"

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
    Caption(
        "off_subspace_boards",
        "Off the data's line and plane (Melamed and others 2023)",
        "Where networks with one hidden layer say +1 (blue) and -1 (orange). Above: seven points on a diagonal. Below: "
        "the middle row of a 5 × 5 chess board, and the plane that stands on it. As usual, from smaller initial "
        "weights, and with weight decay.",
        OFF_SUBSPACE,
        "after",
    ),
    Caption(
        "off_subspace",
        "Off the data's subspace (Melamed and others 2023)",
        "Networks trained on data in a random subspace; a dot for each. Left: the length of the gradient off it, "
        "against the number of dimensions off it. Middle: how far the boundary is along that gradient, over the "
        "output, against the scale of the initial weights. Right: how far it is with two remedies.",
        OFF_SUBSPACE,
        "after",
    ),
    Caption(
        "geometry",
        "Which margin an optimiser maximises (Gronich and Vardi 2026)",
        "Left: the normalised margin in each norm that each rule ends with, as a share of the largest; means over "
        "seeds. The theorem is about smooth networks. Right: areas under the ROC curve with S from other samples, of "
        "networks in the slab worlds, where ½ says that nothing but S is used; hollow where the training samples are "
        "not learnt.",
        GEOMETRY,
        "after",
    ),
    Caption(
        "perturbed_noise",
        "Perturbations are features (Kumano, Kera, Yamasaki 2024)",
        "A first network learns a few samples with random labels. Noise points are perturbed towards random labels as "
        "it asks for, and a second network learns nothing but these. (a), (b) How many of the first network's samples "
        "the second one labels right, and one that learns the noise alone. (c) The cosine of the perturbations with "
        "VYS's z. Bands: the range over seeds.",
        PERTURBED,
        "after",
    ),
    Caption(
        "reconstruct",
        "The training samples, from the weights alone (Haim and others 2022)",
        "The share of the training samples that a candidate meets with a cosine of 0.9 or more. Candidates come from a "
        "search for a KKT point, and from the differences w_j/v_j - w_l/v_l of all pairs of neurons, which need no "
        "search. (a) Against the loss, and how many samples of the same distribution, which the network never saw, are "
        "met. (b) Against the distance from a KKT point. (c) With more samples, and before training.",
        RECONSTRUCT,
        "after",
    ),
    Caption(
        "xor",
        "What neurons turn to where no line separates the labels (Tsoy, Konstantinov 2024)",
        "Networks without biases, from small weights, on points around two crossed axes. (a) How much of the squared "
        "norms of all neurons is near four directions, along training; up to the dots the loss is at least 0.8 ln 2. "
        "(b) Where these directions are at the end. (c) What a linear probe reads of the complex features Sᶜ in the "
        "last hidden layer of networks on LMS-5, when S is taken from other samples.",
        XOR,
        "after",
    ),
]
