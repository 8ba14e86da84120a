"""`python -m brittle.tools.pull`: pull data and models; every list of a folder is checked before DVC uses it.

DVC (3.67.1) writes the files of an output that is a folder wherever the folder's list says, also to ../../src, and it
remembers a list that it has read once. So the lists that the outputs need are read here first, from the cache or the
storage; those that are in order go into the cache, where DVC finds them. Then `dvc pull` in two steps, with everything
in the cache hashed between them: fetch, check, check out. Words such as --run-cache are passed on to `dvc fetch`.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from brittle.core import store
from brittle.core.errors import BadInput
from brittle.tools import verify


def main(words: list[str]) -> int:
    """Return 0 if everything has arrived and is what dvc.lock says; else say what is wrong, and check nothing out."""
    cache = verify.cache()
    if cache is None:
        return 1
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("-r", "--remote")
    wrong = list(_lists(parser.parse_known_args(words)[0].remote))
    if not wrong:
        if _dvc("fetch", *words):
            return 1
        for path, why in verify.refused(cache):  # records of runs (--run-cache) bring lists, too
            path.unlink(missing_ok=True)
            wrong.append(f"{why} (it was removed from the cache)")
    for why in wrong:
        print(why, file=sys.stderr)
    if wrong:
        print("nothing was checked out", file=sys.stderr)
        return 1
    return _dvc("checkout") or verify.main()


def _lists(remote: str | None) -> Iterator[str]:
    """What is wrong with the lists of outputs that are folders. Those that are in order are put into the cache."""
    from dvc.exceptions import DvcException
    from dvc.repo import Repo

    try:
        with Repo() as repo:
            for out in (out for out in repo.index.outs if out.hash_info and out.hash_info.isdir):
                oid = out.hash_info.value
                here = Path(out.cache.oid_to_path(oid))
                if here.is_file():
                    content, where = here.read_bytes(), str(here)
                else:
                    storage = repo.cloud.get_remote_odb(out.remote or remote, "pull", out.hash_name)
                    where = storage.oid_to_path(oid)
                    content = storage.fs.cat_file(where)
                if hashlib.md5(content, usedforsecurity=False).hexdigest() != oid.removesuffix(".dir"):
                    yield f"{where}: is not the list of {out}: the storage is not to be trusted"
                elif why := verify.hostile(content):
                    yield f"{where}: {why}"
                elif not here.is_file():
                    store.save_bytes(here, content)
    except FileNotFoundError as missing:
        yield f"{missing.filename or missing}: is not in the storage; whoever made it runs `dvc push`"
    except (DvcException, OSError) as error:
        yield str(error).splitlines()[0]


def _dvc(*words: str) -> int:
    return subprocess.run([sys.executable, "-m", "dvc", *words]).returncode


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except BadInput as error:
        print(error, file=sys.stderr)
        sys.exit(2)
