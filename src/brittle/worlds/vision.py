"""The only place that imports torchvision: `from brittle.worlds.vision import torchvision`.

The package index's torchvision is built for the CUDA build of torch. With the CPU build its C++ library does not
load, and the import fails because it describes two operators of that library, nms and qnms, without checking that they
exist (it checks for all others). Declaring them here, without code, lets the import succeed. Our code never calls them:
networks, transforms and data sets are plain Python.
"""

from __future__ import annotations

import sys

import torch

try:
    import torchvision
except RuntimeError as error:
    if "torchvision::nms does not exist" not in str(error):
        raise
    for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
        del sys.modules[name]  # half-imported
    _declared = torch.library.Library("torchvision", "DEF")  # kept, because its declarations disappear with it
    for name in ("nms", "qnms"):
        _declared.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    import torchvision

__all__ = ["torchvision"]
