"""The whole of params.yaml. Stages load their own sections; this is what the stage `params` checks before them all."""

from __future__ import annotations

from pydantic import ConfigDict

from brittle.params.certify import CertifyParams
from brittle.params.cifar10 import Cifar10Params
from brittle.params.cross import CrossParams
from brittle.params.figures import FigureParams
from brittle.params.kkt import KKTParams
from brittle.params.lsn import LsnParams
from brittle.params.margin import MarginParams
from brittle.params.mnist_cifar import MnistCifarParams
from brittle.params.optimisers import OptimisersParams
from brittle.params.slabs import AllSlabsParams
from brittle.params.sparse import SparseParams
from brittle.params.sweep import SweepParams
from brittle.params.theory import TheoryParams
from brittle.params.variants import VariantsParams


class Schema(
    MarginParams,
    SweepParams,
    TheoryParams,
    VariantsParams,
    CertifyParams,
    KKTParams,
    OptimisersParams,
    AllSlabsParams,
    LsnParams,
    SparseParams,
    MnistCifarParams,
    Cifar10Params,
    CrossParams,
    FigureParams,
):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
