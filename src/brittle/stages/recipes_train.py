"""Train (100, 2)-FCNs with other activations and optimisers, dropout and weight decay (SB Appendix C.3, C.4)."""

from __future__ import annotations

from brittle import device
from brittle.params.slabs import RecipesParams
from brittle.stages import groups, slabs
from brittle.stages.recipes import recipes
from brittle.stages.run import run

STAGE = "recipes_train"


def main(params: RecipesParams) -> None:
    p = params.slabs
    where = device.pick(params.device)
    every = recipes(params, lambda world: slabs.load("recipes", world, p.d, where))
    groups.train_all(STAGE, "models/recipes.safetensors", every)


if __name__ == "__main__":
    run(main, RecipesParams)
