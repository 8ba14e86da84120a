"""The claims of all chapters, paper by paper."""

from __future__ import annotations

import brittle.margin.claims
import brittle.pictures.cifar10_claims
import brittle.pictures.mnist_cifar_claims
import brittle.slabs.claims
import brittle.sparse.claims  # noqa: F401  each adds its claims to the papers
from brittle.verdicts import FP, SB, VYS, Paper

PAPERS: list[Paper] = [VYS, SB, FP]
