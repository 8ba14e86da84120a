"""All sections that determine which slab data are drawn."""

from __future__ import annotations

from brittle.slabs.adversarial_params import AdversarialParams
from brittle.slabs.f_star_params import FStarParams
from brittle.slabs.features_params import FeaturesParams
from brittle.slabs.noisy_params import NoisyParams
from brittle.slabs.recipes_params import RecipesParams


class AllSlabsParams(FeaturesParams, RecipesParams, NoisyParams, AdversarialParams, FStarParams):
    """The sections that the data depend on."""
