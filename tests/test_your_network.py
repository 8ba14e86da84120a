"""A network of the user's own: docs/your-network.md word for word, attacks beside foolbox's, certificates that hold."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import foolbox
import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import save_file
from sklearn.datasets import load_digits
from torch import Tensor, nn

import brittle
from brittle import probe
from brittle.core.errors import BadInput
from brittle.nets.relu_mlp import ReluMlp, as_relu_mlp
from brittle.probes import certify_deep
from brittle.probes.certify import crown_bound
from brittle.user_network.measure import smallest
from brittle.user_network.subject import subject
from conftest import ENV, ROOT

PAGE = (ROOT / "docs/your-network.md").read_text()
FILES = dict(re.findall(r"```python\n# (\S+\.py)\n(.*?)```", PAGE, re.DOTALL))
(COMMANDS,) = re.findall(r"Then:\n\n```\n(.*?)```", PAGE, re.DOTALL)
(PRINTED,) = re.findall(r"and prints:\n\n```\n(.*?)```", PAGE, re.DOTALL)
NUMBER = re.compile(r"\d+\.\d+")


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, env=ENV, capture_output=True, text=True, timeout=600)


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return run(folder, sys.executable, "-m", "brittle.probe", *words)


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of the page's example, and what its commands print."""
    folder = tmp_path_factory.mktemp("example")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    done = run(folder, "bash", "-euc", COMMANDS)
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def test_the_example_prints_what_the_page_says(example: tuple[Path, str]) -> None:
    printed = example[1]
    assert NUMBER.sub("#", printed) == NUMBER.sub("#", PRINTED)
    found, said = (np.array([float(number) for number in NUMBER.findall(text)]) for text in (printed, PRINTED))
    assert np.abs(found - said).max() < 0.1  # the page's example fixes no kernels


def test_the_table_has_every_part_and_its_numbers_fit_together(example: tuple[Path, str]) -> None:
    table = pd.read_csv(example[0] / "digits.csv")
    assert set(table["part"]) == {"accuracy", "robust", "samples", "universal", "curves", "reliance", "density"}
    assert table["value"].notna().all()
    robust = table[table["part"] == "robust"].pivot(index="at", columns="measure", values="value")
    assert (robust["all"] <= robust[["pgd", "nearest"]].min(axis=1) + 1e-9).all()
    assert (robust["certified"] <= robust["all"]).all()  # a certificate that an attack refutes would be no certificate
    assert (robust.diff().iloc[1:] <= 0).all(axis=None)
    universal = table[table["part"] == "universal"].pivot(index="of", columns="measure", values="value")
    assert len(universal) == 10
    assert universal["cosine"].between(0.2, 0.95).all()
    assert (universal["ascent_half"] < universal["z_half"]).all()
    assert (universal["z_half"] < universal["random_half"]).all()


def test_the_page_stands_alone(example: tuple[Path, str]) -> None:
    html = (example[0] / "digits.html").read_text()
    assert "default-src 'none'" in html
    assert not re.search(r'(src|href)="(?!data:|#)', html)
    for id in ("robust", "universal", "reliance", "density", "robust-figure", "samples-figure", "universal-figure"):
        assert f'id="{id}"' in html


def test_the_function_gives_what_the_page_says(example: tuple[Path, str]) -> None:
    (text,) = re.findall(r"```python\n(from brittle import probe\n.*?)```", PAGE, re.DOTALL)
    done = run(example[0], sys.executable, "-c", text)
    assert done.returncode == 0, done.stderr
    assert "relies on top" in done.stdout
    assert re.search(r"radius +pgd +nearest +all +certified", done.stdout)


# Attacks


def digits() -> tuple[Tensor, Tensor]:
    pictures, labels = load_digits(return_X_y=True)
    return torch.tensor(pictures / 16).float(), torch.tensor(labels)


class Cnn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.last = nn.Conv2d(1, 8, 3), nn.Conv2d(8, 16, 3, stride=2), nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(torch.relu(self.second(torch.tanh(self.first(x)))).flatten(1))


