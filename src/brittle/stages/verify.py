"""`python -m brittle.stages.verify`: whether data and models are still what dvc.lock says, byte for byte.

DVC takes a file of its cache for whole if it is read-only, and one that it has checked out for what it should be. So a
disk that lost a bit, or a remote that someone has changed, is noticed only here, where everything is hashed again.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError


def main() -> int:
    """0 if everything is as it should be; otherwise a line for each file that is not, with what to do."""
    done = subprocess.run(["dvc", "cache", "dir"], capture_output=True, text=True)
    if done.returncode:
        print(done.stderr.strip(), file=sys.stderr)
        return done.returncode
    cache = Path(done.stdout.strip()) / "files/md5"
    wrong = [*_half_written(), *_cached(cache), *_checked_out(cache)]
    for line in wrong:
        print(line, file=sys.stderr)
    if not wrong:
        print("data, models and the cache are what dvc.lock says")
    return 1 if wrong else 0


def _half_written() -> Iterator[str]:
    """What DVC writes in place, and a kill may have cut short."""
    if Path("dvc.lock").exists() and not _outputs():
        yield "dvc.lock: is cut short; run `git checkout dvc.lock` and `dvc repro`"
    rwlock, index = Path(".dvc/tmp/rwlock"), Path(".git/index.lock")
    try:
        json.loads(rwlock.read_text() if rwlock.exists() else "{}")
    except ValueError:
        yield f"{rwlock}: is cut short; remove it, if no other DVC runs here"
    if index.exists():
        yield f"{index}: was left behind; remove it, if no Git runs here"


def _cached(cache: Path) -> Iterator[str]:
    """Objects whose md5 is not their name."""
    for path in sorted(cache.glob("??/*")):
        name = path.parent.name + path.name.removesuffix(".dir")
        # The rest are temporary files of DVC's, which nothing refers to.
        if len(name) == 32 and _md5(path) != name:
            yield f"{_short(path)}: is not what was stored; remove it and run `dvc repro`, or `dvc pull`"
        elif path.suffix == ".dir" and (outside := [each for each in _listed(path) if _escapes(each)]):
            yield f"{_short(path)}: lists {outside[0]}, outside of its folder: the storage is not to be trusted"


def _checked_out(cache: Path) -> Iterator[str]:
    """Outputs that are here, but not as dvc.lock has them."""
    files: dict[Path, str] = {}
    for path, md5 in _outputs().items():
        listing = cache / md5[:2] / md5[2:]  # of a folder: a name that ends in .dir
        if not md5.endswith(".dir"):
            files[path] = md5
        elif listing.exists() and _md5(listing) == md5.removesuffix(".dir"):
            files |= {path / name: md5 for name, md5 in _listed(listing).items()}
    for path, md5 in files.items():
        if path.is_file() and _md5(path) != md5:
            yield f"{path}: is not what dvc.lock says; remove it and run `dvc repro`, or `dvc pull`"


def _listed(listing: Path) -> dict[str, str]:
    """Names in a folder, with their md5."""
    try:
        return {each["relpath"]: each["md5"] for each in json.loads(listing.read_text("utf-8"))}
    except (ValueError, KeyError, TypeError):
        return {}


def _escapes(name: str) -> bool:
    return Path(name).is_absolute() or ".." in Path(name).parts


def _outputs() -> dict[Path, str]:
    try:
        stages = YAML(typ="safe", pure=True).load(Path("dvc.lock").read_text("utf-8"))["stages"]
        outs = [out for stage in stages.values() for out in stage["outs"]]
        return {Path(out["path"]): out["md5"] for out in outs}
    except (OSError, ValueError, YAMLError, KeyError, TypeError, AttributeError):
        return {}


def _md5(path: Path) -> str:
    return hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()


def _short(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


if __name__ == "__main__":
    sys.exit(main())
