"""Fetch CIFAR-10."""

from __future__ import annotations

from brittle.params.images import ImagesParams
from brittle.stages.fetch import fetch
from brittle.stages.run import run


def main(params: ImagesParams) -> None:
    fetch("cifar10", params.images.root)


if __name__ == "__main__":
    run(main, ImagesParams)