def deep() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 40), nn.ReLU(), nn.Linear(40, 30), nn.ReLU(), nn.Linear(30, 10))


def shallow() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 40), nn.ReLU(), nn.Linear(40, 10))


def trained(make: Callable[[], nn.Module], updates: int = 120) -> nn.Module:
    torch.manual_seed(0)
    net, (x, y) = make(), digits()
    optimiser = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(updates):
        optimiser.zero_grad()
        nn.functional.cross_entropy(net(x[:1200].view(-1, 1, 8, 8)), y[:1200]).backward()
        optimiser.step()
    return net.eval()


@pytest.mark.parametrize("make", [Cnn, deep, shallow])
def test_robust_accuracies_are_not_above_those_of_foolbox(make: Callable[[], nn.Module]) -> None:
    net, (x, y) = trained(make), digits()
    x, y = x[1200:].view(-1, 1, 8, 8), y[1200:]
    found = probe(net, x, y, samples=100)
    some = found.samples["sample"].tolist()
    radii = found.robust["radius"].tolist()[2:9:2]
    theirs = foolbox.PyTorchModel(net, bounds=(-100, 100), device="cpu")
    attacks = [
        foolbox.attacks.L2PGD(steps=40),
        foolbox.attacks.L2DeepFoolAttack(steps=50),
        foolbox.attacks.L2CarliniWagnerAttack(binary_search_steps=3, steps=100, stepsize=0.05),
    ]
    kept = torch.stack([~attack(theirs, x[some], y[some], epsilons=radii)[2] for attack in attacks])  # (a, radii, n)
    best = kept.all(0).double().mean(1)  # what withstands all of foolbox's attacks
    ours = found.robust["all"].to_numpy()[2:9:2]
    assert 0.2 < best.max() < 0.95
    assert (ours <= best.numpy() + 0.01).all(), (ours, best)


# Certificates


def test_a_relu_mlp_is_recognised_however_it_is_written() -> None:
    class Written(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b, self.drop = nn.Linear(6, 5), nn.Linear(5, 1, bias=False), nn.Dropout()

        def forward(self, x: Tensor) -> Tensor:
            return self.b(self.drop(nn.functional.relu(self.a(x.view(x.shape[0], -1)))))[:, 0]

    x = torch.randn(20, 2, 3)
    net = Written().eval()
    found = as_relu_mlp(net, x)
    assert found is not None
    assert torch.allclose(found(x.flatten(1).double())[:, 0].float(), net(x), atol=1e-6)


@pytest.mark.parametrize(
    "net",
    [
        nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 2)),
        nn.Sequential(nn.Linear(6, 5), nn.Linear(5, 2)),
        nn.Sequential(nn.Linear(6, 5), nn.ReLU()),
        nn.Sequential(nn.BatchNorm1d(6), nn.Linear(6, 2)).eval(),
    ],
)
def test_other_networks_are_not_taken_for_one(net: nn.Module) -> None:
    assert as_relu_mlp(net, torch.randn(20, 6)) is None


def test_a_network_that_permutes_its_input_is_not_taken_for_one_that_does_not() -> None:
    class Permuted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Linear(6, 2)

        def forward(self, x: Tensor) -> Tensor:
            return self.a(x[:, [5, 4, 3, 2, 1, 0]])

    assert as_relu_mlp(Permuted(), torch.randn(20, 6)) is None


