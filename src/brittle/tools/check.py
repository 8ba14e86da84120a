"""Check the whole of params.yaml before any stage runs.

DVC removes a stage's outputs before it runs the stage. All other stages depend on the output of this one, so a wrong
parameter stops the run here, before anything is lost. The output never changes, so a new value re-runs only the stages
that read it.
"""

from __future__ import annotations

from brittle.core import store
from brittle.core.stage import run
from brittle.params import Schema


def main(params: Schema) -> None:
    if params.device == "cuda":  # imported here because importing torch is slow
        from brittle.core import device

        device.pick(params.device)
    store.save_bytes("data/params.checked", b"params.yaml fits src/brittle/params.py\n")


if __name__ == "__main__":
    run(main, Schema)
