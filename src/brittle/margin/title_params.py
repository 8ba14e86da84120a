"""The section `title`: trained networks beside Thm 3.1's on the same data, over the grid of VYS Figure 1(a)."""

from __future__ import annotations

from typing import Annotated

from brittle.core.params import Section, TopLevel, integer

# The largest α at which trained networks are compared with Thm 3.1's, which takes the inner products of all pairs of
# samples: at α = 1.5 and the paper's d = 1000 these are 8 GB.
MOST = 1.2


class Title(Section):
    samples: Annotated[int, integer(1)]


class TitleParams(TopLevel):
    title: Title
