"""Worlds, networks, remedies and attacks by name, each entered by one decorator: our own, and those in files of yours.

    from brittle.plugins import remedy

    @remedy
    def my_remedy(task):
        ...

in a file of the folder that `cross.plugins` names is all it takes. Files are run as they are, so only that folder's
are, and only by the stages that ask for it. Whatever is wrong with one of them is said in one line.
"""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, TypeVar

from brittle.params.base import BadInput

F = TypeVar("F", bound=Callable[..., Any])

# What a function of each kind is called with; docs/plugins.md says what with.
ARGUMENTS = {
    "world": ("seed",),
    "net": ("shape", "seed"),
    "remedy": ("task",),
    "attack": ("net", "x", "y", "radius"),
}


@dataclass(frozen=True)
class Plugin:
    """A function that was entered under its name."""

    kind: str
    name: str
    function: Callable[..., Any]
    file: str = ""  # of yours; empty for our own

    @property
    def yours(self) -> bool:
        return bool(self.file)

    @property
    def title(self) -> str:
        """Where the user finds it."""
        return f"{self.file}: {self.kind} {self.name}()" if self.yours else f"{self.kind} {self.name}"

    def __call__(self, *arguments: Any) -> Any:
        try:
            return self.function(*arguments)
        except BadInput as error:
            raise (BadInput(f"{self.title}: {error}") if self.yours else error) from error
        except Exception as error:
            if not self.yours:
                raise
            raise BadInput(f"{self.title} raised {_told(error, self.file)}") from error

    def wrong(self, words: str) -> BadInput:
        """What it returned is not what it should be."""
        return BadInput(f"{self.title} {words}")


ENTERED: dict[str, dict[str, Plugin]] = {kind: {} for kind in ARGUMENTS}
_loading = ""  # the file of yours that is being read


def _enter(kind: str, function: F) -> F:
    name = function.__name__
    arguments = ARGUMENTS[kind]
    usage = f"must be a function {name}({', '.join(arguments)})"
    found = Plugin(kind, name, function, _loading)
    if not inspect.isfunction(function) or not _takes(function, len(arguments)):
        raise found.wrong(usage)
    if name == "all":  # what tables call them together
        raise found.wrong("has a name that is taken; choose another")
    before = ENTERED[kind].get(name)
    if before and (before.yours or found.yours):
        raise found.wrong(f"has the name of {before.file or 'one of our own'}; choose another")
    ENTERED[kind][name] = found
    return function


def _takes(function: Callable[..., Any], n: int) -> bool:
    try:
        inspect.signature(function).bind(*range(n))
    except TypeError:
        return False
    return True


def world(function: F) -> F:
    """seed -> World, a problem with two labels."""
    return _enter("world", function)


def net(function: F) -> F:
    """(shape of an input, seed) -> a torch module from inputs (n, d) to scores (n,), positive for the label 1."""
    return _enter("net", function)


def remedy(function: F) -> F:
    """Task -> a trained module."""
    return _enter("remedy", function)


def attack(function: F) -> F:
    """(net, x, y, radius) -> inputs within the l2 radius of x that the network gets wrong, if it can."""
    return _enter("attack", function)


def load(files: Mapping[str, str]) -> list[Plugin]:
    """Run the texts of these files, and tell what they entered."""
    global _loading
    forget()
    for path, text in files.items():
        before, _loading = len(yours()), path
        try:
            # Not by import: that would leave compiled files in the folder, which is watched for changes.
            module = ModuleType(f"plugin_{len(sys.modules)}")
            module.__file__ = path
            sys.modules[module.__name__] = module  # dataclasses look for their module there
            exec(compile(text, path, "exec"), module.__dict__)
        except BadInput:
            raise
        except Exception as error:
            raise BadInput(f"{path}: cannot be read: {_told(error, path)}") from error
        finally:
            _loading = ""
        if len(yours()) == before:
            decorators = ", ".join(f"@{kind}" for kind in ARGUMENTS)
            raise BadInput(f"{path}: enters nothing; put one of {decorators} before a function")
    return yours()


def forget() -> None:
    """Our own are left."""
    for kind, entered in ENTERED.items():
        ENTERED[kind] = {name: each for name, each in entered.items() if not each.yours}


def ours(kind: str) -> list[Plugin]:
    return [each for each in ENTERED[kind].values() if not each.yours]


def yours(kind: str | None = None) -> list[Plugin]:
    """Those of the files that were read, or of one kind."""
    kinds = ARGUMENTS if kind is None else (kind,)
    return [each for kind in kinds for each in ENTERED[kind].values() if each.yours]


def named(kind: str, name: str) -> Plugin:
    if name not in ENTERED[kind]:
        raise BadInput(f"{name}: is not a {kind}; must be one of {', '.join(ENTERED[kind])}")
    return ENTERED[kind][name]


def _told(error: Exception, file: str) -> str:
    """The error on one line, with the line of the file that it came from."""
    line = getattr(error, "lineno", None) if isinstance(error, SyntaxError) else None
    for frame in traceback.extract_tb(error.__traceback__):
        line = frame.lineno if frame.filename == file else line
    words = " ".join(str(error).split()) or "without a word"
    return f"{type(error).__name__}: {words[:300]}" + (f" (line {line})" if line else "")
