"""The report: the content of the page as plain data, and how it becomes a single HTML file.

The page is self-contained: style, script and figures are in it, and its content security policy forbids the browser to
load anything else. All text from tables is escaped. The same data give the same bytes.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

from brittle.verdicts import LATER, disagree

Row = Mapping[str, Any]

# Each verdict has a symbol, so that it can be recognised without colour. The order here is also the order on the page.
VERDICTS = {
    "reproduced": "✓",
    "differs": "≠",
    "undecided": "~",
    "premise not met": "∅",
    "not run": "○",
    "explored": "?",
}
PAPERS = {
    "M": "VYS",
    "S": "SB",
    "P": "FP",
    **dict.fromkeys(LATER.letters, LATER.name),
    "X": "across",
}  # by the first letter of a claim's id, in the order of the page
TITLES = {
    "VYS": "Vardi, Yehudai, Shamir: Gradient Methods Provably Converge to Non-Robust Networks, 2022",
    "SB": "Shah and others: The Pitfalls of Simplicity Bias in Neural Networks, 2020",
    "across": "The three papers side by side: questions of our own",
    "FP": "Allen-Zhu, Li: Feature Purification: How Adversarial Training Performs Robust Deep Learning, 2021",
    LATER.name: "What came after the three papers: claims of later ones, each with its source",
}
# Where no line should break: a sign and its number (d = 50), a share (92 %), a range (50–200), an exponent (1e-9).
FORMULA = re.compile(
    r"(?<!\S)((?:\S{1,4} )?[=≤≥≈±×<>→] \S{1,10}(?: %)?(?!\S)|\S{1,10} %\S{0,2}(?!\S)|(?=\S{1,14}(?!\S))\S+[-–]\S+)"
)


@dataclass(frozen=True)
class Column:
    """A column of a sheet: the key of its values, its title, what it means, and how its values are written.

    `form` is `text`, `number` (text that looks like a number), `mark` (a tick where the value is not 0), or a
    format specification of Python for numbers, such as `.3f`.
    """

    key: str
    title: str
    words: str = ""
    form: str = "text"

    @property
    def is_number(self) -> bool:
        return self.form not in ("text", "mark")

    def shown(self, value: Any) -> str | None:
        """The value as shown on the page; None if there is none."""
        if value is None or value != value:
            return None
        if self.form == "mark":
            return "✓" if value else ""
        if self.form in ("text", "number"):
            return str(value)
        return format(value, self.form).replace("inf", "∞").replace("-", "−")


@dataclass(frozen=True)
class Figure:
    """A picture with its caption, and the stage that draws it."""

    name: str
    title: str
    words: str
    stage: str
    svg: str
    data: Mapping[str, str] = field(default_factory=dict)  # the tables that it is drawn from, as csv, by name
    play: str = ""  # what its slider needs, as json, if it has one

    @property
    def downloads(self) -> dict[str, str]:
        """The tables as data URIs, so that they come with the page wherever it goes."""
        return {name: "data:text/csv;charset=utf-8," + quote(text, safe=" ,.:;-") for name, text in self.data.items()}

    @property
    def uri(self) -> str:
        """The SVG as a data URI: as text, since Git cannot compress base64; without the header, which has a link."""
        drawing = self.svg[self.svg.find("<svg") :]
        return "data:image/svg+xml," + quote(re.sub(r"\s+", " ", drawing), safe=" !$()*+,-./:;=?@[]^_`{|}~")

    @property
    def size(self) -> tuple[int, int] | None:
        """Width and height in pixels, so that the page does not jump when the figure appears."""
        box = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', self.svg[:2000])
        return (round(float(box[1]) * 4 / 3), round(float(box[2]) * 4 / 3)) if box else None


@dataclass(frozen=True)
class Sheet:
    """A table, with a figure above it if there is one."""

    id: str
    title: str
    words: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    figure: Figure | None = None
    stage: str = ""
    filter: str = ""  # the key of a column; the page has a button for each of its values
    sortable: bool = True

    @property
    def choices(self) -> list[str]:
        return list(dict.fromkeys(str(row[self.filter]) for row in self.rows)) if self.filter else []


@dataclass(frozen=True)
class Section:
    id: str
    title: str
    words: str
    figures: Sequence[Figure] = ()
    sheets: Sequence[Sheet] = ()


@dataclass(frozen=True)
class Page:
    claims: Sequence[Row]  # the rows of plots/claims.csv
    across: Section
    sections: Sequence[Section]
    params: str  # the text of params.yaml
    versions: Mapping[str, str]
    digests: Mapping[str, str]  # by path, for every file that the page was made from


def in_order(claims: Sequence[Row]) -> list[Row]:
    """Sort the claims by paper and number (M2 before M10)."""

    def key(claim: Row) -> tuple[int, str, int]:
        letter, number = re.fullmatch(r"(\D*)(\d*).*", str(claim["id"]), re.DOTALL).groups()
        return (list(PAPERS).index(letter) if letter in PAPERS else len(PAPERS)), letter, int(number or 0)

    return sorted(claims, key=key)


def paper(claim: Row) -> str:
    """The short name of the claim's paper; for a claim of no paper, the letter of its id."""
    letter = str(claim["id"])[:1]
    return PAPERS.get(letter, letter)


def unbroken(text: str) -> Markup:
    """The text, with each formula in an element that stays on one line."""
    pieces = FORMULA.split(text)  # the formulas are at odd indices
    span = Markup('<span class="formula">{}</span>')
    return Markup("").join(span.format(piece) if i % 2 else escape(piece) for i, piece in enumerate(pieces))


def render(page: Page) -> str:
    """The page as one HTML document."""
    claims = in_order(page.claims)
    judged = [claim for claim in claims if not claim["question"]]
    counts = Counter(str(claim["verdict"]) for claim in judged)
    seen = {str(claim[key]) for claim in claims for key in ("verdict", "run_verdict", "evidence_verdict")}
    verdicts = [verdict for verdict in (*VERDICTS, *sorted(seen - set(VERDICTS))) if verdict in seen]
    return document(
        "report/page.html",
        page=page,
        claims=claims,
        judged=judged,
        disagree=disagree,
        counts=counts,
        verdicts=verdicts,
        symbols={verdict: VERDICTS.get(verdict, "?") for verdict in verdicts},
        papers=list(dict.fromkeys(map(paper, claims))),
        paper=paper,
        titles=TITLES,
        unbroken=unbroken,
    )


def document(template: str, **content: Any) -> str:
    """A document that stands alone, from a template that extends report/frame.html."""
    css, js = _asset("report/style.css"), _asset("report/page.js")
    environment = Environment(
        loader=FunctionLoader(_asset), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    digest = base64.b64encode(hashlib.sha256(js.encode()).digest()).decode()
    return environment.get_template(template).render(css=Markup(css), js=Markup(js), digest=digest, **content)


def _asset(name: str) -> str:
    return files("brittle").joinpath(name).read_text("utf-8")
