"""A ReLU MLP of any depth in float64, found inside a torch module: the form that certificates are for."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, fx, nn

from brittle.nets.two_layer import TwoLayer

IDLE = (nn.Flatten, nn.Identity, nn.Dropout)  # in eval mode, on samples that are flat already
IDLE_CALLS = {"flatten", "view", "reshape", "squeeze", torch.flatten, torch.reshape, torch.squeeze}
RELU_CALLS = {"relu", "relu_", torch.relu, torch.relu_, nn.functional.relu}
ALIKE = 1e-3  # of the largest output: what float32 and float64 may differ by


@dataclass(frozen=True)
class ReluMlp:
    """x ↦ W_L σ(… σ(W_1 x + b_1) …) + b_L, one row of W_L for each class."""

    weights: Sequence[Tensor]  # L of (k_out, k_in)
    biases: Sequence[Tensor]  # L of (k_out,)

    def __call__(self, x: Tensor) -> Tensor:
        for w, b in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = (x @ w.T + b).relu()
        return x @ self.weights[-1].T + self.biases[-1]  # (n, d) -> (n, classes)

    def pair(self, label: int, rival: int) -> TwoLayer | None:
        """The label's output minus the rival's, with the bias as a neuron that is always 1; None at other depths."""
        if len(self.weights) != 2:
            return None
        (w, last), (b, bias) = self.weights, self.biases
        w, b = torch.cat([w, torch.zeros_like(w[:1])]), torch.cat([b, torch.ones_like(b[:1])])
        return TwoLayer(
            w[None], b[None], torch.cat([last[label] - last[rival], (bias[label] - bias[rival])[None]])[None]
        )


def as_relu_mlp(net: nn.Module, x: Tensor) -> ReluMlp | None:
    """The same function as the module on samples such as x, or None: another kind of network, or one we cannot read."""
    try:  # (n, *shape)
        layers = _layers(fx.symbolic_trace(nn.Sequential(net)))
    except Exception:  # code that branches on its input, for one, cannot be traced
        return None
    if not layers:
        return None
    weights = [layer.weight.detach().cpu().double() for layer in layers]
    biases = [
        w.new_zeros(len(w)) if layer.bias is None else layer.bias.detach().cpu().double()
        for w, layer in zip(weights, layers, strict=True)
    ]
    if weights[0].shape[1] != x[0].numel() or any(
        after.shape[1] != len(before) for before, after in itertools.pairwise(weights)
    ):
        return None
    found = ReluMlp(weights, biases)
    # Reading a graph can go wrong (a transposed picture looks like any other): what was read must compute the same.
    with torch.no_grad():
        theirs, ours = net(x).cpu().double().view(len(x), -1), found(x.flatten(1).cpu().double())
    same = ours.shape == theirs.shape and bool((ours - theirs).abs().max() <= ALIKE * theirs.abs().max())
    return found if same else None


def _layers(traced: fx.GraphModule) -> list[nn.Linear] | None:
    """The linear layers of a chain in which each but the last is followed by a ReLU; None for any other graph."""
    layers, at, rectified, sizes = [], None, True, set()
    for node in traced.graph.nodes:
        part = traced.get_submodule(node.target) if node.op == "call_module" else None
        name = getattr(node.target, "__name__", node.target)
        if node.op == "placeholder" and at is None:
            at = node
        elif node.op == "output":
            return layers if list(node.all_input_nodes) == [at] and not rectified else None
        elif node.op in ("placeholder", "get_attr") or not set(node.all_input_nodes) <= {at, *sizes}:
            return None
        elif name in ("size", "getattr") or (node.all_input_nodes and set(node.all_input_nodes) <= sizes):
            sizes.add(node)  # x.shape[0] for a view
        elif isinstance(part, nn.Linear) and rectified:
            at, rectified = node, False
            layers.append(part)
        elif isinstance(part, nn.ReLU) or (part is None and node.target in RELU_CALLS):
            at, rectified = node, True
        elif isinstance(part, IDLE) or (part is None and (node.target in IDLE_CALLS or name == "getitem")):
            at = node  # out[:, 0]; whether it is no more than that is seen by comparing the outputs
        else:
            return None
    return None
