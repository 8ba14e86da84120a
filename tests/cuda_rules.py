"""What a CUDA device refuses, and what makes the program wait for it: functions of an operator and its arguments."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import flop_registry

# torch.use_deterministic_algorithms(True) refuses these on CUDA, according to its documentation in torch 2.13.
REFUSED = set(
    [
        "avg_pool3d_backward",
        "_adaptive_avg_pool2d_backward",
        "_adaptive_avg_pool3d_backward",
        "adaptive_max_pool2d_backward",
        "fractional_max_pool2d_backward",
        "fractional_max_pool3d_backward",
        "max_unpool2d",
        "max_unpool3d",
        "upsample_linear1d_backward",
        "upsample_bilinear2d_backward",
        "upsample_bicubic2d_backward",
        "upsample_trilinear3d_backward",
        "_upsample_bilinear2d_aa_backward",
        "reflection_pad1d_backward",
        "reflection_pad2d_backward",
        "reflection_pad3d_backward",
        "nll_loss2d_forward",
        "_ctc_loss_backward",
        "put_",
        "put",
        "histc",
        "grid_sampler_2d_backward",
        "grid_sampler_3d_backward",
    ]
)
# Their results, or the sizes of their results, are needed by the program itself.
WAITS = set(
    [
        "_local_scalar_dense",
        "nonzero",
        "masked_select",
        "equal",
        "_unique2",
        "unique_dim",
        "unique_consecutive",
        "bincount",
        "repeat_interleave",
        "linalg_qr",
        "_linalg_svd",
        "_linalg_eigh",
        "linalg_cholesky_ex",
        "linalg_inv_ex",
        "linalg_lstsq",
        "_linalg_solve_ex",
        "_linalg_det",
        "allclose",
        "is_nonzero",
        "histc",
    ]
)
# They only describe memory: nothing runs on the device.
FREE = set(
    [
        "detach",
        "alias",
        "_reshape_alias",
        "lift_fresh",
        "empty",
        "empty_like",
        "new_empty",
        "empty_strided",
        "new_empty_strided",
        "_local_scalar_dense",
    ]
)
INDEXING = {"index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index"}
TAKE_SCALARS = {"where", "masked_fill", "masked_fill_", "fill_", "fill", "clamp"}


@cache
def name_of(op: Any) -> str:
    return op._schema.name.split("::")[1]


@cache
def is_random(op: Any) -> bool:
    return torch.Tag.nondeterministic_seeded in op.tags


@cache
def takes_scalars(op: Any) -> bool:
    """Whether a number of the host, as a tensor without axes, may stand among tensors of the device."""
    return torch.Tag.pointwise in op.tags or name_of(op) in TAKE_SCALARS | INDEXING


def wrong_mix(op: Any, args: Sequence[Any], here: Sequence[Tensor], host: Sequence[Tensor]) -> str:
    """Why the operator cannot take tensors of the device and of the host together; empty if it can."""
    name = name_of(op)
    if not (here and host) or name in ("copy_", "_foreach_copy_", "_copy_from"):
        return ""
    if name in INDEXING and any(args[0] is tensor for tensor in here):  # indices may come from the host
        indices = [id(index) for index in args[1] if index is not None]
        host = [tensor for tensor in host if id(tensor) not in indices]
    if not host or (takes_scalars(op) and all(tensor.ndim == 0 for tensor in host)):
        return ""
    shapes = ", ".join(str(tuple(tensor.shape)) for tensor in host)
    return f"{name}: Expected all tensors to be on the same device, but found cuda:0 and cpu: {shapes}"


def wrong_strides(op: Any, args: Sequence[Any]) -> str:
    """Fused optimisers want each parameter, its gradient and its momentum to have one layout in memory."""
    if not name_of(op).startswith("_fused_"):
        return ""
    lists = [part for part in args if isinstance(part, (list, tuple)) and part]
    for same in zip(*lists, strict=False):
        if len({tuple(s for n, s in zip(t.shape, t.stride(), strict=True) if n > 1) for t in same}) > 1:
            return f"{name_of(op)}: different strides: {[t.stride() for t in same]}"
    return ""


def wrong_order(op: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    """What the deterministic mode refuses, because additions run in any order."""
    name = name_of(op)
    refused = (
        name in REFUSED
        or (name in ("cumsum", "cumsum_") and args[0].is_floating_point())
        or (name in ("median", "nanmedian") and op._overloadname.startswith("dim"))
        or (name == "bincount" and ((len(args) > 1 and args[1] is not None) or kwargs.get("weights") is not None))
        or (name.startswith("scatter_reduce") and "prod" in args)
    )
    return f"{name}: does not have a deterministic implementation on CUDA" if refused else ""


def waits(op: Any, args: Sequence[Any]) -> str:
    """Why the program waits for the device; empty if it does not. (Copies to the host wait, too.)"""
    name = name_of(op)
    if name in INDEXING and any(t is not None and t.dtype in (torch.bool, torch.uint8) for t in args[1]):
        return "an index of booleans"
    return name if name in WAITS else ""


@cache
def launches(op: Any) -> bool:
    return not (op.is_view or name_of(op) in FREE)


def written(op: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
    """The arguments that the operator changes in place: tensors, or lists of them."""
    places = enumerate(op._schema.arguments)
    values = ((each, args[n] if n < len(args) else kwargs.get(each.name)) for n, each in places)
    return [value for each, value in values if each.alias_info is not None and each.alias_info.is_write]


def operations(op: Any, args: Sequence[Any], kwargs: dict[str, Any], out: Any) -> float:
    """Additions and multiplications of products of matrices and convolutions; 0 for all else."""
    count = flop_registry.get(op._overloadpacket)
    return float(count(*args, **kwargs, out_val=out)) if count else 0.0
