"""Go templates, limited to the features of kwok's stages, compiled into functions from data to text.

{{ .spec.nodeName | Quote }}   {{ $now := Now }}   {{ range $index, $item := .spec.containers }} … {{ end }}
{{ if or (not $a) (eq .b "c") }} … {{ else if … }} … {{ end }}   {{ with .status.allocatable }} … {{ end }}
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from pilothouse.machinery.dataclass import dataclass
from pilothouse.nodes.stages.pipeline import Functions, InvalidStage, Pipeline, Scope, parse_pipeline

Render: TypeAlias = Callable[[Scope, list[str]], None]
"""Appends text."""

_ACTION = re.compile(r"\{\{(-(?=\s))?\s*(.*?)\s*((?<=\s)-)?\}\}", re.DOTALL)
_ASSIGNMENT = re.compile(r"(\$\w*)\s*(:?=)\s*(.*)", re.DOTALL)
_RANGE = re.compile(r"(?:(\$\w+)\s*(?:,\s*(\$\w+)\s*)?:=\s*)?(.*)", re.DOTALL)
_ENDS = ("end", "else")
_REFUSED = ("define", "template", "block", "break", "continue")


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    is_action: bool


def compile_template(text: str, functions: Functions) -> Callable[[Any], str]:
    """Compile a template. Raises InvalidStage, as does the compiled function for unsuitable data."""
    tokens = list(_tokens(text))
    parser = _Parser(tokens, functions)
    render = parser.block()
    if parser.last:
        raise InvalidStage(f"unexpected {{{{{parser.last}}}}} in a template")

    def fill(data: Any) -> str:
        written: list[str] = []
        render(Scope(data, {"$": data}), written)
        return "".join(written)

    return fill


def _tokens(text: str) -> Iterator[_Token]:
    """Yield text and actions. A dash inside the braces trims adjacent white space."""
    position, trims = 0, False
    for match in _ACTION.finditer(text):
        trim_before, action, trim_after = match.groups()
        yield _Token(_trimmed(text[position : match.start()], before=trims, after=bool(trim_before)), is_action=False)
        yield _Token(action, is_action=True)
        position, trims = match.end(), bool(trim_after)
    yield _Token(_trimmed(text[position:], before=trims, after=False), is_action=False)


def _trimmed(text: str, *, before: bool, after: bool) -> str:
    text = text.lstrip() if before else text
    return text.rstrip() if after else text


class _Parser:
    def __init__(self, tokens: Sequence[_Token], functions: Functions) -> None:
        self._tokens = iter(tokens)
        self._functions = functions
        self.last = ""
        """The action that ended the last block; empty at the end of the text."""

    def block(self) -> Render:
        """Parse up to `end` or `else`."""
        parts: list[Render] = []
        for token in self._tokens:
            if not token.is_action:
                parts.append(_text(token.text))
            elif token.text.partition(" ")[0] in _ENDS:
                self.last = token.text
                break
            elif not token.text.startswith("/*"):
                parts.append(self._action(token.text))
        else:
            self.last = ""

        def render(scope: Scope, written: list[str]) -> None:
            for part in parts:
                part(scope, written)

        return render

    def _action(self, text: str) -> Render:
        word, _, rest = text.partition(" ")
        if word in _REFUSED:
            raise InvalidStage(f"{word!r} is not supported in a template")
        if word == "if":
            condition = self._pipeline(rest)
            then, otherwise = self.block(), self._otherwise("if")

            def render(scope: Scope, written: list[str]) -> None:
                (then if condition(scope) else otherwise)(scope.inner(scope.dot), written)

            return render
        if word == "with":
            name, value = self._named(rest)
            then, otherwise = self.block(), self._otherwise("with")

            def render(scope: Scope, written: list[str]) -> None:
                found = value(scope)
                if found:
                    then(scope.inner(found, {name: found} if name else {}), written)
                else:
                    otherwise(scope.inner(scope.dot), written)

            return render
        if word == "range":
            return self._range(rest)
        if (assignment := _ASSIGNMENT.fullmatch(text)) is not None:
            return _assign(assignment[1], self._pipeline(assignment[3]), declares=assignment[2] == ":=")
        value = self._pipeline(text)
        return lambda scope, written: written.append(show(value(scope)))

    def _pipeline(self, text: str) -> Pipeline:
        return parse_pipeline(text, self._functions)

    def _otherwise(self, kind: str) -> Render:
        """Parse the alternatives after the first branch."""
        if not self.last:
            raise InvalidStage(f"a template ends within {kind!r}")
        if self.last == "end":
            return _nothing
        rest = self.last.removeprefix("else").strip()
        if rest:
            return self._action(rest)  # `else if` and `else with` share the final `end`
        otherwise = self.block()
        if self.last != "end":
            raise InvalidStage(f"a template ends within {kind!r}")
        return otherwise

    def _named(self, text: str) -> tuple[str, Pipeline]:
        match = _RANGE.fullmatch(text)
        assert match is not None
        if match[2]:
            raise InvalidStage(f"too many variables: {text!r}")
        return match[1] or "", self._pipeline(match[3])

    def _range(self, text: str) -> Render:
        match = _RANGE.fullmatch(text)
        assert match is not None
        first, second, value = match[1], match[2], self._pipeline(match[3])
        body, otherwise = self.block(), self._otherwise("range")

        def render(scope: Scope, written: list[str]) -> None:
            items = list(_items(value(scope)))
            for key, item in items:
                names = {first: key, second: item} if second else {first: item} if first else {}
                body(scope.inner(item, names), written)
            if not items:
                otherwise(scope.inner(scope.dot), written)

        return render


def _items(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, Mapping):
        return iter(sorted(value.items()))
    if isinstance(value, list | tuple):
        return iter(enumerate(value))
    if value is None:
        return iter(())
    raise InvalidStage(f"range can't iterate over {value!r}")


def _text(text: str) -> Render:
    return lambda scope, written: written.append(text)


def _nothing(scope: Scope, written: list[str]) -> None:
    """Render nothing."""


def _assign(name: str, value: Pipeline, *, declares: bool) -> Render:
    def render(scope: Scope, written: list[str]) -> None:
        scope.assign(name, value(scope), declares=declares)

    return render


def show(value: Any) -> str:
    """Format a value as Go does."""
    if value is None:
        return "<no value>"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping | list | tuple):
        raise InvalidStage("a template can not print a list or an object; use YAML or Quote")
    return str(value)
