"""Check the whole of params.yaml before any stage runs.

DVC removes a stage's outputs before it runs the stage. All chains begin at the output of this one, so a wrong parameter
stops here, with nothing lost. That output never changes: a new value re-runs only the stages that read it.
"""

from __future__ import annotations

from brittle import store
from brittle.params.schema import Schema
from brittle.stages.run import run


def main(params: Schema) -> None:
    if params.device == "cuda":  # imported here because torch takes its time
        from brittle import device

        device.pick(params.device)
    store.save_bytes("data/params.checked", b"params.yaml fits src/brittle/params/schema.py\n")


if __name__ == "__main__":
    run(main, Schema)
