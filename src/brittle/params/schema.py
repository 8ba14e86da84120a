"""The whole of params.yaml. Stages load their own sections; this is what the stage `params` checks before them all."""

from __future__ import annotations

from pydantic import ConfigDict

from brittle.params.figures import FigureParams
from brittle.params.margin import MarginParams


class Schema(MarginParams, FigureParams):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
