"""What the numerical libraries are told, and that they listen."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from brittle.core import device
from brittle.core.errors import BadInput
from brittle.core.machine import KERNELS, WAITING
from conftest import ENV, ROOT

CLEAN = {key: value for key, value in ENV.items() if key not in KERNELS | WAITING and "THREADS" not in key}


def told(code: str, **variables: str) -> object:
    """What a new process prints, as json, in which `brittle` is the first import."""
    program = f"import brittle, json, os; {code}"
    done = subprocess.run(
        [sys.executable, "-c", program], env=CLEAN | variables, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def test_the_libraries_are_told_before_they_load_and_the_user_is_heard() -> None:
    look = f"print(json.dumps({{name: os.environ.get(name) for name in {[*KERNELS, *WAITING]}}}))"
    assert told(look) == KERNELS | WAITING
    assert told(look, MKL_CBWR="COMPATIBLE") == KERNELS | WAITING | {"MKL_CBWR": "COMPATIBLE"}
    assert told(look, OMP_WAIT_POLICY="PASSIVE") == KERNELS | {"GOMP_SPINCOUNT": None}
    assert told(look, BRITTLE_PORTABLE="0") == dict.fromkeys(KERNELS | WAITING)
    unloaded = "import sys; print(json.dumps([name in sys.modules for name in ('numpy', 'scipy', 'torch')]))"
    assert told(unloaded) == [False, False, False]


MKL = "import torch, ctypes; mkl = ctypes.CDLL(torch.__path__[0] + '/lib/libtorch_cpu.so')"


@pytest.mark.skipif(not torch.backends.mkl.is_available(), reason="this torch has no MKL")
def test_mkl_takes_the_kernels_of_avx2_whoever_made_the_processor() -> None:
    branch = "print(mkl.mkl_serv_cbwr_get(1))"
    assert told(f"{MKL}; {branch}") == 10  # MKL_CBWR_AVX2 in mkl_service.h
    assert told(f"import torch; torch.ones(9, 9) @ torch.ones(9, 9); {MKL}; {branch}") == 10
    assert told(f"{MKL}; {branch}", MKL_CBWR="COMPATIBLE") == 3
    assert told(f"{MKL}; {branch}", BRITTLE_PORTABLE="0") == 1  # off
    # Also where torch was there first, as in a notebook.
    late = f"import torch, json, brittle; {MKL}; {branch}"
    done = subprocess.run([sys.executable, "-c", late], env=CLEAN, capture_output=True, text=True, check=True)
    assert done.stdout == "10\n"


def test_threads_are_the_computations_own() -> None:
    count = "import torch; from brittle.core.machine import use_threads; use_threads(2); print(torch.get_num_threads())"
    assert told(count) == told(count, OMP_NUM_THREADS="7") == told(f"os.sched_setaffinity(0, {{0}}); {count}") == 2
    assert told(count, BRITTLE_THREADS="3") == 3
    assert told(count, OMP_NUM_THREADS="1", BRITTLE_PORTABLE="0") == 1


@pytest.mark.parametrize("wrong", ["0", "-1", "two", "1.5", ""])
def test_a_wrong_number_of_threads_is_said_in_one_line(wrong: str, tmp_path: Path) -> None:
    shutil.copy(ROOT / "params.yaml", tmp_path)
    command = [sys.executable, "-m", "brittle.tools.check"]
    environment = CLEAN | {"BRITTLE_THREADS": wrong, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"BRITTLE_THREADS = {wrong}: must be a number of threads, 1 or more\n"
    assert not (tmp_path / "data").exists()


@given(st.lists(st.floats(0, 1e300), min_size=1, max_size=50))
def test_square_roots_in_float64_are_correctly_rounded(numbers: list[float]) -> None:
    roots = device.sqrt(torch.tensor(numbers, dtype=torch.float64))
    assert roots.tolist() == [math.sqrt(number) for number in numbers]


def test_square_roots_of_many_sizes_are_correctly_rounded_where_mkls_may_not_be() -> None:
    x = np.random.default_rng(0).lognormal(size=20_001)
    assert np.array_equal(device.sqrt(torch.from_numpy(x)).numpy(), np.sqrt(x))


def test_bfloat16_is_tried_in_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    where = torch.device("cpu")
    for program, why in (
        ("import os; os.kill(os.getpid(), 4)", "SIGILL"),
        ("import nothing_of_this_name", "exit code 1"),
    ):
        monkeypatch.setattr(device, "BFLOAT16", program)
        with pytest.raises(BadInput) as refused:
            device.check_bfloat16(where)
        text = f"params.yaml: images.precision = bfloat16: fails on this processor ({why}); use float32"
        assert str(refused.value) == text
    monkeypatch.setattr(device, "BFLOAT16", "pass")
    device.check_bfloat16(where)


def run_pytest(folder: Path, test: str, *options: str) -> tuple[int, str]:
    """This project's settings of pytest, on two files of tests that are not its own."""
    (folder / "test_it.py").write_text(f"import os, time\ndef test_well(): pass\ndef test_badly(): {test}\n")
    (folder / "test_other.py").write_text("import time\ndef test_for_long(): time.sleep(1)\n")
    command = [sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(folder)]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    done = subprocess.run(
        [*command, *options, str(folder)], env=environment, cwd=folder, capture_output=True, text=True, timeout=100
    )
    return done.returncode, done.stdout


def test_a_test_that_crashes_ends_the_run_with_its_name(tmp_path: Path) -> None:
    code, out = run_pytest(tmp_path, "os.kill(os.getpid(), 4)")
    assert code == 1
    assert "crashed while running 'test_it.py::test_badly'" in out
    assert "worker restarting disabled" in out


def test_a_test_that_hangs_fails_with_its_name(tmp_path: Path) -> None:
    code, out = run_pytest(tmp_path, "time.sleep(1000)", "-o", "timeout=2")
    assert code == 1
    assert "FAILED test_it.py::test_badly - Failed: Timeout (>2" in out
    assert "1 failed, 2 passed" in out
    assert "timeout = " in (ROOT / "pyproject.toml").read_text()


@pytest.mark.parametrize("file", sorted((ROOT / "src").rglob("*.py")), ids=lambda file: file.stem)
def test_no_number_rests_on_functions_that_c_libraries_round_differently(file: Path) -> None:
    text = file.read_text()
    assert not re.search(r"normal\([^\n]*dtype=", text), f"{file.name}: normal32() of rng.py draws them"
    assert "softplus" not in text, f"{file.name}: ln(1 + e^x) is -logsigmoid(-x)"


def test_only_what_is_out_of_memory_is_said_to_be() -> None:
    with pytest.raises(RuntimeError) as torch_s:
        torch.empty(2**50)
    with pytest.raises(MemoryError) as numpy_s:
        np.empty(2**50)
    assert device.is_out_of_memory(torch_s.value)
    assert device.is_out_of_memory(numpy_s.value)
    assert not device.is_out_of_memory(RuntimeError("CUDA error: an illegal memory access was encountered"))
