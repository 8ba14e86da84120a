"""Every paper's claims."""

from __future__ import annotations

from brittle.claims.base import Paper
from brittle.claims.margin import VYS

PAPERS: list[Paper] = [VYS]
