"""Fetch MNIST."""

from __future__ import annotations

from brittle.core.stage import run
from brittle.pictures.fetch import fetch
from brittle.pictures.params import ImagesParams


def main(params: ImagesParams) -> None:
    fetch("mnist", params.images.root)


if __name__ == "__main__":
    run(main, ImagesParams)
