"""The page: everything that was found is on it, nothing on it can run or load anything, and it is always the same."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pandas as pd
import pytest

from brittle.core.errors import BadInput
from brittle.core.params import TopLevel, load
from brittle.report import across, build, captions, drawn_from, markdown, play
from brittle.report.page import Column, Figure, Page, Section, Sheet, in_order, render, unbroken
from brittle.tools.graph import stages
from conftest import ROOT

STAGES = stages()
MADE_UP = ("cross_vectors", "cross_remedies")  # figures
HOSTILE = "<script>alert(1)</script>\"'&<img src=x onerror=alert(1)>"
SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 300 120"><rect width="300" height="120" fill="#eee"/></svg>\n'
)
# Along z most samples flip, one of them back again; along the random direction two do.
CROSSINGS = pd.DataFrame(
    [(0, "z", i, 0.5 + i / 7, 1) for i in range(20)]
    + [(0, "z", 3, 3.25, 0), (1, "z", 3, 1.75, 1)]
    + [(0, "random", 1, 2.5, 1), (1, "random", 4, 9.5, 1), (1, "random", 5, 99.0, 1)],
    columns=["seed", "direction", "sample", "c", "flips"],
)
WORLDS = ["sphere", "lms-5", "ms-5-7", "sparse", "mnist-cifar"]


def make_inputs(folder: Path, committed: Path) -> None:
    """What the stage reads: figures, tables and claims as Git has them, and small made-up sheets."""
    for part in ("metrics", "plots"):
        (folder / part).mkdir(parents=True)
    for name in ("params.yaml", "pyproject.toml", "requirements.lock"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(committed / "evidence", folder / "evidence")
    for path in (path for path in build.inputs() if path.startswith(("metrics/", "plots/"))):
        if (committed / path).is_file():
            shutil.copy(committed / path, folder / path)
    CROSSINGS.to_csv(folder / "plots/margin_crossings.csv", index=False)
    for name in MADE_UP:
        (folder / f"plots/{name}.svg").write_text(SVG)
    tables = {"vectors": vectors(), "probes": probes(), "remedies": remedies(), "attacks": attacks()}
    for name, table in tables.items():
        table.to_csv(folder / f"plots/cross_{name}.csv", index=False)


def remedies() -> pd.DataFrame:
    rows = []
    for i, world in enumerate(WORLDS):
        for j, remedy in enumerate(["nothing", "adversarial", "noise", HOSTILE]):
            numbers = {"accuracy": 1 - 0.01 * j, "robust": 0.1 + 0.2 * j, "certified": 0.1 * j if i < 2 else None}
            numbers |= {"radius": 0.25 * (i + 1), "reliance": 1 / (j + 1), "best": 0.95 if i else None}
            numbers |= {"gap": 0.85 - 0.2 * j if i else None, "cost": [1, 11, 2, 100][j], "spread": 0.01 * j}
            numbers |= {"off_span": 10.0 + j if world == "mnist-cifar" else None}
            rows.append({"world": world, "net": "fcn-100-1", "remedy": remedy, "yours": j // 3, "seeds": 2, **numbers})
    return pd.DataFrame(rows)


def attacks() -> pd.DataFrame:
    rows = [(world, attack, i / 10) for world in WORLDS for i, attack in enumerate(["pgd", "nearest"])]
    table = pd.DataFrame(rows, columns=["world", "attack", "kept"])
    return table.assign(net="fcn-100-1", remedy="nothing", yours=0)


def probes() -> pd.DataFrame:
    names = [column.key for column in across.PROBES.columns if column.is_number]
    rows = []
    for i, world in enumerate(WORLDS):
        for training in ("nothing", "adversarial"):
            numbers = {name: None if (i + k) % 4 == 0 else 0.1 * k + 0.01 * i for k, name in enumerate(names)}
            about = {"world": world, "net": "fcn-100-1", "simple": "the linear coordinate", "training": training}
            rows.append(about | numbers)
    return pd.DataFrame(rows).assign(kkt=None)  # a probe that is defined nowhere


def vectors() -> pd.DataFrame:
    return pd.DataFrame(
        {"world": world, "vector": vector, "needs": needs, "cosine": -0.123, "half": half, "uap_half": 0.5}
        | {"random_half": float("inf"), "net": "fcn-100-1"}
        for world in WORLDS
        for vector, needs, half in [("Σ yᵢxᵢ", "data", 0.75), ("mean gradient", "data and network", None)]
    )


def claim(id: str, **changes: Any) -> dict[str, Any]:
    columns = dict.fromkeys(build.CLAIMS, "words") | {"verdict": "reproduced", "source": "VYS Thm 1", "id": id}
    columns |= {"question": 0, "by": "run", "run_verdict": "reproduced", "evidence_verdict": "not run"}
    return columns | changes


def page(claims: list[dict[str, Any]] | None = None, sheet: Sheet | None = None, **changes: Any) -> str:
    """A small page."""
    sheets = [sheet] if sheet else []
    parts = {"claims": claims or [claim("M1")], "across": Section("across", "Across", "words", sheets=sheets)}
    parts |= {"sections": [], "params": "d: 100\n", "versions": {"numpy": "2"}, "digests": {"plots/a.svg": "0" * 12}}
    return render(Page(**(parts | changes)))


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory, committed: Path) -> str:
    folder = tmp_path_factory.mktemp("report")
    make_inputs(folder, committed)
    return written(folder)


def written(folder: Path) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        build.main(load(TopLevel))
        return Path("plots/report.html").read_text(encoding="utf-8")


class Document(HTMLParser):
    """Elements in order, with their attributes; fails where an element is not closed by its own end."""

    VOID = frozenset({"meta", "link", "img"})

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.path: list[str] = []
        self.feed(html)
        self.close()
        assert self.path == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), f"<{tag}> has an attribute twice"
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.path.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.path.pop() == tag, f"</{tag}> closes another element"

    def all(self, tag: str) -> Iterator[dict[str, str | None]]:
        return (attributes for name, attributes in self.elements if name == tag)


def test_the_page_is_well_formed_and_its_anchors_lead_somewhere(html: str) -> None:
    document = Document(html)
    ids = [attributes["id"] for _, attributes in document.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = {attributes["href"] for attributes in document.all("a") if "download" not in attributes}
    assert {link.removeprefix("#") for link in links} <= set(ids)


def test_everything_is_on_the_page(html: str, committed: Path) -> None:
    document = Document(html)
    shown = {attributes.get("id") for _, attributes in document.elements}
    assert {caption.name for caption in captions.FIGURES + captions.TABLES} <= shown
    assert set(pd.read_csv(committed / "plots/claims.csv")["id"]) <= shown
    assert {"vectors", "probes", "remedies"} <= shown
    for caption in captions.FIGURES + captions.TABLES:
        assert f"<code>dvc repro {caption.stage}</code>" in html
    for path in build.inputs():
        assert f"<td><code>{path}</code></td>" in html


def test_the_tables_behind_a_figure_are_those_that_its_stage_reads(html: str) -> None:
    links = [a for a in Document(html).all("a") if "download" in a]
    assert len(links) == sum(bool(drawn_from.files(each)) for tables in drawn_from.TABLES.values() for each in tables)
    for caption in captions.FIGURES:
        stage = STAGES[caption.stage.rpartition(":")[2]]
        known = {*stage.inputs, *(table.removesuffix(".csv") for table in stage.inputs), *stage.outputs}
        drawn = set(drawn_from.TABLES[caption.name]) - {build.CROSSINGS}
        if "evidence" in stage.inputs:  # the whole folder
            drawn = {table for table in drawn if not table.startswith("evidence/")}
        assert drawn <= known, caption.name
    (kkt,) = (a["href"] for a in links if a["download"] == "kkt.csv")
    assert unquote(kkt.partition(",")[2]) == (ROOT / "plots/kkt.csv").read_text()


def test_the_slider_has_every_crossing_up_to_the_end_of_the_figure_and_none_beyond() -> None:
    samples = pd.DataFrame({"seed": [0, 0, 0, 1, 1], "on_margin": [1, 0, 1, 1, 1]})
    rows = [(1, "z", 1, 2.0, 1), (0, "z", 0, 1.0, 1), (0, "z", 0, 3.0, 0), (0, "random", 1, 4.5, 1)]
    crossings = pd.DataFrame(rows, columns=["seed", "direction", "sample", "c", "flips"])
    found = json.loads(play.data(crossings, samples, 4.0))
    assert found == {"of": 4, "most": 4.0, "z": [[0, 1.0, 1], [3, 2.0, 1], [0, 3.0, 0]], "random": []}


def test_nothing_is_loaded_from_elsewhere(html: str) -> None:
    for tag, attributes in Document(html).elements:
        for name, value in attributes.items():
            if name in ("src", "href", "srcset", "action", "data", "poster", "background", "ping"):
                assert value.startswith(("#", "data:image/svg+xml,", "data:,", "data:text/csv;")), (
                    f"<{tag} {name}={value[:80]}>"
                )
    style = re.search(r"<style>(.*?)</style>", html, re.DOTALL)[1]
    assert "url(" not in style
    assert "@import" not in style
    assert "default-src 'none'" in html
    # Nor does a figure name anything outside itself.
    for attributes in Document(html).all("img"):
        assert re.findall(r"url\((?!%23)|href=%22(?!%23|data:)", attributes["src"]) == []


@pytest.mark.parametrize("where", ["claim", "cell", "verdict", "filter", "params", "file", "figure", "markdown"])
def test_what_comes_from_a_file_is_escaped(where: str) -> None:
    columns, rows = [Column("world", "World"), Column("remedy", "Remedy")], [{"world": "w", "remedy": "r"}]
    text = {
        "claim": lambda: page([claim("M1", says=HOSTILE, paper=HOSTILE, rests_on=HOSTILE, scale=HOSTILE)]),
        "verdict": lambda: page([claim(HOSTILE, verdict=HOSTILE)]),
        "cell": lambda: page(sheet=Sheet("X1", "t", "w", columns, [rows[0] | {"remedy": HOSTILE}])),
        "filter": lambda: page(sheet=Sheet("X1", "t", "w", columns, [rows[0] | {"world": HOSTILE}], filter="world")),
        "params": lambda: page(params=HOSTILE),
        "file": lambda: page(digests={HOSTILE: HOSTILE}),
        "figure": lambda: page(sections=[Section("s", "t", "w", [Figure("n", HOSTILE, HOSTILE, "s", SVG + HOSTILE)])]),
        "markdown": lambda: page(sheet=markdown.sheet("t", "t", "s", f"{HOSTILE}\n\n| a |\n| - |\n| {HOSTILE} |\n")),
    }[where]()
    document = Document(text)
    assert len(list(document.all("script"))) == 1
    assert len(list(document.all("img"))) == (where == "figure")
    assert [name for _, attributes in document.elements for name in attributes if name.startswith("on")] == []


def test_only_our_own_script_may_run(html: str) -> None:
    script = re.search(r"<script>(.*?)</script>", html, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = next(attributes["content"] for attributes in Document(html).all("meta") if "http-equiv" in attributes)
    assert f"script-src 'sha256-{digest}'" in policy


def test_the_same_inputs_give_the_same_bytes_wherever_they_are(html: str, tmp_path: Path, committed: Path) -> None:
    make_inputs(tmp_path / "elsewhere", committed)
    again = written(tmp_path / "elsewhere")
    assert again == html
    assert str(tmp_path) not in again
    assert str(ROOT) not in again


def test_another_parameter_or_figure_gives_another_page(html: str, tmp_path: Path, committed: Path) -> None:
    make_inputs(tmp_path / "other", committed)
    (tmp_path / "other/plots/kkt.svg").write_text(SVG)
    assert written(tmp_path / "other") != html


def test_the_page_says_which_device_computed_each_chapter(html: str, tmp_path: Path, committed: Path) -> None:
    assert "<td>computed on</td><td><code>the CPU</code></td>" in html
    make_inputs(tmp_path / "gpu", committed)
    slabs = tmp_path / "gpu/metrics/slabs.json"
    slabs.write_text(json.dumps(json.loads(slabs.read_text()) | {"device": "cuda, Some GPU"}) + "\n")
    shown = written(tmp_path / "gpu")
    assert "margin: the CPU; slabs: cuda, Some GPU; sparse: the CPU" in shown


def test_claims_are_in_order_and_counted() -> None:
    ids = ["P1", "M10", "S2", "M2", "X1", "S10", "M1"]
    assert [c["id"] for c in in_order([claim(id) for id in ids])] == ["M1", "M2", "M10", "S2", "S10", "P1", "X1"]
    text = page([claim("M10"), claim("M2", verdict="differs"), claim("M1")])
    assert text.index('id="M2"') < text.index('id="M10"')
    assert "<strong>2</strong> <span>✓ reproduced</span>" in text
    assert "<strong>1</strong> <span>≠ differs</span>" in text
    assert "<strong>3</strong> <span>claims of the papers</span>" in text


def test_questions_are_counted_apart_and_both_scales_are_shown() -> None:
    text = page([claim("M1", evidence_verdict="differs", verdict="differs", by="evidence"), claim("M13", question=1)])
    assert "<strong>1</strong> <span>claims of the papers</span>" in text
    assert "<strong>1</strong> <span>open questions, explored</span>" in text
    assert "1 of these verdicts rest on evidence" in text
    assert text.count("the two scales disagree</p>") == 1


def test_numbers_are_written_as_their_column_says_and_absent_ones_as_a_dash() -> None:
    shown = Column("a", "A", form=".3g").shown
    assert [shown(v) for v in (0.12345, -2.0, float("inf"), float("nan"), None)] == ["0.123", "−2", "∞", None, None]
    assert [Column("a", "A", form="mark").shown(v) for v in (1, 0)] == ["✓", ""]
    text = page(sheet=Sheet("X1", "t", "w", [Column("a", "A", form=".2f")], [{"a": float("nan")}]))
    assert 'title="not defined here"' in text


def test_a_line_breaks_no_formula_and_loses_no_word() -> None:
    text = "c ≤ 0.05 (d = 50) for 92 % of d 50–200; at loss 1e-10, ‖z‖ ≤ 18√2·√(d/(c²m)) <b>"
    marked = unbroken(text)
    formulas = re.findall(r'<span class="formula">(.*?)</span>', marked)
    assert formulas == ["c ≤ 0.05", "(d = 50)", "92 %", "50–200;", "1e-10,"]
    assert marked.striptags() == text
    assert "<b>" not in marked


def test_a_markdown_table_becomes_a_sheet() -> None:
    sheet = markdown.sheet(
        "id", "Title", "stage", "What it is.\n\n| net | auc |\n| --- | --- |\n| a | 0.5 ± 0.1 |\n| | – |\n"
    )
    assert sheet.words == "What it is."
    assert [(column.title, column.is_number) for column in sheet.columns] == [("net", False), ("auc", True)]
    assert [list(row.values()) for row in sheet.rows] == [["a", "0.5 ± 0.1"], ["", "–"]]


@pytest.mark.parametrize("caption", captions.FIGURES + captions.TABLES, ids=lambda caption: caption.name)
def test_a_caption_names_the_stage_that_makes_its_figure(caption: captions.Caption) -> None:
    kind = "md" if caption in captions.TABLES else "svg"
    file, _, name = caption.stage.rpartition(":")
    assert f"plots/{caption.name}.{kind}" in STAGES[name].outputs
    assert STAGES[name].file == ROOT / (file or "dvc.yaml")


def test_every_figure_and_table_of_the_pipeline_has_a_caption() -> None:
    made = {path for stage in STAGES.values() for path in stage.outputs}
    for kind, known in (("svg", captions.FIGURES), ("md", captions.TABLES)):
        paths = {f"plots/{caption.name}.{kind}" for caption in known}
        assert {path for path in made if path.endswith(f".{kind}")} - paths == set()
        assert len(paths) == len(known)
    sections = {chapter.id for chapter in captions.CHAPTERS} | {"across"}
    assert {caption.section for caption in captions.FIGURES + captions.TABLES} <= sections


@pytest.mark.parametrize(
    "path", ["plots/claims.csv", "plots/cross_probes.csv", "plots/kkt.svg", "plots/slabs_table2.md"]
)
@pytest.mark.parametrize("spoil", ["missing", "cut short", "not text"])
def test_a_spoiled_input_is_said_in_one_line(path: str, spoil: str, tmp_path: Path, committed: Path) -> None:
    make_inputs(tmp_path / "spoiled", committed)
    file = tmp_path / "spoiled" / path
    content = file.read_bytes()
    file.unlink()
    if spoil == "cut short":
        file.write_bytes(content[: len(content) - 3])
    elif spoil == "not text":
        file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadInput) as error:
        written(tmp_path / "spoiled")
    assert str(error.value).startswith(f"{path}: ")
    assert len(str(error.value).splitlines()) == 1
    assert not (tmp_path / "spoiled/plots/report.html").exists()
