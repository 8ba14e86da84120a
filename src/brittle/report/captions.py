"""Captions: what each figure and table shows, and the stage that makes it. They do not mention results of a run."""

from __future__ import annotations

from brittle.report import captions_after
from brittle.report.caption import Caption, Chapter

# The stages that draw, as arguments of `dvc repro`.
HEADLINE = "margin_figures"
SWEEP = "pipelines/margin/dvc.yaml:sweep_figures"
THEORY = "pipelines/theory/dvc.yaml:theory_figures"
SLABS = "pipelines/slabs/dvc.yaml:slabs_figures"
SPARSE = "pipelines/sparse/dvc.yaml:sparse_figures"
MNIST_CIFAR = "pipelines/pictures/dvc.yaml:mnist_cifar_figures"
CIFAR10 = "pipelines/pictures/dvc.yaml:cifar10_figures"
CROSS = "pipelines/cross/dvc.yaml:cross_figures"

CHAPTERS = [
    Chapter(
        "margin",
        "One vector flips everything (VYS)",
        "Vardi, Yehudai and Shamir, “Gradient Methods Provably Converge to Non-Robust Networks” (2022): networks of "
        "depth 2 on nearly orthogonal data. Where gradient flow goes, one vector, computed from the data alone, flips "
        "every sample on the margin, although robust networks exist.",
    ),
    Chapter(
        "slabs",
        "One simple feature is all they see (SB)",
        "Shah and others, “The Pitfalls of Simplicity Bias in Neural Networks” (2020): every feature tells the label, "
        "one, S, more simply than the others, Sᶜ. To randomise a feature is to take it from another sample.",
    ),
    Chapter(
        "sparse",
        "Adversarial training purifies features (FP)",
        "Allen-Zhu and Li, “Feature Purification: How Adversarial Training Performs Robust Deep Learning” (2021): "
        "inputs are sparse sums of words. Clean training is said to leave a small dense mixture of all words in every "
        "neuron, and adversarial training to remove it.",
    ),
    Chapter(
        "pictures",
        "Real pictures (SB, FP)",
        "The same two questions on MNIST and CIFAR-10. In the figures, control is a network that was trained cleanly "
        "for as long as the robust one was trained adversarially.",
    ),
    Chapter(
        "after",
        "What came after the three papers",
        "Later papers answer questions that the three leave open, each on data of its own. Here their claims are "
        "measured in one way, and judged as those of the three.",
    ),
]

