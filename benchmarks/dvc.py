"""The cost of DVC itself: the pipeline as it is and as it was in one file, with stages that compute nothing.

    python benchmarks/dvc.py           # some 2 minutes
    python benchmarks/dvc.py --tiny    # 20 seconds, few stages: whether it runs, not what it costs

Two layouts, each in its own Git and DVC repository in a temporary folder: `now` is this checkout's, with a dvc.yaml
for each chapter; `before` is that of the last commit with one dvc.yaml of 3,300 lines (left out if the clone is too
shallow to contain it). Stages, parameters and paths are the real ones, but source files are stubs of one line, and
every command is a shell script that writes a line into each output of its stage. What remains is DVC: it parses the
pipeline, hashes, compares, starts a shell and writes dvc.lock after every stage. Four commands are measured in turn:

    dvc repro --force        all stages, from nothing; the cost is for one stage
    dvc status               with nothing to report
    dvc repro                with nothing to do
    dvc exp run -S d=500     the headline experiment, and the stages that depend on it

The cost is the CPU seconds (user and system) of DVC and the processes it starts, which other load on the machine hardly
changes. The bar: a stage costs at most a second.
"""

from __future__ import annotations

import io
import os
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from bars import bar
from command import Command, stoppable

ROOT = Path(__file__).resolve().parents[1]
COMMIT = "b72fa31"  # the last one with all stages in one file
SECONDS = 1.0  # the bar
# What stages need and no stage makes.
SOURCES = ("src", "docs", "evidence", "plugins", "pyproject.toml", "requirements.lock")
TINY = ("params", "margin_", "sparse_")  # prefixes of the stages in the tiny run
# What the stub writes depends on d, so that stages downstream of one that ran for another d run, too. The exception is
# params.checked, which never changes.
STUB = """d=$(grep '^d:' params.yaml)
for out; do
    [ -d "${out%/*}" ] || mkdir -p "${out%/*}"
    case $out in *.checked) echo "$out" ;; *) echo "$out $d" ;; esac > "$out"
done
"""
CONFIG = "[core]\n    analytics = false\n    autostage = false\n    check_update = false\n"


@dataclass(frozen=True)
class Layout:
    name: str
    params: str
    pipelines: dict[str, str]  # the text of each dvc.yaml by its path
    sources: list[str]


def git(*arguments: str, folder: Path = ROOT) -> str:
    done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"git {' '.join(arguments)}: {done.stderr}")
    return done.stdout


def now() -> Layout:
    files = [ROOT / "dvc.yaml", *sorted(ROOT.glob("pipelines/*/dvc.yaml"))]
    listed = git("ls-files", "--cached", "--others", "--exclude-standard", *SOURCES)
    pipelines = {str(file.relative_to(ROOT)): file.read_text() for file in files}
    return Layout("now", (ROOT / "params.yaml").read_text(), pipelines, listed.splitlines())


def before() -> Layout | None:
    if subprocess.run(["git", "cat-file", "-e", f"{COMMIT}^{{commit}}"], cwd=ROOT, capture_output=True).returncode:
        return None
    params, pipeline = (git("show", f"{COMMIT}:{name}") for name in ("params.yaml", "dvc.yaml"))
    listed = git("ls-tree", "-r", "--name-only", COMMIT, *SOURCES)
    return Layout("before", params, {"dvc.yaml": pipeline}, listed.splitlines())


def stubbed(stage: dict[str, Any], worlds: list[str]) -> str:
    """The command that makes the stage's outputs. A folder gets a file for each world, which other stages read."""
    listed = (out for kind in ("outs", "metrics", "plots") for out in stage.get(kind, ()))
    outs = [out if isinstance(out, str) else next(iter(out)) for out in listed]
    names = {out: [""] if Path(out).suffix else [f"/{world}.safetensors" for world in worlds] for out in outs}
    return " ".join(["sh stub.sh", *(out + name for out in outs for name in names[out])])


def build(layout: Layout, folder: Path, tiny: bool) -> None:
    """Create the layout's repository, in which no stage has run."""
    yaml = YAML()  # keeps the style of what it reads, so that DVC parses files of the same length
    yaml.width = 4096
    worlds = yaml.load(layout.params)["cross"]["worlds"]
    texts = {name: name for name in layout.sources}
    texts |= {"params.yaml": layout.params, "stub.sh": STUB, ".dvcignore": "__pycache__/\n"}
    texts |= {".dvc/config": CONFIG, ".dvc/.gitignore": "/config.local\n/tmp\n/cache\n"}
    for name, text in layout.pipelines.items():
        content = yaml.load(text)
        kept = {key: stage for key, stage in content["stages"].items() if not tiny or key.startswith(TINY)}
        for stage in kept.values():
            stage["cmd"] = stubbed(stage, worlds)
            # Also modules that are missing from the checkout, as in the middle of a change: the cost is the same.
            texts |= {dep: dep for dep in stage["deps"] if dep.startswith("src/") and dep.endswith(".py")}
        if kept:
            stream = io.StringIO()
            yaml.dump(content | {"stages": kept}, stream)
            texts[name] = stream.getvalue()
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git("init", "--quiet", folder=folder)
    for key, value in {"user.name": "nobody", "user.email": "nobody@localhost", "commit.gpgsign": "false"}.items():
        git("config", key, value, folder=folder)


def cost(folder: Path, *arguments: str) -> tuple[float, int]:
    """CPU seconds of a DVC command and its child processes, and how many stages it has run."""
    command = [sys.executable, "-m", "dvc", *arguments]
    environment = os.environ | {"DVC_SITE_CACHE_DIR": str(folder.parent / "site")}  # otherwise left in /var/tmp
    start = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"dvc {' '.join(arguments)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    ran = sum(line.startswith("Running stage") for line in done.stdout.splitlines())
    return end.ru_utime - start.ru_utime + end.ru_stime - start.ru_stime, ran


def measure(layout: Layout, tiny: bool) -> dict[str, float]:
    """The cost of each command in the layout."""
    every = ["--all-pipelines"] if tiny else []  # without the report, nothing at the root needs the chapters' stages
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "repository"
        build(layout, folder, tiny)
        total, ran = cost(folder, "repro", "--force", *every)
        status, _ = cost(folder, "status")
        idle, again = cost(folder, "repro", *every)
        if again or not ran:
            raise SystemExit(f"{layout.name}: {ran} stages ran, and then {again} that had nothing to do")
        git("add", "--all", folder=folder)
        git("commit", "--quiet", "--message", "all stages have run", folder=folder)
        experiment, some = cost(folder, "exp", "run", "-S", "d=500")
    print(f"{layout.name}: {ran} stages ran, and {some} of them for another d", flush=True)
    return {"repro --force, a stage": total / ran, "status": status, "repro": idle, "exp run -S d=500": experiment}


def main(tiny: bool) -> None:
    costs = measure(now(), tiny)
    old = before()
    if old is None:
        print(f"There is no commit {COMMIT} in this clone: nothing to compare with.")
    compared = measure(old, tiny) if old else {}
    for i, (what, seconds) in enumerate(costs.items()):
        bar(f"{what}: now", seconds, at_most=None if i else SECONDS, unit="s")
        if what in compared:
            bar(f"{what}: before", compared[what], unit="s")
            bar(f"{what}: before / now", compared[what] / seconds)


if __name__ == "__main__":
    stoppable()
    try:
        main(Command(__doc__).parse_args().tiny)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        sys.exit(130)
