"""Worlds, networks, remedies and attacks by name, each registered by a decorator: built in, or from a user's file.

    from brittle.plugins import remedy

    @remedy
    def my_remedy(task):
        ...

in a file of the folder that `cross.plugins` names is all it takes. Files are executed as they are, so only those in
that folder are run, and only by the stages that ask for them. Any error in one of them is reported on one line.
"""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, TypeVar

from brittle.core.errors import BadInput

F = TypeVar("F", bound=Callable[..., Any])

# The arguments of a function of each kind; docs/plugins.md describes them.
ARGUMENTS = {
    "world": ("seed",),
    "net": ("shape", "seed"),
    "remedy": ("task",),
    "attack": ("net", "x", "y", "radius"),
}


@dataclass(frozen=True)
class Plugin:
    """A function registered under its name."""

    kind: str
    name: str
    function: Callable[..., Any]
    file: str = ""  # the user's; empty if built in

    @property
    def user_supplied(self) -> bool:
        return bool(self.file)

    @property
    def title(self) -> str:
        """A name that tells the user where to find the plugin."""
        return f"{self.file}: {self.kind} {self.name}()" if self.user_supplied else f"{self.kind} {self.name}"

    def __call__(self, *arguments: Any) -> Any:
        try:
            return self.function(*arguments)
        except BadInput as error:
            raise (BadInput(f"{self.title}: {error}") if self.user_supplied else error) from error
        except Exception as error:
            if not self.user_supplied:
                raise
            raise BadInput(f"{self.title} raised {_told(error, self.file)}") from error

    def wrong(self, words: str) -> BadInput:
        """The error for a plugin, or a result of it, that is not as required."""
        return BadInput(f"{self.title} {words}")


ENTERED: dict[str, dict[str, Plugin]] = {kind: {} for kind in ARGUMENTS}
_loading = ""  # the user's file that is being read


def _enter(kind: str, function: F) -> F:
    name = function.__name__
    arguments = ARGUMENTS[kind]
    usage = f"must be a function {name}({', '.join(arguments)})"
    found = Plugin(kind, name, function, _loading)
    if not inspect.isfunction(function) or not _takes(function, len(arguments)):
        raise found.wrong(usage)
    if name == "all":  # the name that tables use for all of them together
        raise found.wrong("has a reserved name; choose another")
    before = ENTERED[kind].get(name)
    if before and (before.user_supplied or found.user_supplied):
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
    """Register a world: seed -> World, a problem with two labels."""
    return _enter("world", function)


def net(function: F) -> F:
    """Register a network: (input shape, seed) -> a module from inputs (n, d) to scores (n,), positive for label 1."""
    return _enter("net", function)


def remedy(function: F) -> F:
    """Register a remedy: Task -> a trained module."""
    return _enter("remedy", function)


def attack(function: F) -> F:
    """Register an attack: (net, x, y, radius) -> inputs within the l2 radius of x, misclassified if possible."""
    return _enter("attack", function)


def load_files(files: Mapping[str, str]) -> list[Plugin]:
    """Execute the source text of these files and return the plugins they register."""
    global _loading
    forget()
    for path, text in files.items():
        before, _loading = len(user_supplied()), path
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
        if len(user_supplied()) == before:
            decorators = ", ".join(f"@{kind}" for kind in ARGUMENTS)
            raise BadInput(f"{path}: registers nothing; put one of {decorators} before a function")
    return user_supplied()


def forget() -> None:
    """Remove the user-supplied plugins; the built-in ones stay."""
    for kind, entered in ENTERED.items():
        ENTERED[kind] = {name: each for name, each in entered.items() if not each.user_supplied}


def built_in(kind: str) -> list[Plugin]:
    return [each for each in ENTERED[kind].values() if not each.user_supplied]


def user_supplied(kind: str | None = None) -> list[Plugin]:
    """The user-supplied plugins, all of them or those of one kind."""
    kinds = ARGUMENTS if kind is None else (kind,)
    return [each for kind in kinds for each in ENTERED[kind].values() if each.user_supplied]


def named(kind: str, name: str) -> Plugin:
    if name not in ENTERED[kind]:
        raise BadInput(f"{name}: is not a {kind}; must be one of {', '.join(ENTERED[kind])}")
    return ENTERED[kind][name]


def _told(error: Exception, file: str) -> str:
    """The error on one line, with the line number in the file that it came from."""
    line = getattr(error, "lineno", None) if isinstance(error, SyntaxError) else None
    for frame in traceback.extract_tb(error.__traceback__):
        line = frame.lineno if frame.filename == file else line
    words = " ".join(str(error).split()) or "no message"
    return f"{type(error).__name__}: {words[:300]}" + (f" (line {line})" if line else "")
