"""Train (100, 2)-FCNs with other activations and optimisers, dropout and weight decay (SB Appendix C.3, C.4)."""

from __future__ import annotations

from brittle.core import device
from brittle.core.stage import run
from brittle.slabs import draws, groups
from brittle.slabs.recipes import recipes
from brittle.slabs.recipes_params import RecipesParams

STAGE = "recipes_train"


def main(params: RecipesParams) -> None:
    p = params.slabs
    where = device.pick(params.device)
    every = recipes(params, lambda world: draws.load_sample("recipes", world, p.d, where))
    groups.train_all(STAGE, "models/recipes.safetensors", every)


if __name__ == "__main__":
    run(main, RecipesParams)
