"""Put everything that the other stages found on one page, plots/report.html, that can be read offline."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from brittle.core import store
from brittle.core.errors import BadInput
from brittle.core.params import TopLevel
from brittle.core.stage import run
from brittle.report import across, captions, drawn_from, markdown, play
from brittle.report.page import Figure, Page, Section, Sheet, render
from brittle.verdicts import SETS

CLAIMS = ["id", "verdict", "by", "says", "paper", "premise", "rule", "source", "rests_on"]
CLAIMS += [f"{name}_{key}" for name in SETS for key in ("verdict", "measured", "decided_by", "missing", "scale")]
METRICS = [f"metrics/{name}.json" for name in ("margin", "slabs", "sparse", "mnist_cifar", "cifar10", "cross")]
SLIDER, CROSSINGS = "margin_flipped", "plots/margin_crossings.csv"  # the figure that has one, and what it shows
PACKAGES = ["dvc", "jinja2", "matplotlib", "numpy", "pandas", "safetensors", "scikit-learn", "scipy"]
PACKAGES += ["torch", "torchvision"]


def main(params: TopLevel) -> None:
    figures = {caption.name: _figure(caption) for caption in captions.FIGURES}
    tables = {caption.name: _table(caption) for caption in captions.TABLES}
    claims = store.load_table("plots/claims.csv", ["question"], text=CLAIMS)
    claims = claims[["question", *CLAIMS]].astype(object).fillna("")
    page = Page(
        claims=claims.to_dict("records"),
        across=across.section({path: _rows(path, sheet) for path, sheet in across.SHEETS.items()}, figures),
        sections=[
            Section(
                chapter.id,
                chapter.title,
                chapter.words,
                [figures[caption.name] for caption in captions.FIGURES if caption.section == chapter.id],
                [tables[caption.name] for caption in captions.TABLES if caption.section == chapter.id],
            )
            for chapter in captions.CHAPTERS
        ],
        params=Path("params.yaml").read_text(encoding="utf-8"),
        versions=versions() | {"computed on": devices()},
        digests={path: hashlib.sha256(Path(path).read_bytes()).hexdigest()[:12] for path in inputs()},
    )
    store.save_bytes("plots/report.html", render(page).encode())


def versions() -> dict[str, str]:
    """The versions of brittle and of the packages in the lock file, which do not depend on what is installed."""
    (own,) = re.findall(r'^version = "(.+)"$', store.load_text("pyproject.toml"), re.MULTILINE)
    locked = dict(re.findall(r"^([\w.-]+)==(\S+)$", store.load_text("requirements.lock").lower(), re.MULTILINE))
    return {"brittle": own} | {name: locked[name] for name in PACKAGES}


def devices() -> str:
    """The devices that networks were trained and measured on, which is what `device: auto` meant."""
    found = {path: store.load_metrics(path).get("device", "the CPU") for path in METRICS}
    if len(set(found.values())) == 1:
        return str(found[METRICS[0]])
    return "; ".join(f"{Path(path).stem}: {device}" for path, device in found.items())


def inputs() -> list[str]:
    """Every file that the page is made from."""
    drawn = [f"plots/{caption.name}.svg" for caption in captions.FIGURES]
    tables = [f"plots/{caption.name}.md" for caption in captions.TABLES]
    made_by = ["params.yaml", "pyproject.toml", "requirements.lock"]
    data = {str(part) for tables in drawn_from.TABLES.values() for each in tables for part in drawn_from.files(each)}
    return sorted({*made_by, "plots/claims.csv", *METRICS, *across.SHEETS, *drawn, *tables, *data})


def _figure(caption: captions.Caption) -> Figure:
    return Figure(
        caption.name,
        caption.title,
        caption.words,
        caption.stage,
        store.load_text(f"plots/{caption.name}.svg"),
        drawn_from.data(caption.name),
        _slider() if caption.name == SLIDER else "",
    )


def _slider() -> str:
    crossings = store.load_table(CROSSINGS, ["seed", "sample", "c", "flips"], text=["direction"])
    samples = store.load_table("plots/margin_samples.csv", ["seed", "on_margin"])
    sizes = store.load_table("plots/margin_flipped.csv", ["size"])["size"]
    return play.data(crossings, samples, float(sizes.max()))


def _table(caption: captions.Caption) -> Sheet:
    text = store.load_text(path := f"plots/{caption.name}.md")
    try:
        return markdown.sheet(caption.name, caption.title, caption.stage, text)
    except ValueError:
        raise BadInput(f"{path}: is not a table; remove it and run `dvc repro`") from None


def _rows(path: str, sheet: Sheet) -> list[dict]:
    numbers = [column.key for column in sheet.columns if column.form != "text"]
    text = [column.key for column in sheet.columns if column.form == "text"]
    return store.load_table(path, numbers, text=text).to_dict("records")


if __name__ == "__main__":
    run(main, TopLevel)
