"""Every paper's claims."""

from __future__ import annotations

from brittle.claims.base import Paper
from brittle.claims.margin import VYS
from brittle.claims.slabs import SB
from brittle.claims.sparse import FP

PAPERS: list[Paper] = [VYS, SB, FP]
