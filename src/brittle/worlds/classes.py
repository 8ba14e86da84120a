"""The names of CIFAR-10's classes, in the order of their labels."""

from __future__ import annotations

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