@pytest.mark.parametrize("make", [deep, shallow])
def test_nothing_within_a_certified_radius_changes_the_class(make: Callable[[], nn.Module]) -> None:
    net, (x, y) = trained(make), digits()
    of = subject(net, x[1200:1300], y[1200:1300])
    label = of.label
    _, size = smallest(of, of.x, label)
    radius = certify_deep.certified(of.mlp, of.x.double(), label, size.double())
    assert (radius <= size).all()
    right = of.mlp(of.x.double()).argmax(1) == label
    assert (radius[~right] == 0).all()
    assert float((radius[right] / size[right]).median()) > 0.5  # and it says something
    noise = torch.randn(200, 1, 64, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    moved = of.x.double() + radius[:, None] * noise / noise.norm(dim=2, keepdim=True)
    assert (of.mlp(moved.flatten(0, 1)).argmax(1).view(200, -1) == label)[:, right].all()


def test_with_one_hidden_layer_the_lines_are_those_of_the_other_module() -> None:
    draws = torch.Generator().manual_seed(0)
    w, b, v = (torch.randn(shape, generator=draws, dtype=torch.float64) for shape in ((7, 4), (7,), (1, 7)))
    net = ReluMlp([w, torch.cat([-v / 2, v / 2])], [b, torch.zeros(2, dtype=torch.float64)])
    x, r = torch.randn(30, 4, generator=draws, dtype=torch.float64), torch.full((30,), 0.2, dtype=torch.float64)
    label = (net(x)[:, 1] > 0).long()
    bound = certify_deep.lead(net, x, label, r).amin(1)
    yv = (2.0 * label - 1)[:, None] * v
    ones = crown_bound(x @ w.T + b, yv, w, r)  # there the lower slope is 1 wherever the neuron is on
    assert (bound >= ones - 2).all()
    exact = ((x @ w.T + b).abs() > r[:, None] * w.norm(dim=1)).all(1)  # no neuron switches: both are exact
    assert exact.any()
    assert torch.allclose(bound[exact], ones[exact])


def test_a_linear_network_is_certified_exactly() -> None:
    draws = torch.Generator().manual_seed(1)
    net = nn.Linear(5, 3)
    x, y = torch.randn(50, 5, generator=draws), torch.arange(50) % 3
    samples = probe(net, x, y).samples
    right = samples[samples["attacked"] > 0]
    assert len(right) > 5
    assert np.allclose(right["certified"], right["attacked"], rtol=1e-3)


# What the numbers mean


def test_one_vector_of_a_linear_network_is_its_own_weight_and_a_group_that_is_not_read_is_not_relied_on() -> None:
    draws = torch.Generator().manual_seed(0)
    y = torch.arange(400) % 2
    x = torch.randn(400, 10, generator=draws)
    x[:, 0] += 4.0 * (2 * y - 1)

    class First(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x[:, 0]

    found = probe(First(), x, 2 * y - 1, {"read": [0], "not read": range(1, 10)}, samples=50)
    assert found.classes == 2
    assert found.universal["cosine"].iloc[0] > 0.95
    assert found.reliance["reliance"].tolist() == pytest.approx([1.0, 0.0], abs=0.05)
    assert found.density["density"].iloc[0] == pytest.approx(10**-0.5, abs=0.02)  # one coordinate of ten
    sizes = found.samples["attacked"].to_numpy()
    signs = (2 * y - 1)[found.samples["sample"].tolist()].numpy()
    assert sizes == pytest.approx(np.maximum(x[found.samples["sample"].tolist(), 0].numpy() * signs, 0), rel=1e-3)


def test_pictures_get_waves_and_wavelets() -> None:
    x, y = digits()
    found = probe(trained(Cnn, 30), x[:60].view(-1, 1, 8, 8), y[:60], samples=20)
    assert found.density["basis"].tolist() == ["pixels", "dct", "haar"]
    assert found.layers == 0
    assert "certified" not in found.robust
    assert "nothing is certified" in str(found)


# Bad input

X, Y = torch.randn(20, 4, generator=torch.Generator().manual_seed(0)), torch.arange(20) % 2
BAD = {
    "x: has the shape (4,); must be (samples, …)": (nn.Linear(4, 2), X[0], Y, None),
    "x: has values that are not finite real numbers": (nn.Linear(4, 2), X / 0, Y, None),
    "y: has the shape (19,); must be (20,)": (nn.Linear(4, 2), X, Y[:19], None),
    "y: has the labels 0, 1, 2; must be 0 and 1, or -1 and 1": (nn.Linear(4, 2), X, torch.arange(20) % 3, None),
    "y: has labels that are no integers": (nn.Linear(4, 2), X, Y + 0.5, None),
    "y: is no array of numbers": (nn.Linear(4, 2), X, ["a", "b"], None),
    "the network: is a function; must be a torch.nn.Module": (lambda x: x, X, Y, None),
    "the network: fails on samples of the shape (4,): mat1": (nn.Linear(5, 2), X, Y, None),
    "the network: gives (2, 2, 2) for 2 samples": (nn.Unflatten(1, (2, 2)), X, Y, None),
    "group a: must be booleans of the shape (4,), or different integers from 0 to 3": (nn.Linear(4, 2), X, Y, [4]),
    "group a: has 4 of 4 coordinates": (nn.Linear(4, 2), X, Y, range(4)),
}


@pytest.mark.parametrize("words", BAD)
def test_bad_input_is_told_in_one_line(words: str) -> None:
    net, x, y, group = BAD[words]
    with pytest.raises(BadInput) as wrong:
        probe(net, x, y, None if group is None else {"a": group})
    assert str(wrong.value).startswith(words)
    assert "\n" not in str(wrong.value)


GOOD = "from torch import nn\n\ndef net():\n    return nn.Linear(4, 2)\n"
WRONG_FILES = [
    (GOOD, {"x": X}, "data.safetensors: has no tensor y; must have x and y"),
    (GOOD, {"x": X, "y": Y, "z": Y}, "data.safetensors: has a tensor z; must have x and y"),
    (
        GOOD,
        {"x": X, "y": Y, "net.bias": X},
        "data.safetensors: does not fit the network that mine.py builds: Missing key",
    ),
    (GOOD, b"\x80\x04pickle", "data.safetensors: is not a complete safetensors file"),
    (GOOD.replace("def net", "def other"), {"x": X, "y": Y}, "mine.py: has no function net(); write one, or name"),
    (GOOD.replace("Linear", "Lunar"), {"x": X, "y": Y}, "mine.py: function net() raised AttributeError"),
    ("def net(:\n", {"x": X, "y": Y}, "mine.py: file mine() raised SyntaxError: "),
    ("def net():\n    return 1\n", {"x": X, "y": Y}, "mine.py: function net() must return a torch.nn.Module, not int"),
]


@pytest.mark.parametrize(("code", "data", "words"), WRONG_FILES, ids=[case[2] for case in WRONG_FILES])
def test_a_wrong_file_is_told_in_one_line_and_nothing_is_written(
    code: str, data: dict[str, Tensor] | bytes, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(code)
    if isinstance(data, bytes):
        Path("data.safetensors").write_bytes(data)
    else:
        save_file({name: value.clone() for name, value in data.items()}, "data.safetensors")
    with pytest.raises(BadInput) as wrong:
        probe.main(["mine.py", "--data", "data.safetensors"])
    assert str(wrong.value).startswith(words)
    assert "\n" not in str(wrong.value)
    assert {path.name for path in tmp_path.iterdir()} == {"mine.py", "data.safetensors"}


def test_the_command_ends_with_two_and_one_line(tmp_path: Path) -> None:
    for words in (
        ["mine.py", "--data", "nowhere.safetensors"],
        ["mine.py"],
        ["mine.py", "--data", "a", "--radius", "b"],
    ):
        done = command(tmp_path, *words)
        assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)


def test_the_same_numbers_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(GOOD)
    save_file({"x": X, "y": Y, "net.weight": X[:2].clone(), "net.bias": X[2, :2].clone()}, "data.safetensors")
    outs = []
    for name in ("a", "b"):
        probe.main(["mine.py", "--data", "data.safetensors", "--out", name])
        outs.append([Path(f"{name}.{form}").read_bytes() for form in ("csv", "html")])
    assert outs[0] == outs[1]


def test_the_function_is_there_by_its_full_name_and_loaded_only_when_asked_for() -> None:
    code = "import brittle, sys; print('brittle.probe' in sys.modules, brittle.probe.__name__, callable(brittle.probe))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False brittle.probe True\n"
    with pytest.raises(AttributeError, match="module 'brittle' has no attribute 'nothing'"):
        brittle.nothing  # noqa: B018
