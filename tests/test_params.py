"""Bad parameters are turned away at the door, each with one line that names it and what is allowed."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from brittle.core.errors import BadInput
from brittle.core.params import load
from brittle.params import Schema, changes, leaves
from brittle.tools.reads import Reads
from conftest import ENV, MODULES, ROOT

GOOD = YAML(typ="safe", pure=True).load(ROOT / "params.yaml")
MISSING = object()


def with_value(tmp_path: Path, key: Any, value: object) -> Path:
    """params.yaml with one key changed, added or (MISSING) removed."""
    content = YAML(typ="safe", pure=True).load(ROOT / "params.yaml")
    *path, last = key.split(".") if isinstance(key, str) else [key]
    section = content
    for part in path:
        section = section[part]
    if value is MISSING:
        del section[last]
    else:
        section[last] = value
    file = tmp_path / "params.yaml"
    YAML(typ="safe", pure=True).dump(content, file)
    return file


NAN, INF = float("nan"), float("inf")
BAD = [
    ("d", -5, "d = -5: must be an integer ≥ 2"),
    ("d", 0, "d = 0: must be an integer ≥ 2"),
    ("d", 1, "d = 1: must be an integer ≥ 2"),
    ("d", 100.5, "d = 100.5: must be an integer ≥ 2"),
    ("d", 100.0, "d = 100.0: must be an integer ≥ 2"),
    ("d", "100", "d = '100': must be an integer ≥ 2"),
    ("d", True, "d = True: must be an integer ≥ 2"),
    ("d", None, "d = None: must be an integer ≥ 2"),
    ("d", [100, 200], "d = [100, 200]: must be an integer ≥ 2"),
    ("d", NAN, "d = nan: must be an integer ≥ 2"),
    ("d", MISSING, "d: is missing; must be an integer ≥ 2"),
    ("alpha", 0, "alpha = 0: must be a number > 0"),
    ("alpha", -1.5, "alpha = -1.5: must be a number > 0"),
    ("alpha", NAN, "alpha = nan: must be a number > 0"),
    ("alpha", INF, "alpha = inf: must be a number > 0"),
    ("alpha", "one", "alpha = 'one': must be a number > 0"),
    ("alpha", False, "alpha = False: must be a number > 0"),
    ("alpha", 50.0, "alpha = 50.0: must give d**alpha · max(d, width) ≤ 10000000000 (d = 100)"),
    ("alpha", 1e308, "alpha = 1e+308: must give d**alpha · max(d, width) ≤ 10000000000 (d = 100)"),
    ("alpha", 0.01, "alpha = 0.01: must give m = round(d**alpha) ≥ 2 samples (d = 100)"),
    ("width", 0, "width = 0: must be an integer ≥ 1"),
    ("width", -1, "width = -1: must be an integer ≥ 1"),
    ("width", 1e3, "width = 1000.0: must be an integer ≥ 1"),
    ("width", "wide", "width = 'wide': must be an integer ≥ 1"),
    ("seeds", [], "seeds = []: must be a list of one or more different integers ≥ 0"),
    ("seeds", 3, "seeds = 3: must be a list of one or more different integers ≥ 0"),
    ("seeds", [0, 0], "seeds = [0, 0]: must be a list of one or more different integers ≥ 0"),
    ("seeds", [0, -1], "seeds = [0, -1]: must be a list of one or more different integers ≥ 0"),
    ("seeds", [0.5], "seeds = [0.5]: must be a list of one or more different integers ≥ 0"),
    ("seeds", ["a"], "seeds = ['a']: must be a list of one or more different integers ≥ 0"),
    ("seeds", [[0]], "seeds = [[0]]: must be a list of one or more different integers ≥ 0"),
    ("device", "gpu", "device = 'gpu': must be one of auto, cpu, cuda"),
    ("device", 0, "device = 0: must be one of auto, cpu, cuda"),
    ("device", None, "device = None: must be one of auto, cpu, cuda"),
    ("margin", MISSING, "margin: is missing; must be a section"),
    ("margin", 3, "margin = 3: must be a section with the keys world, clusters, loss"),
    ("margin", [], "margin = []: must be a section with the keys world, clusters, loss"),
    ("margin", None, "margin = None: must be a section with the keys world, clusters, loss"),
    ("margin.world", "torus", "margin.world = 'torus': must be one of sphere, gaussian, orthogonal, clusters"),
    ("margin.world", ["sphere"], "margin.world = ['sphere']: must be one of sphere"),
    ("margin.loss", "hinge", "margin.loss = 'hinge': must be one of exponential, logistic"),
    ("margin.loss", "Exponential", "margin.loss = 'Exponential': must be one of exponential, logistic"),
    ("margin.log10_target", 0, "margin.log10_target = 0: must be a number < 0 (the loss must end below 1)"),
    ("margin.log10_target", 3, "margin.log10_target = 3: must be a number < 0"),
    ("margin.log10_target", -INF, "margin.log10_target = -inf: must be a number < 0"),
    ("margin.log10_target", "1e-30", "margin.log10_target = '1e-30': must be a number < 0"),
    ("margin.init_scale", 0.0, "margin.init_scale = 0.0: must be a number ≥ 1e-6"),
    ("margin.method", "adam", "margin.method = 'adam': must be one of flow, protocol"),
    ("margin.slack", 0.9, "margin.slack = 0.9: must be a number ≥ 1"),
    ("margin.flow.momentum", 1.0, "margin.flow.momentum = 1.0: must be a number ≥ 0 and < 1"),
    ("margin.flow.momentum", -0.1, "margin.flow.momentum = -0.1: must be a number ≥ 0 and < 1"),
    ("margin.flow.max_steps", 0, "margin.flow.max_steps = 0: must be an integer ≥ 1"),
    ("margin.flow.steps", 10, "margin.flow.steps: is not a parameter; the parameters here are momentum, max_steps"),
    ("margin.protocol.lr", 0, "margin.protocol.lr = 0: must be a number > 0 and ≤ 1"),
    ("margin.protocol.growth", 0.9, "margin.protocol.growth = 0.9: must be a number ≥ 1"),
    ("margin.protocol.batch", 0, "margin.protocol.batch = 0: must be an integer ≥ 1"),
    ("margin.protocol.every", 1.5, "margin.protocol.every = 1.5: must be an integer ≥ 1"),
    ("margin.clusters.size", 0, "margin.clusters.size = 0: must be an integer ≥ 1"),
    ("margin.clusters.spread", 1, "margin.clusters.spread = 1: must be a number ≥ 0 and < 1"),
    ("margin.clusters", MISSING, "margin.clusters: is missing; must be a section"),
    ("margin.widht", 5, "margin.widht: is not a parameter; the parameters here are world, clusters, loss"),
    ("dd", 5, "dd: is not a parameter; the parameters here are"),
    ("figures.dpi", 0, "figures.dpi = 0: must be an integer ≥ 50 and ≤ 1200"),
    ("figures.dpi", 10**6, "figures.dpi = 1000000: must be an integer ≥ 50 and ≤ 1200"),
    ("figures.font_size", -1, "figures.font_size = -1: must be a number ≥ 4 and ≤ 40"),
    ("figures.font_size", 1e300, "figures.font_size = 1e+300: must be a number ≥ 4 and ≤ 40"),
    ("d", 10**12, "d = 1000000000000: must be ≤ 10000000000"),
    ("d", 10**400, f"d = 1{'0' * 56}...: must be ≤ 10000000000"),
    ("width", 10**9, "alpha = 1.0: must give d**alpha · max(d, width) ≤ 10000000000 (d = 100)"),
    ("margin.log10_target", 10**400, f"margin.log10_target = 1{'0' * 56}...: must be a number < 0"),
    ("margin.init_scale", 1e30, "margin.init_scale = 1e+30: must be a number ≥ 1e-6 and ≤ 1e6"),
    ("margin.protocol.lr", 1e3, "margin.protocol.lr = 1000.0: must be a number > 0 and ≤ 1"),
    ("device", "a\nb", "device = 'a\\nb': must be one of auto, cpu, cuda"),
    ("sweep.ds", [], "sweep.ds = []: must be a list of one or more different integers ≥ 2"),
    ("sweep.ds", [100, 100], "sweep.ds = [100, 100]: must be a list of one or more different integers ≥ 2"),
    ("sweep.ds", 100, "sweep.ds = 100: must be a list of one or more different integers ≥ 2"),
    ("sweep.alphas", [0.5, "one"], "sweep.alphas = [0.5, 'one']: must be a list of one or more different numbers > 0"),
    ("sweep.alphas", [0.5, 0.5], "sweep.alphas = [0.5, 0.5]: must be a list of one or more different numbers > 0"),
    ("sweep.alphas", [0.5], "sweep.momentum = [0.0, 0.0, 0.0, 0.7, 0.9]: must have one value per alpha (1)"),
    ("sweep.alphas", [0.5, 0.8, 1.0, 1.2, 9.0], "sweep.alphas = 9.0: must give d**alpha · max(d, width) ≤"),
    ("sweep.alphas", [0.01, 0.8, 1.0, 1.2, 1.5], "sweep.alphas = 0.01: must give 2 samples or more (d = 50)"),
    (
        "sweep.alphas",
        [1.3, 1.4, 1.5, 1.6, 1.7],
        "sweep.alphas = 1.3: must have one ≤ 1.2, to compare with Thm 3.1's network",
    ),
    ("title.samples", 0, "title.samples = 0: must be an integer ≥ 1"),
    (
        "sweep.momentum",
        [0, 0, 0, 0, 1],
        "sweep.momentum = [0, 0, 0, 0, 1]: must be a list of one or more numbers ≥ 0 and",
    ),
    ("sweep.loss", "hinge", "sweep.loss = 'hinge': must be one of exponential, logistic"),
    ("sweep.depth", 3, "sweep.depth: is not a parameter; the parameters here are ds, alphas"),
    ("theory.example_ds", [15], "theory.example_ds = 15: must be even"),
    ("sweep.width_ds", [10**9], "sweep.width_ds = 1000000000: must give d · max(d, width) ≤ 10000000000"),
    ("theory.robust_alphas", [200.0], "theory.robust_alphas = 200.0: must give d · d**alpha ≤ 10000000000 (d = 200)"),
    ("theory.lemma.alphas", [10.0], "theory.lemma.alphas = 10.0: must give d · d**alpha ≤ 10000000000 (d = 200)"),
    ("theory.lemma.alphas", [0.01], "theory.lemma.alphas = 0.01: must give 2 samples or more (d = 50)"),
    ("variants.m", 10**9, "variants.m = 1000000000: must give m · max(d, width) ≤ 10000000000"),
    ("kkt.m", 10**9, "kkt.m = 1000000000: must be an integer ≥ 2 and ≤ 100000"),
    ("optimisers.width", 10**9, "optimisers.width = 1000000000: must be an integer ≥ 1 and ≤ 100000"),
    ("theory.lemma.draws", 0, "theory.lemma.draws = 0: must be an integer ≥ 1"),
    ("theory.regime.shares", [0.5, 2.0], "theory.regime.shares = [0.5, 2.0]: must be a list of one or more different"),
    ("variants.cluster_size", 60, "variants.cluster_size = 60: must leave two clusters or more among m = 100 samples"),
    ("variants.d", 9, "variants.cluster_size = 10: must give d = 9 clusters or fewer of the m = 100 samples"),
    ("theory.regime.large_m", 10**7, "theory.regime.large_m = 10000000: must give m · max(d, width) ≤ 10000000000"),
    ("theory.lemma.large_ds", [10**8], "theory.lemma.large_ds = 100000000: must give d · √d ≤ 10000000000"),
    ("minibatch.batch", 89, "minibatch.batch = 89: must be less than the samples, m = round(d**alpha) = 89"),
    ("minibatch.alpha", 8.0, "minibatch.alpha = 8.0: must give d**alpha · max(d, width) ≤ 10000000000 (d = 20)"),
    ("variants.transfer", 3, "variants.transfer = 3: must be a section with the keys widths, inits"),
    ("certify.nets", 0, "certify.nets = 0: must be an integer ≥ 1"),
    ("kkt.kink", 0, "kkt.kink = 0: must be a number > 0 and ≤ 0.1"),
    ("kkt.log10_levels", [-2, 1], "kkt.log10_levels = [-2, 1]: must be a list of one or more different numbers < 0"),
    ("perturbed_noise.width", 7, "perturbed_noise.width = 7: must be an even integer ≥ 2"),
    (
        "perturbed_noise.noises",
        [10**8],
        "perturbed_noise.noises = [100000000]: must give noises · max(d, width) ≤ 10000000000",
    ),
    ("reconstruct.log10_level", -31, "reconstruct.log10_level = -31.0: must be one of reconstruct.log10_levels"),
    ("reconstruct.candidates", 0.5, "reconstruct.candidates = 0.5: must be a number ≥ 1 and ≤ 100"),
    ("xor.n", 30, "xor.n = 30: must be a multiple of 4 ≥ 16 and ≤ 10⁶"),
    ("xor.angles", [0], "xor.angles = [0]: must be a list of one or more different numbers > 0 and ≤ 180"),
    ("mid_training.world", "ms-5-7", "mid_training.world = 'ms-5-7': must be one of lms-3, lms-5, lms-7"),
    ("optimisers.rules", ["gd", "lion"], "optimisers.rules = ['gd', 'lion']: must be a list of different ones of gd,"),
    ("optimisers.rules", "gd", "optimisers.rules = 'gd': must be a list of different ones of gd, normalised_gd, sign"),
    ("optimisers.rules", ["gd", "gd"], "optimisers.rules = ['gd', 'gd']: must be a list of different ones of gd,"),
    ("optimisers.deep_widths", [300], "optimisers.deep_widths = [300]: must be a list of two or more integers ≥ 1"),
    (
        "optimisers.init_scales",
        [1, 1],
        "optimisers.init_scales = [1, 1]: must be a list of one or more different",
    ),
    (
        "optimisers.growth.ds",
        [10**6],
        "optimisers.growth.ds = [1000000]: must be a list of one or more different",
    ),
    (
        "optimisers.growth.rules",
        [],
        "optimisers.growth.rules = []: must be a list of different ones of gd,",
    ),
    ("slabs.gamma", 0.2, "slabs.gamma = 0.2: must be a number > 0 and < 1/6 (seven slabs must fit)"),
    ("slabs.rotate", 1, "slabs.rotate = 1: must be true or false"),
    ("slabs.worlds", ["lms-4"], "slabs.worlds = ['lms-4']: must be a list of one or more different names: lms-K"),
    ("slabs.worlds", ["ms-7-5"], "slabs.worlds = ['ms-7-5']: must be a list of one or more different names: lms-K"),
    ("features.world", "ms-5", "features.world = 'ms-5': must be lms-K, noisy-lms-K or ms-K-L with K < L"),
    ("adversarial.world", "ms-5", "adversarial.world = 'ms-5': must be lms-K, noisy-lms-K or ms-K-L with K < L"),
    ("f_star.world", "ms-5-7", "f_star.world = 'ms-5-7': must be lms-K or noisy-lms-K"),
    ("recipes.skip", ["tanh@lms-7"], "recipes.skip = ['tanh@lms-7']: must be a list of ACTIVATION-OPTIMISER@WORLD, or"),
    ("slabs.models", ["mlp-10-1"], "slabs.models = ['mlp-10-1']: must be a list of one or more different names: fcn"),
    ("slabs.models", ["cnn-32-6-1"], "slabs.models = ['cnn-32-6-1']: must be a list of one or more different names"),
    ("slabs.models", ["fcn-8-1", "fcn-8-1"], "slabs.models = ['fcn-8-1', 'fcn-8-1']: must be a list of one or more"),
    ("slabs.skip", ["fcn-100-1"], "slabs.skip = ['fcn-100-1']: must be a list of MODEL@WORLD, or []"),
    ("slabs.samples", 10**9, "slabs.samples = 1000000000: must be an integer ≥ 10 and ≤ 100000000"),
    (
        "slabs.training.gru.optimiser",
        "lion",
        "slabs.training.gru.optimiser = 'lion': must be one of sgd, adam, rmsprop, muon",
    ),
    ("slabs.training.fcn.momentum", 1.0, "slabs.training.fcn.momentum = 1.0: must be a number ≥ 0 and < 1"),
    ("features.model", "gru-100-10-1", "features.model = 'gru-100-10-1': must be fcn-WIDTH-DEPTH"),
    ("features.complex", [10**8], "features.complex = [100000000]: must give samples · (1 + complex) ≤ 10000000000"),
    (
        "recipes.activations",
        ["gelu"],
        "recipes.activations = ['gelu']: must be a list of different ones of relu, leaky",
    ),
    ("recipes.regularised.dropouts", [1.0], "recipes.regularised.dropouts = [1.0]: must be a list of one or more"),
    ("noisy.k", 4, "noisy.k = 4: must be 3, 5 or 7"),
    ("noisy.alone.worlds", ["lms-5"], "noisy.alone.worlds = ['lms-5']: must be a list of one or more different names"),
    ("adversarial.l2", [0.0], "adversarial.l2 = [0.0]: must be a list of one or more different numbers > 0"),
    ("lsn.units", 3, "lsn.units = 3: must be an even integer ≥ 2"),
    ("features.alone", [10], "features.alone = [10]: must be among features.complex = [9, 249]"),
    ("lsn.wide_ds", [400], "lsn.wide_ds = [400]: must give samples · d⁴ ≤ 10000000000"),
    ("lsn.margins", [2.0], "lsn.margins = [2.0]: must be a list of one or more different numbers > 0 and ≤ 1"),
    (
        "adversarial.momentum",
        [1.0],
        "adversarial.momentum = [1.0]: must be a list of one or more different numbers ≥ 0 and < 1",
    ),
    ("adversarial.along", [0], "adversarial.along = [0]: must be a list of one or more different integers ≥ 1"),
    ("lsn.ds", [10**4], "lsn.ds = [10000]: must give samples · d³ ≤ 10000000000"),
    (1, 2, "1: is not a parameter; the parameters here are"),
    (None, 2, "None: is not a parameter; the parameters here are"),
]


@pytest.mark.parametrize(("key", "value", "line"), BAD, ids=[f"{k}={v if v is not MISSING else ''}" for k, v, _ in BAD])
def test_bad_value_gives_one_line(tmp_path: Path, key: str, value: object, line: str) -> None:
    with pytest.raises(BadInput) as error:
        load(Schema, with_value(tmp_path, key, value))
    assert "\n" not in str(error.value)
    assert str(error.value).startswith(f"params.yaml: {line}")


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"margin.world": "orthogonal", "alpha": 1.5}, "alpha = 1.5: must be ≤ 1 where margin.world is orthogonal"),
        (
            {"margin.world": "clusters", "margin.clusters.size": 60},
            "margin.clusters.size = 60: must leave two clusters or more among m = 100 samples",
        ),
        ({"slabs.ensembles": [4]}, "slabs.ensembles = .4.: must be ≤ the number of slabs.training.fcn.seeds, 3"),
        ({"slabs.d": 8}, "slabs.models = .*: gru-100-10-1 must read no more numbers at a time than d = 8"),
        (
            {"slabs.skip": ["fcn-100-1@lms-5", "fcn-100-1@ms-5-7"]},
            "slabs.skip = .*: must leave fcn-100-1 a world; or take it out of slabs.models",
        ),
        (
            {"slabs.models": ["gru-100-10-1"]},
            "slabs.skip = .*: must leave ms-5-7 a model; or take it out of slabs.worlds",
        ),
    ],
)
def test_values_that_do_not_fit_together_give_one_line(tmp_path: Path, changes: dict, line: str) -> None:
    content = YAML(typ="safe", pure=True).load(ROOT / "params.yaml")
    for key, value in changes.items():
        *path, last = key.split(".")
        section = content
        for part in path:
            section = section[part]
        section[last] = value
    YAML(typ="safe", pure=True).dump(content, tmp_path / "params.yaml")
    with pytest.raises(BadInput, match=f"^params.yaml: {line.replace('(', '[(]')}"):
        load(Schema, tmp_path / "params.yaml")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "params.yaml: must be a mapping of parameter names to values"),
        ("- 1\n- 2\n", "params.yaml: must be a mapping of parameter names to values"),
        ("d: [1, 2\n", "params.yaml: is not valid YAML at line"),
        ("d: 1\nd: 2\n", "params.yaml: is not valid YAML at line"),
        ("d: !!python/object/apply:os.system ['true']\n", "params.yaml: is not valid YAML"),
        ("d: \x00\n", "params.yaml: is not valid YAML"),
        ("d: " + "[" * 5000, "params.yaml: is not valid YAML"),
    ],
)
def test_a_file_that_is_no_parameter_file_gives_one_line(tmp_path: Path, text: str, line: str) -> None:
    (tmp_path / "params.yaml").write_text(text)
    with pytest.raises(BadInput) as error:
        load(Schema, tmp_path / "params.yaml")
    assert str(error.value).startswith(line)
    assert "\n" not in str(error.value)


def test_two_bad_values_give_two_lines(tmp_path: Path) -> None:
    text = with_value(tmp_path, "d", -5).read_text().replace("alpha: 1.0", "alpha: 0")
    (tmp_path / "params.yaml").write_text(text)
    with pytest.raises(BadInput) as error:
        load(Schema, tmp_path / "params.yaml")
    assert len(str(error.value).splitlines()) == 2


@pytest.mark.parametrize("stage", ["params", "margin_data", "margin_train", "margin_attack", "margin_figures"])
def test_a_stage_exits_with_2_and_touches_nothing(tmp_path: Path, stage: str) -> None:
    with_value(tmp_path, "d", -5)
    command = [sys.executable, "-m", MODULES[stage]]
    done = subprocess.run(command, cwd=tmp_path, env=ENV, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "params.yaml: d = -5: must be an integer ≥ 2\n"
    assert [path.name for path in tmp_path.iterdir()] == ["params.yaml"]


@pytest.mark.parametrize("argument", [[], ["many"], ["16", "20"], ["-5"]])
def test_a_cell_that_is_no_number_gives_one_line(tmp_path: Path, argument: list[str]) -> None:
    command = [sys.executable, "-m", "brittle.margin.sweep_train", *argument]
    done = subprocess.run(command, cwd=tmp_path, env=ENV, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "usage: python -m brittle.margin.sweep_train D\n"


@pytest.mark.parametrize("name", ["mlp-100-1", "fcn-100", "fcn-100-x", "fcn-5-0", "cnn-32-7", "cnn-2-6-2"])
def test_a_cell_that_is_no_architecture_gives_one_line(tmp_path: Path, name: str) -> None:
    shutil.copy(ROOT / "params.yaml", tmp_path)
    command = [sys.executable, "-m", "brittle.slabs.train", name]
    done = subprocess.run(command, cwd=tmp_path, env=ENV, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"{name}: is not an architecture; those are fcn-WIDTH-DEPTH, cnn-")
    assert done.stderr.count("\n") == 1


def test_our_own_parameters_fit_the_schema() -> None:
    assert load(Schema, ROOT / "params.yaml").model_dump().keys() == GOOD.keys()


@pytest.mark.parametrize("preset", sorted((ROOT / "presets").iterdir()), ids=lambda path: path.stem)
def test_a_preset_is_an_overlay_that_holds_only_what_differs(preset: Path) -> None:
    changed, now = changes(preset, ROOT / "params.yaml"), dict(leaves(GOOD))
    assert changed
    assert all(key in now and now[key] != value for key, value in changed.items())


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("d: 100\n", "mine.yaml: d = 100: is what params.yaml has; a preset holds only what differs"),
        ("d: -5\n", "mine.yaml: d = -5: must be an integer ≥ 2"),
        ("D: 5\n", "mine.yaml: D: is not a parameter; the parameters here are "),
        ("sweep: 5\n", "mine.yaml: sweep = 5: must be a section with the keys ds, "),
        ("sweep: {ds: [2], d: 3}\n", "mine.yaml: sweep.d: is not a parameter; the parameters here are ds, "),
        ("- 5\n", "mine.yaml: must be a mapping of parameter names to values"),
    ],
)
def test_a_wrong_preset_gives_one_line(tmp_path: Path, text: str, line: str) -> None:
    (tmp_path / "mine.yaml").write_text(text)
    shutil.copy(ROOT / "params.yaml", tmp_path)
    command = [sys.executable, "-m", "brittle.params", "mine.yaml"]
    done = subprocess.run(command, cwd=tmp_path, env=ENV, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(line)
    assert done.stderr.count("\n") == 1


def test_numbers_are_read_as_dvc_reads_them() -> None:
    assert load(Schema, ROOT / "params.yaml").margin.protocol.lr == 1e-5  # YAML 1.1 would make `1e-5` a text


def test_every_parameter_has_a_comment() -> None:
    settings = [line for line in (ROOT / "params.yaml").read_text().splitlines() if re.match(r" *\w+: *\S", line)]
    assert len(settings) >= len(list(leaves(GOOD)))
    assert [line for line in settings if "#" not in line] == []


def test_preset_becomes_dvc_arguments() -> None:
    command = [sys.executable, "-m", "brittle.params", "presets/paper.yaml"]
    out = subprocess.run(command, cwd=ROOT, env=ENV, capture_output=True, text=True, check=True).stdout
    words = out.split()
    assert words[:2] == ["-S", "d=1000"]
    assert "sweep.ds=[100,200,300,400,500,600,700,800,900,1000]" in words
    assert "figures.dpi=300" in words
    assert words[::2] == ["-S"] * (len(words) // 2)  # no value falls apart in the shell


def test_reads_records_keys_and_what_derived_values_read() -> None:
    params = Reads(load(Schema, ROOT / "params.yaml"))
    assert params.m == 100
    assert params.margin.flow.momentum == 0.7
    assert params.keys == {"d", "alpha", "margin.flow.momentum"}
