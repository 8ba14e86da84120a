"""The section `certify`: the brackets around every attack."""

from __future__ import annotations

from typing import Annotated

from brittle.core.params import Section, TopLevel, integer


class Certify(Section):
    nets: Annotated[int, integer(1)]
    samples: Annotated[int, integer(1)]


class CertifyParams(TopLevel):
    certify: Certify
