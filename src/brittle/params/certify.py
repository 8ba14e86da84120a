"""The section `certify`: the brackets around every attack."""

from __future__ import annotations

from typing import Annotated

from brittle.params.base import Section, integer
from brittle.params.headline import Headline


class Certify(Section):
    nets: Annotated[int, integer(1)]
    samples: Annotated[int, integer(1)]


class CertifyParams(Headline):
    certify: Certify
