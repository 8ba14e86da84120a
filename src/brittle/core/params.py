"""How every section of params.yaml is checked: once, when it is read, with one line per wrong value."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, ValidationError
from pydantic_core import CoreSchema, PydanticCustomError, core_schema
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from brittle.core.errors import BadInput

S = TypeVar("S", bound=BaseModel)
MOST = 10**10  # numbers in one tensor (40 GB): far more than the papers' largest


class Section(BaseModel):
    """A section of params.yaml: every key is required, no other key is allowed, nothing is coerced."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


@dataclass(frozen=True)
class Rule:
    """A check with its description, so that an error can say what is allowed."""

    words: str
    holds: Callable[[Any], bool]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        def check(value: Any) -> Any:
            if not self.holds(value):
                raise PydanticCustomError("rule", "must be {words}", {"words": self.words})
            return value

        return core_schema.no_info_before_validator_function(check, handler(source))


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return (_is_int(value) or isinstance(value, float)) and abs(value) < math.inf


def integer(least: int, most: int | None = None) -> Rule:
    words = f"an integer ≥ {least}" + (f" and ≤ {most}" if most else "")
    return Rule(words, lambda v: _is_int(v) and v >= least and (most is None or v <= most))


def number(words: str, holds: Callable[[float], bool]) -> Rule:
    return Rule(f"a number {words}", lambda v: _is_number(v) and holds(v))


def one_of(*choices: str) -> Rule:
    return Rule(f"one of {', '.join(choices)}", lambda v: isinstance(v, str) and v in choices)


def distinct_integers(least: int) -> Rule:
    def holds(value: Any) -> bool:
        ints = isinstance(value, list) and all(_is_int(v) and v >= least for v in value)
        return ints and len(value) == len(set(value)) > 0

    return Rule(f"a list of one or more different integers ≥ {least}", holds)


def numbers(words: str, holds: Callable[[float], bool]) -> Rule:
    def every(value: Any) -> bool:
        return isinstance(value, list) and len(value) > 0 and all(_is_number(v) and holds(v) for v in value)

    return Rule(f"a list of one or more numbers {words}", every)


def distinct_numbers(words: str, holds: Callable[[float], bool]) -> Rule:
    every = numbers(words, holds).holds
    return Rule(f"a list of one or more different numbers {words}", lambda v: every(v) and len(v) == len(set(v)))


def list_of(pattern: str, words: str, least: int = 1) -> Rule:
    """A list of different names, each matching the pattern."""

    def holds(value: Any) -> bool:
        if not isinstance(value, list) or not least <= len(value) == len(set(map(str, value))):
            return False
        return all(isinstance(v, str) and re.fullmatch(pattern, v) for v in value)

    return Rule(f"a list{', which may be empty,' if least == 0 else ''} of different names: {words}", holds)


def load(schema: type[S], path: str | os.PathLike[str] = "params.yaml") -> S:
    """Read `path` as `schema`. Unknown keys are ignored at the top level only."""
    return validated(schema, read(path), Path(path).name)


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The content of a parameter file. ruamel.yaml reads YAML 1.2 as DVC does, so `1e-5` is a number to both."""
    name = Path(path).name
    try:
        content = YAML(typ="safe", pure=True).load(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"{name}: cannot be read: {error.strerror}") from None
    except (YAMLError, ValueError, RecursionError) as error:
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark else ""
        raise BadInput(f"{name}: is not valid YAML{where}: {problem}") from None
    if not isinstance(content, dict):
        raise BadInput(f"{name}: must be a mapping of parameter names to values")
    return content


def validated(schema: type[S], content: dict[str, Any], name: str) -> S:
    """The content as `schema`, or BadInput with one line per wrong value, which begins with the file's name."""
    if schema.model_config.get("extra") != "forbid":
        content = {key: value for key, value in content.items() if key in schema.model_fields}
    try:
        return schema.model_validate(content)
    except ValidationError as failure:
        lines = [_line(schema, error) for error in failure.errors(include_url=False)]
        raise BadInput("\n".join(f"{name}: {line}" for line in lines)) from None


def _line(schema: type[BaseModel], error: Any) -> str:
    path = [str(part) for part in error["loc"]]
    key = ".".join(path)
    if error["type"] == "missing":
        return f"{key}: is missing; must be {_words(schema, path)}"
    if error["type"] in ("extra_forbidden", "invalid_key"):
        siblings = _section(schema, path[:-1]).model_fields
        return f"{key}: is not a parameter; the parameters here are {', '.join(siblings)}"
    if error["type"] == "rule":
        return f"{key} = {_shown(error['input'])}: {error['msg']}"
    if error["type"] == "cross":  # a rule over several keys names its own key and value
        return error["msg"]
    keys = ", ".join(_section(schema, path).model_fields)
    return f"{key} = {_shown(error['input'])}: must be a section with the keys {keys}"


def _shown(value: object) -> str:
    """The value on one line, shortened if it is long."""
    return text if len(text := repr(value)) <= 60 else f"{text[:57]}..."


def _section(schema: type[BaseModel], path: list[str]) -> type[BaseModel]:
    for part in path:
        schema = schema.model_fields[part].annotation  # type: ignore[assignment]
    return schema


def _words(schema: type[BaseModel], path: list[str]) -> str:
    field = _section(schema, path[:-1]).model_fields[path[-1]]
    rules = [m for m in field.metadata if isinstance(m, Rule)]
    return rules[0].words if rules else "a section"


def cross(key: str, value: object, words: str) -> PydanticCustomError:
    """The error of a rule that involves several keys; `key` is the one to change."""
    return PydanticCustomError("cross", "{line}", {"line": f"{key} = {_shown(value)}: {words}"})


class TopLevel(Section):
    """The top level of params.yaml for a stage, which names its own sections and ignores the others."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    device: Annotated[str, one_of("auto", "cpu", "cuda")]


def too_large(d: float, alpha: float, width: float) -> bool:
    """Whether d**alpha samples times d or the width exceed MOST; in logarithms, as d**alpha may overflow."""
    return alpha * math.log(d) + math.log(max(d, width)) > math.log(MOST)
