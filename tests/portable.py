"""What this machine computes, to the last bit: a digest an operation and a digest an artefact of a tiny pipeline.

    make portable                                    # on three processors that qemu emulates, and here; compared
    python tests/portable.py                         # here alone
    qemu-x86_64 -cpu Haswell-v4 python tests/portable.py

The operations are those that training and probing rest on, so that a difference names its library. The pipeline is the
headline chain and stages of every other chapter, each run as DVC runs it. An emulator has its own approximations of
1/x and 1/√x, neither Intel's nor AMD's: what rests on those differs there, too. tests/test_portable.py compares this
machine with tests/portable.json.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import runpy
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import brittle  # noqa: F401, before the numerical libraries: it tells them which kernels to take

COMMITTED = Path(__file__).with_suffix(".json")
EMULATED = ("Haswell-v4", "Skylake-Server-v5", "EPYC-Rome")
STAGES = """
params
margin_data, margin_train, margin_attack, variants_train, certify, kkt_train, kkt_probe, optimisers_train
slabs_data, slabs_train fcn-8-1, slabs_train cnn-2-3-1, slabs_train gru-3-5-1, slabs_probe, f_star
sparse_data, sparse_train random, sparse_train pure, sparse_low
mnist, cifar10, cifar10_train alexnet, mnist_cifar_train mobilenet_v2
cross_data lms-5, cross_data mnist-cifar, cross_train lms-5, cross_train mnist-cifar
unseen, powers_train, geometry_margins, off_subspace, perturbed_noise, reconstruct, xor
"""


def digest(arrays: Iterable[Any]) -> str:
    import numpy as np

    found = hashlib.sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array.detach() if hasattr(array, "detach") else array).tobytes())
    return found.hexdigest()[:16]


def operations() -> dict[str, str]:
    """Each with one thread and with two; sizes are odd, so that the ends of loops count, too."""
    import numpy as np
    import scipy.linalg
    import torch
    from torch.nn import functional

    from brittle.core.device import sqrt
    from brittle.core.machine import use_threads

    draws = np.random.default_rng(0)
    found: dict[str, str] = {}

    def normal(*shape: int) -> np.ndarray:
        return draws.standard_normal(shape)

    a, b, many = normal(123, 217), normal(217, 91), normal(50_001)
    large = torch.from_numpy(np.random.default_rng(1).integers(-8, 9, (300, 350))).double()
    large = large @ large.T  # of whole numbers: exact
    square, filters, picture = a @ a.T + np.eye(123), normal(16, 3, 5, 5), normal(8, 3, 33, 31)
    weights = {name: normal(*shape) for name, shape in (("ih", (21, 5)), ("hh", (21, 7)), ("bi", (21,)), ("bh", (21,)))}
    sequences = normal(4, 9, 5)
    for bits in (32, 64):
        dtype = np.dtype(f"f{bits // 8}")
        m, n, v, s = (array.astype(dtype) for array in (a, b, many, square))
        found[f"numpy{bits} product"] = digest([m @ n, m @ n[:, 0]])
        found[f"numpy{bits} exp, log, tanh, sin, power"] = digest(
            [np.exp(m), np.log(np.abs(m)), np.tanh(m), np.sin(m), np.abs(m) ** dtype.type(1.3)]
        )
        found[f"numpy{bits} sum"] = digest([v.sum(), m.sum(0), m.mean(1), v.std()])
        found[f"numpy{bits} svd, qr, eigh, solve"] = digest(
            [*np.linalg.svd(m), *np.linalg.qr(m), *np.linalg.eigh(s), np.linalg.solve(s, m)]
        )
        found[f"scipy{bits} qr, solve"] = digest([*scipy.linalg.qr(m), scipy.linalg.solve(s, m)])
    for threads in (1, 2):
        use_threads(threads)
        for bits in (32, 64):
            dtype = torch.float32 if bits == 32 else torch.float64
            m, n, v, s = (torch.from_numpy(array).to(dtype) for array in (a, b, many, square))

            def note(what: str, *results: Any, bits: int = bits, threads: int = threads) -> None:
                found[f"torch{bits} {what}, {threads} thread{'s' * (threads > 1)}"] = digest(results)

            note("product", m @ n, m @ n[:, 0], torch.bmm(m.expand(3, -1, -1), n.expand(3, -1, -1)))
            note("exp, sigmoid, tanh, erf", v.exp(), v.sigmoid(), v.tanh(), v.erf())
            note("log_softmax, logsigmoid", m.log_softmax(1), functional.logsigmoid(v))
            note("sum, norm, softmax", v.sum(), m.sum(0), m.norm(), m.norm(dim=1), m.softmax(1), m.std(0), m.cumsum(1))
            if bits == 32:
                note("sqrt, log, logsumexp", v.abs().sqrt(), v.abs().log(), m.logsumexp(1), v.abs().rsqrt())
            else:
                note("sqrt", sqrt(v.abs()))
            note("svd, qr", *torch.linalg.svd(m), *torch.linalg.qr(m))
            note("eigh, cholesky, solve", *torch.linalg.eigh(s), torch.linalg.cholesky(s), torch.linalg.solve(s, m))
            if bits == 64:  # in float32 some sizes, of which 123 is none, begin with the processor's own 1/x
                factors = [torch.linalg.cholesky(large[:size, :size].contiguous()) for size in (16, 200, 256, 300)]
                note("cholesky, inverse", *factors, *map(torch.cholesky_inverse, factors))
            note("fft", torch.view_as_real(torch.fft.fft2(m)))
            x, w = (torch.from_numpy(array).to(dtype).requires_grad_() for array in (picture, filters))
            y = functional.conv2d(x, w, stride=2, padding=2)
            y.square().sum().backward()
            last = x.detach().to(memory_format=torch.channels_last)
            note("convolution", y, x.grad, w.grad, functional.conv2d(last, w))
            note("batch norm", functional.batch_norm(y, None, None, training=True))
            cell = [torch.from_numpy(array).to(dtype) for array in weights.values()]
            start = torch.zeros(1, 4, 7, dtype=dtype)
            note(
                "gru", *torch.gru(torch.from_numpy(sequences).to(dtype), start, cell, True, 1, 0.0, False, False, True)
            )
    return found


def pipeline(folder: Path) -> dict[str, str]:
    """The digest of every artefact that the tiny stages leave."""
    import brittle.pictures.fetch
    from brittle.tools.graph import stages
    from tiny import TINY, few_pictures, set_params

    shutil.copy(Path(__file__).parents[1] / "params.yaml", folder)
    set_params(folder / "params.yaml", TINY | {"d": 12, "width": 30, "seeds": [0, 1]})
    brittle.pictures.fetch.obtain = few_pictures
    before, arguments = Path.cwd(), sys.argv
    modules = {name: stage.module for name, stage in stages().items()}
    os.chdir(folder)
    try:
        for stage in STAGES.replace("\n", ",").split(","):
            if stage.strip():
                name, *cell = stage.split()
                sys.argv = [name, *cell]
                runpy.run_module(modules[name], run_name="__main__")
    finally:
        os.chdir(before)
        sys.argv = arguments
    made = (path for part in ("data", "models", "plots", "metrics") for path in sorted((folder / part).rglob("*.*")))
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()[:16] for path in made}


def computed() -> dict[str, str]:
    with tempfile.TemporaryDirectory() as folder:
        return operations() | pipeline(Path(folder))


def processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "this processor")


def differences(name: str, found: dict[str, str], expected: dict[str, str]) -> list[str]:
    """A line an operation or artefact: which processor, what, and both digests."""
    return [
        f"{name}: {what}: {found.get(what, 'missing')}, not {expected.get(what, 'known')}"
        for what in dict.fromkeys([*expected, *found])
        if found.get(what) != expected.get(what)
    ]


def compare(write: bool) -> int:
    """Run here and under the emulator, side by side with what is committed; 0 if all agree."""
    if shutil.which("qemu-x86_64") is None:
        print("make portable needs qemu-user (Debian: apt-get install qemu-user)", file=sys.stderr)
        return 2
    own = [sys.executable, __file__]
    runs = {processor(): own} | {f"{cpu} (qemu)": ["qemu-x86_64", "-cpu", cpu, *own] for cpu in EMULATED}
    results = {}
    for name, command in runs.items():
        print(f"{name} ...", flush=True)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{name}: exit code {done.returncode}: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
            return 1
        results[name] = json.loads(done.stdout)
    if write:
        COMMITTED.write_text(json.dumps(results[processor()], indent=1) + "\n")
    expected = json.loads(COMMITTED.read_text())
    wrong = [line for name, found in results.items() for line in differences(name, found, expected)]
    print("\n".join(wrong) or f"{len(expected)} digests agree on {len(results)} processors: {', '.join(results)}")
    return int(bool(wrong))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--emulate", action="store_true", help="also on processors that qemu emulates, and compare all")
    parser.add_argument(
        "--write", action="store_true", help="with --emulate: what is computed here is what is expected"
    )
    chosen = parser.parse_args()
    if chosen.emulate or chosen.write:
        sys.exit(compare(chosen.write))
    print(json.dumps(computed(), indent=1))
