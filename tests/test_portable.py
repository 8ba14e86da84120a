"""This machine computes what the committed digests say, whatever its processor and however many its cores."""

from __future__ import annotations

import json
import subprocess
import sys

from conftest import ROOT
from portable import COMMITTED, differences, processor
from test_machine import CLEAN


def test_this_machine_computes_what_the_others_do() -> None:
    """On one core, while the digests are of a machine with two: a sum is split over threads, not over cores."""
    one_core = "import os, runpy; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))]);"
    program = f"{one_core} runpy.run_path({str(ROOT / 'tests/portable.py')!r}, run_name='__main__')"
    environment = CLEAN | {"PYTHONPATH": str(ROOT / "tests")}
    out = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    wrong = differences(processor(), json.loads(out.stdout), json.loads(COMMITTED.read_text()))
    assert not wrong, "\n".join(wrong)


def test_a_difference_names_the_processor_and_what_it_computed_otherwise() -> None:
    assert differences("Some CPU", {"svd": "1", "qr": "2", "new": "3"}, {"svd": "1", "qr": "0", "old": "4"}) == [
        "Some CPU: qr: 2, not 0",
        "Some CPU: old: missing, not 4",
        "Some CPU: new: 3, not known",
    ]
