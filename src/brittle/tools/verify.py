"""`python -m brittle.tools.verify`: check that data and models are still what dvc.lock says, byte for byte.

DVC assumes that a read-only file in its cache is intact, and that a file it has checked out is unchanged. So a disk
error, or a remote that someone has changed, is noticed only here, where everything is hashed again.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError


def main() -> int:
    """Return 0 if everything is as it should be; otherwise print a line for each wrong file, with what to do."""
    found = cache()
    if found is None:
        return 1
    wrong = [*_half_written(), *_cached(found), *_checked_out(found)]
    for line in wrong:
        print(line, file=sys.stderr)
    if not wrong:
        print("data, models and the cache are what dvc.lock says")
    return 1 if wrong else 0


def cache() -> Path | None:
    """The folder of DVC's cache that holds files by their md5; None, after DVC has said why, outside of a project."""
    done = subprocess.run([sys.executable, "-m", "dvc", "cache", "dir"], capture_output=True, text=True)
    if done.returncode:
        print(done.stderr.strip(), file=sys.stderr)
        return None
    return Path(done.stdout.strip()) / "files/md5"


def _half_written() -> Iterator[str]:
    """Files that DVC writes in place and that a killed process may have left incomplete."""
    for lock in _locks():
        if not lock.exists():
            yield f"{lock}: is missing; run `git checkout {lock}`, or `dvc repro`"
        elif _outputs(lock) is None:
            yield f"{lock}: is cut short; run `git checkout {lock}` and `dvc repro`"
    rwlock, index = Path(".dvc/tmp/rwlock"), Path(".git/index.lock")
    try:
        json.loads(rwlock.read_text() if rwlock.exists() else "{}")
    except ValueError:
        yield f"{rwlock}: is cut short; remove it, if no other DVC runs here"
    if index.exists():
        yield f"{index}: was left behind; remove it, if no Git runs here"


def _cached(cache: Path) -> Iterator[str]:
    """A line for each object in the cache that must not be used."""
    return (why for _, why in refused(cache))


def refused(cache: Path) -> Iterator[tuple[Path, str]]:
    """Objects in the cache whose md5 is not their name, and lists of folders with paths outside; and what is wrong."""
    for path in sorted(cache.glob("??/*")):
        name = path.parent.name + path.name.removesuffix(".dir")
        # Other files are temporary files of DVC, which nothing refers to.
        if len(name) == 32 and _md5(path) != name:
            yield path, f"{_short(path)}: is not what was stored; remove it and run `dvc repro`, or `dvc pull`"
        elif path.suffix == ".dir" and (why := hostile(path.read_bytes())):
            yield path, f"{_short(path)}: {why}"
    for path in sorted(cache.parents[1].glob("??/*.dir")):  # where DVC keeps what DVC 2 has locked
        if why := hostile(path.read_bytes()):
            yield path, f"{_short(path)}: {why}"


def hostile(listing: bytes) -> str:
    """Why the list of a folder must not be used; empty if it may be."""
    try:
        found = json.loads(listing.decode())
        names = [each["relpath"] for each in (found if isinstance(found, list) else [None])]
        outside = [name for name in names if Path(name).is_absolute() or ".." in Path(name).parts]
    except (ValueError, KeyError, TypeError):
        return "is not a list of files: the storage is not to be trusted"
    return f"lists {outside[0]}, outside of its folder: the storage is not to be trusted" if outside else ""


def _checked_out(cache: Path) -> Iterator[str]:
    """Outputs in the workspace that are not what dvc.lock says."""
    files: dict[Path, str] = {}
    for path, md5 in (found for lock in _locks() for found in (_outputs(lock) or {}).items()):
        listing = cache / md5[:2] / md5[2:]  # for a folder: its name ends in .dir
        if not md5.endswith(".dir"):
            files[path] = md5
        elif listing.exists() and _md5(listing) == md5.removesuffix(".dir"):
            files |= {path / name: md5 for name, md5 in _listed(listing).items()}
    for path, md5 in files.items():
        if path.is_file() and _md5(path) != md5:
            yield f"{path}: is not what dvc.lock says; remove it and run `dvc repro`, or `dvc pull`"


def _listed(listing: Path) -> dict[str, str]:
    """The names in a folder with their md5."""
    try:
        return {each["relpath"]: each["md5"] for each in json.loads(listing.read_text("utf-8"))}
    except (ValueError, KeyError, TypeError):
        return {}


def _locks() -> list[Path]:
    return [path.with_name("dvc.lock") for path in (Path("dvc.yaml"), *sorted(Path().glob("pipelines/*/dvc.yaml")))]


def _outputs(lock: Path) -> dict[Path, str] | None:
    """What a lock file says of its stages' outputs; None if it is cut short, in the middle of a stage or elsewhere."""
    try:
        definitions = _stages(lock.with_name("dvc.yaml"))
        stages = _stages(lock)
        making = {name for name, each in definitions.items() if {"outs", "metrics", "plots"} & each.keys()}
        if any(name.partition("@")[0] in making and "outs" not in entry for name, entry in stages.items()):
            return None
        outs = [out for entry in stages.values() for out in entry.get("outs", [])]
        return {Path(out["path"]): out["md5"] for out in outs}
    except (OSError, ValueError, YAMLError, KeyError, TypeError, AttributeError):
        return None


def _stages(file: Path) -> dict[str, dict[str, Any]]:
    return YAML(typ="safe", pure=True).load(file.read_text("utf-8"))["stages"]


def _md5(path: Path) -> str:
    return hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()


def _short(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


if __name__ == "__main__":
    sys.exit(main())
