"""The claims of all chapters, paper by paper, and the questions across them."""

from __future__ import annotations

import brittle.after.geometry_claims
import brittle.after.off_subspace_claims
import brittle.after.perturbed_noise_claims
import brittle.after.powers_claims
import brittle.after.reconstruct_claims
import brittle.after.unseen_claims
import brittle.after.xor_claims
import brittle.cross.claims
import brittle.margin.claims
import brittle.margin.proof_questions
import brittle.margin.questions
import brittle.pictures.cifar10_claims
import brittle.pictures.cifar10_sparsity_claims
import brittle.pictures.mnist_cifar_claims
import brittle.slabs.claims
import brittle.sparse.claims  # noqa: F401  each adds its claims to the papers
from brittle.verdicts import ACROSS, FP, LATER, SB, VYS, Paper

PAPERS: list[Paper] = [VYS, SB, FP, LATER, ACROSS]