FIGURES = [
    Caption(
        "cross_vectors",
        "One vector in every world",
        "Accuracy against the ℓ2 size of one perturbation for all samples, added against their labels, in every world. "
        "Thick: the direction that ascent finds on the network. Dashed: directions that the data alone give.",
        CROSS,
        "across",
    ),
    Caption(
        "cross_remedies",
        "What each remedy buys",
        "Of the same test samples: how many are right, how many withstand every attack within the radius (the bar is "
        "the range over seeds), and for how many that is proved. Dashed: what the best classifier known provably "
        "keeps.",
        CROSS,
        "across",
    ),
    Caption(
        "margin_flipped",
        "One vector for all samples",
        "The share of the margin samples that change their label, against the size of the perturbation: along z = Σ "
        "yᵢxᵢ and along a random direction. Dashed: the size at which z has flipped all of them, and √d.",
        HEADLINE,
        "margin",
    ),
    Caption(
        "margin_training",
        "How these networks were trained",
        "Left: the logarithm of the loss, one line per seed. Right: the outputs of the trained networks on their own "
        "samples, sorted; what is below the dashed line is on the margin.",
        HEADLINE,
        "margin",
    ),
    Caption(
        "fig1",
        "The size of z against the dimension (Fig 1)",
        "The smallest size at which z flips every margin sample: (a) for m = d^α samples, (b) for several widths. "
        "Dashed: √d. Thin lines were run at the paper's scale.",
        SWEEP,
        "margin",
    ),
    Caption(
        "fig2",
        "How many samples are on the margin (Fig 2)",
        "(a) The share of samples on the margin and (b) the number of those that are not, against the dimension, one "
        "line for each α. Dashed: the share that the paper reports.",
        SWEEP,
        "margin",
    ),
    Caption(
        "title",
        "The paper's title",
        "How far training samples are from the boundary, against the dimension, for m = d^α samples: the trained "
        "networks', from above (attacked), and from below (certified) those of the network that Thm 3.1 constructs for "
        "the same data. Lines: the median of all samples and seeds; bands: from the 10th to the 90th percentile. "
        "Dashed: the radius that Thm 3.1 promises.",
        THEORY,
        "margin",
    ),
    Caption(
        "certify",
        "How far each sample is from the boundary",
        "The radius of every training sample, sorted, from below (certified) and from above (attacked). Left: the "
        "trained network. Right: the network that Thm 3.1 constructs for the same data.",
        THEORY,
        "margin",
    ),
    Caption(
        "kkt",
        "The road to a KKT point",
        "The relative KKT residual as the loss falls, for several scales of the initial weights. Left: with σ' fixed "
        "to 0 or 1. Right: with σ' free at the kinks, as Clarke's subdifferential allows.",
        THEORY,
        "margin",
    ),
    Caption(
        "regime",
        "The √(d/m) law (Thm 4.1)",
        "The size at which z flips all samples, against d/m, on data that meet the theorem's assumptions. Dashed: "
        "√(d/m).",
        THEORY,
        "margin",
    ),
    Caption(
        "proof",
        "The proof, line by line (Appendix C)",
        "Thm 4.1's proof on trained networks that are near a KKT point, with fitted λ and σ'. (a) The left over the "
        "right side of each inequality, where it is tightest: the bar is the median network, the line the range. At 1 "
        "nothing is given away; beyond it the inequality fails. (b) The factors between the size of z that flips all "
        "samples and the theorem's bound, and their product.",
        THEORY,
        "margin",
    ),
    Caption(
        "optimisers",
        "Other optimisers",
        "Top: the size at which z flips all margin samples, by optimiser and depth; the tick in a bar is the attacked "
        "radius of a single sample, in the median, and the dashed line is √d. Bottom: that radius over √d, as d = m "
        "grows, with 95 % intervals over seeds: level where networks are as robust as √d allows.",
        THEORY,
        "margin",
    ),
    Caption(
        "slabs_fig1",
        "Small and large margin (Fig 1)",
        "(a) What a trained network says in the plane of S and one complex feature. (b) What f*, the average of one "
        "classifier a feature, says there. Green: the boundary of largest margin.",
        SLABS,
        "slabs",
    ),
    Caption(
        "slabs_fig2",
        "The worlds (Fig 2)",
        "Top: the blocks that worlds are built of, one coordinate each, and how many linear pieces it takes to "
        "classify them. Bottom: samples of each world, S against a complex feature.",
        SLABS,
        "slabs",
    ),
    Caption(
        "slabs_fig3",
        "What networks look at (Fig 3)",
        "(a) Logits of positive test samples as they are, with Sᶜ and with S randomised. (b) Area under the ROC curve "
        "against the number of complex features. (c) Decisions in the plane of S and the most influential of Sᶜ.",
        SLABS,
        "slabs",
    ),
    Caption(
        "slabs_fig4",
        "Universal perturbations (Fig 4)",
        "Top: how long each perturbation is along every feature. Middle: accuracy under a network's own perturbation, "
        "under z and under a random one. Bottom: accuracy of each network under the perturbation of each other.",
        SLABS,
        "slabs",
    ),
    Caption(
        "f_star",
        "What was possible: f*",
        "(a) How far samples are from the boundary of f*, which uses every feature, and from that of S alone, against "
        "the dimension. (b, c) Accuracy under attack of trained networks, in ℓ2 and ℓ∞, beside what is certified for "
        "f*.",
        SLABS,
        "slabs",
    ),
    Caption(
        "adversarial",
        "When adversarial training goes beyond S",
        "(a) Areas under the ROC curve with S and with Sᶜ randomised at the end of adversarial training in ℓ2, against "
        "its radius. (b, c) The same along training, for every norm and radius.",
        SLABS,
        "slabs",
    ),
    Caption(
        "lsn",
        "One pass of descent (Thm 1)",
        "(a) Weights on the linear, the slab and the noise coordinates after training, against the dimension, with "
        "the theorem's value. (b) How many times larger the linear weight is than the slab's.",
        SLABS,
        "slabs",
    ),
    Caption(
        "sparse_accuracy",
        "Before and after adversarial training (Thm 5.1, 5.3)",
        "Test accuracy against the radius, under FGM, PGD, random perturbations, and a dense one that needs no "
        "network. Green: the share of a few samples that is certified; the truth is between it and PGD.",
        SPARSE,
        "sparse",
    ),
    Caption(
        "sparse_mixture",
        "The dense mixture (Thm 5.2)",
        "(a, b) Coefficients of all other words, relative to the neuron's own, before and after adversarial training; "
        "dashed: K/d, as predicted. (c, d) Along one training: the coefficients of neurons, and the accuracy.",
        SPARSE,
        "sparse",
    ),
    Caption(
        "sparse_prediction",
        "The size of the mixture",
        "β/α after clean training against the predicted K/d, for several dimensions, sparsities, kinds of noise and "
        "dictionaries. On the dashed line they are equal.",
        SPARSE,
        "sparse",
    ),
    Caption(
        "sparse_theta",
        "What stays, and what is decided early (§1, §6.1)",
        "(a) θ, how alike neurons are, between initial, clean and robust weights. (b) Which rank a neuron's word "
        "had in its first weights, and whether the neuron was in Lemma B.2's S_pot of it. (c) How dense perturbations "
        "are in the basis of words.",
        SPARSE,
        "sparse",
    ),
    Caption(
        "sparse_scaling",
        "What shrinks with the dimension",
        "(a) to (e): quantities that the theorems call o(1), against d. (f): the energy in neurons that left their "
        "word for the label's direction. One line per start, with and without the margin filter.",
        SPARSE,
        "sparse",
    ),
    Caption(
        "sparse_low",
        "Linear models, the NTK and polynomials (Thm 5.6, Cor 5.7)",
        "Test accuracy without a perturbation (open) and under PGD (filled), after clean and after adversarial "
        "training, by norm and radius; with the margin filter above, without it below. Models with fixed features "
        "first, then networks.",
        SPARSE,
        "sparse",
    ),
    Caption(
        "sparse_transfer",
        "Perturbations of other networks",
        "Accuracy of every cleanly trained network under the FGM perturbations of every other, in per cent.",
        SPARSE,
        "sparse",
    ),
    Caption(
        "mnist_cifar",
        "A digit above a picture (SB Fig 2, 3)",
        "(a) Samples: the digit and the picture both tell the label. (b) Area under the ROC curve when either comes "
        "from another sample. (c) What that does to the logits.",
        MNIST_CIFAR,
        "pictures",
    ),
    Caption(
        "mnist_cifar_uap",
        "Universal perturbations of the two (SB Fig 4)",
        "(a) The perturbations. (b) The share of their squared norm that is on the digit, beside that of the "
        "difference of the class means. (c) The accuracy that they leave on samples they have not seen.",
        MNIST_CIFAR,
        "pictures",
    ),
    Caption(
        "cifar10_filters",
        "Filters of the first layer (FP Fig 1)",
        "The same filters before training, after clean training and after adversarial training from there. Right: the "
        "share of high frequencies in them, in the median.",
        CIFAR10,
        "pictures",
    ),
    Caption(
        "cifar10_theta",
        "How alike features stay (FP Fig 2)",
        "θ of single neurons between random, clean, control and robust weights: the median, and 10 to 90 % of a "
        "layer. Each layer is trained above frozen robust ones. Crosses: pairs of different neurons.",
        CIFAR10,
        "pictures",
    ),
    Caption(
        "cifar10_path",
        "Along training (FP Fig 5, 8, 9)",
        "θ of the filters of the first layer with random, clean and robust ones; their total variation; and the share "
        "of neurons that are active, layer by layer. Training is clean, then adversarial, then clean again.",
        CIFAR10,
        "pictures",
    ),
    Caption(
        "cifar10_along",
        "Filters along training (FP Fig 8, 9)",
        "The same filters of the first layer before training, and at epochs of clean, adversarial and clean training.",
        CIFAR10,
        "pictures",
    ),
    Caption(
        "cifar10_features",
        "What excites a neuron (FP Fig 10)",
        "Pictures that gradient ascent finds for single neurons of random, clean and robust networks. Right: how "
        "rough they are, layer by layer.",
        CIFAR10,
        "pictures",
    ),
    Caption(
        "cifar10_deep",
        "Features of deeper layers (FP Fig 6, 11, 13)",
        "Left: what excites neurons of a layer above frozen robust layers, when it is random, clean and robust; the "
        "search begins with noise on grey and is drawn towards grey, or towards black. Right: the same for whole "
        "networks, clean and trained against each attacker.",
        CIFAR10,
        "pictures",
    ),
    Caption(
        "cifar10_perturbations",
        "Perturbations of clean and robust networks (FP Fig 7)",
        "Left: pictures and the perturbations found for them. Right: how dense the perturbations are in pixels, "
        "cosines and wavelets, and how rough.",
        CIFAR10,
        "pictures",
    ),
    Caption(
        "cifar10_lasso",
        "Pictures from few features (FP Fig 4, 12)",
        "Left: pictures rebuilt by the Lasso from few filters of each network. Right: the error against the share of "
        "filters in use, for pictures and for perturbations.",
        CIFAR10,
        "pictures",
    ),
    *captions_after.FIGURES,
]

TABLES = [
    Caption("slabs_table2", "Architectures (appendix, Table 2)", "", SLABS, "slabs"),
    Caption(
        "noisy_table2",
        "A simple feature that is not always right (Table 2)",
        "",
        SLABS,
        "slabs",
    ),
    Caption(
        "recipes_table4",
        "Activations and optimisers (appendix, Table 4)",
        "",
        SLABS,
        "slabs",
    ),
    Caption(
        "recipes_table5",
        "Dropout and weight decay (appendix, Table 5)",
        "",
        SLABS,
        "slabs",
    ),
    Caption(
        "mnist_cifar_table3",
        "MNIST-CIFAR (SB appendix, Table 3)",
        "",
        MNIST_CIFAR,
        "pictures",
    ),
    Caption(
        "cifar10_table1",
        "Robust accuracy on CIFAR-10 (FP Table 1)",
        "",
        CIFAR10,
        "pictures",
    ),
]
