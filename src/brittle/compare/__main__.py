"""Two runs side by side: what differs in parameters, metrics, verdicts and figures. Nothing is checked out.

python -m brittle.compare main my-branch                        # branches, tags, commits, experiments
python -m brittle.compare main                                  # main beside the workspace
python -m brittle.compare main my-branch --page compare.html    # with figures left and right, on one page
"""

from __future__ import annotations

import sys

from brittle.arguments import Parser
from brittle.compare.differences import differences
from brittle.compare.shown import page, text
from brittle.compare.sides import WORKSPACE, side
from brittle.core import store
from brittle.core.errors import BadInput


def main(words: list[str] | None = None) -> None:
    parser = Parser(prog="python -m brittle.compare", description="Two runs side by side.")
    parser.add_argument("left", help="a branch, a tag, a commit, an experiment, or `workspace`")
    parser.add_argument("right", nargs="?", default=WORKSPACE, help="the same (default: workspace)")
    parser.add_argument("--page", help="also write one HTML page, with figures left and right")
    asked = parser.parse_args(words)
    found = differences(side(asked.left), side(asked.right))
    if asked.page:
        store.save_bytes(asked.page, page(found).encode())
    print(text(found))
    if asked.page:
        print(f"\nwritten: {asked.page}")


if __name__ == "__main__":
    try:
        main()
    except BadInput as error:
        print(error, file=sys.stderr)
        sys.exit(2)
