"""The schema of the whole params.yaml, and presets: overlays that hold only what differs from it.

python -m brittle.params                        # check params.yaml
python -m brittle.params presets/paper.yaml     # check a preset, and print it as arguments of `dvc exp run`
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, model_validator

from brittle.after.geometry_params import GeometryParams
from brittle.after.off_subspace_params import OffSubspaceParams
from brittle.after.perturbed_noise_params import PerturbedNoiseParams
from brittle.after.powers_params import PowersParams
from brittle.after.reconstruct_params import ReconstructParams
from brittle.after.unseen_params import UnseenParams
from brittle.after.xor_params import MidTrainingParams, XorParams
from brittle.core.errors import BadInput
from brittle.core.params import cross, load, read, validated
from brittle.cross.params import CrossParams
from brittle.drawing.params import FigureParams
from brittle.margin import title_params
from brittle.margin.certify_params import CertifyParams
from brittle.margin.kkt_params import KKTParams
from brittle.margin.minibatch_params import MinibatchParams
from brittle.margin.optimisers_params import OptimisersParams
from brittle.margin.params import MarginParams
from brittle.margin.sweep_params import SweepParams
from brittle.margin.theory_params import TheoryParams
from brittle.margin.title_params import TitleParams
from brittle.margin.variants_params import VariantsParams
from brittle.pictures.cifar10_params import Cifar10Params
from brittle.pictures.mnist_cifar_params import MnistCifarParams
from brittle.slabs.all_params import AllSlabsParams
from brittle.slabs.lsn_params import LsnParams
from brittle.sparse.params import SparseParams

S = TypeVar("S", bound=BaseModel)


class Schema(
    MarginParams,
    SweepParams,
    TitleParams,
    MinibatchParams,
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
    PerturbedNoiseParams,
    ReconstructParams,
    XorParams,
    MidTrainingParams,
    CrossParams,
    UnseenParams,
    PowersParams,
    GeometryParams,
    OffSubspaceParams,
    FigureParams,
):
    """All sections; an unknown key is an error. Each stage loads only its own sections."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    @model_validator(mode="after")
    def _some_networks_stand_beside_thm31(self) -> Self:
        if min(self.sweep.alphas) > title_params.MOST:
            words = f"must have one ≤ {title_params.MOST}, to compare with Thm 3.1's network"
            raise cross("sweep.alphas", min(self.sweep.alphas), words)
        return self


def leaves(section: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every value with its dotted name."""
    for key, value in section.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def overlaid(base: dict[str, Any], overlay: dict[str, Any]) -> dict[str, Any]:
    """The base, with the values of the overlay in place of its own."""
    merged = dict(base)
    for key, value in overlay.items():
        below = base.get(key)
        merged[key] = overlaid(below, value) if isinstance(value, dict) and isinstance(below, dict) else value
    return merged


def at_scale(schema: type[S], preset: Path, base: Path = Path("params.yaml")) -> S:
    """Some sections of params.yaml with a preset laid over them."""
    return validated(schema, overlaid(read(base), read(preset)), preset.name)


def changes(preset: Path, base: Path = Path("params.yaml")) -> dict[str, Any]:
    """The changes of a preset, by dotted name. Each must differ from the base, and the result must fit the schema."""
    load(Schema, base)
    now, wanted = read(base), read(preset)
    validated(Schema, overlaid(now, wanted), preset.name)
    old, new = dict(leaves(now)), dict(leaves(wanted))
    for key, value in new.items():
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and not re.fullmatch(r"[\w./@+-]+", text):
                raise BadInput(f"{preset.name}: {key} = {text!r}: must have letters, digits and ._/@+- alone, for -S")
        if old[key] == value:
            raise BadInput(f"{preset.name}: {key} = {value}: is what {base.name} has; a preset holds only what differs")
    return new


def arguments(changed: dict[str, Any]) -> list[str]:
    """The arguments `-S key=value`, one pair per change."""
    return [part for key, value in changed.items() for part in ("-S", f"{key}={str(value).replace(' ', '')}")]


def main(words: list[str]) -> None:
    if not words:
        load(Schema)
    elif len(words) == 1:
        print(*arguments(changes(Path(words[0]))))
    else:
        raise BadInput("usage: python -m brittle.params [PRESET]")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except BadInput as error:
        print(error, file=sys.stderr)
        sys.exit(2)
