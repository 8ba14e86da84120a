"""Every paper's claims."""

from __future__ import annotations

from brittle.claims import cifar10, mnist_cifar  # noqa: F401  they add to the papers below
from brittle.claims.base import Paper
from brittle.claims.margin import VYS
from brittle.claims.slabs import SB
from brittle.claims.sparse import FP

PAPERS: list[Paper] = [VYS, SB, FP]
