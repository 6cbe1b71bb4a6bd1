"""Field selectors: `parse` reads a fieldSelector, a Selector matches the fields exposed by a kind.

Missing fields count as empty strings. In values `,`, `=` and `\\` are escaped with `\\`:

    selector = parse("metadata.name=a,spec.nodeName!=")
    selector.requires_exact_match("metadata.name")  → "a"
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.machinery.checkpoints import checkpoint
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.selectors.requirement import FEW, Conjunction, Constraint, InvalidSelector, Matcher, merged

_ESCAPED = re.compile(r"\\.|[,=]|\\", re.DOTALL)
_SPECIAL = re.compile(r"[\\,=]")
_TERM = re.compile(r"(?:\\.|[^\\,])*\\?", re.DOTALL)
_OPERATOR = re.compile("!=|==|=")


@dataclass(frozen=True, slots=True)
class Requirement:
    """The field has the value; with `equal` False, any other value."""

    field: str
    value: str
    equal: bool = True

    def __str__(self) -> str:
        return f"{self.field}{'=' if self.equal else '!='}{escape_value(self.value)}"


Transform: TypeAlias = Callable[[Requirement], Requirement | None]


@dataclass(frozen=True, slots=True)
class Selector(Conjunction[Requirement]):
    """Conjunction of requirements."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "matches", _compile(self.requirements) if self.selectable else _nothing)

    def requires_exact_match(self, name: str) -> str | None:
        """Return the value required of the field, or None."""
        return next((term.value for term in self.requirements if term.equal and term.field == name), None)

    def transform(self, change: Transform) -> Selector:
        """Apply `change` to each requirement; None drops the requirement, exceptions propagate."""
        results = (change(requirement) for requirement in self.requirements)
        return Selector(tuple(requirement for requirement in results if requirement), self.selectable)


def _everything(fields: Mapping[str, str]) -> bool:
    return True


def _nothing(fields: Mapping[str, str]) -> bool:
    return False


def _compile(requirements: tuple[Requirement, ...]) -> Matcher:
    if not requirements:
        return _everything
    if len(requirements) == 1 and requirements[0].equal:
        name, expected = requirements[0].field, requirements[0].value
        return lambda fields: fields.get(name, "") == expected

    if len(requirements) > FEW:
        return _compile_many(requirements)

    def matches(fields: Mapping[str, str]) -> bool:
        for term in requirements:  # noqa: SIM110  (a generator costs more than the matching)
            if (fields.get(term.field, "") == term.value) is not term.equal:
                return False
        return True

    return matches


def _compile_many(requirements: tuple[Requirement, ...]) -> Matcher:
    constraints: dict[str, Constraint] = {}
    for term in requirements:
        constraint = constraints.get(term.field) or constraints.setdefault(term.field, Constraint())
        constraint.allow(frozenset((term.value,))) if term.equal else constraint.denied.add(term.value)
    return merged(constraints, is_met_by_absence=lambda constraint: constraint.is_met(""))


EVERYTHING = Selector()
NOTHING = Selector(selectable=False)


# A requirement takes about a hundred times the memory of its text.
@bounded_cache(entries=512, key_bytes=192)
def parse(text: str) -> Selector:
    """Parse a fieldSelector. Raises InvalidSelector."""
    return Selector(tuple(_requirements(text))) if text else EVERYTHING


def label_not_supported(label: str) -> str:
    """Return the error message for a field label that the kind does not support."""
    return f"field label not supported: {label}"


def from_set(fields: Mapping[str, str]) -> Selector:
    """Return the selector of objects whose fields have these values."""
    return Selector(tuple(Requirement(name, value) for name, value in fields.items()))


def escape_value(value: str) -> str:
    return _SPECIAL.sub(r"\\\g<0>", value)


def unescape_value(text: str) -> str:
    """Unescape a value. Raises InvalidSelector for an unescaped special character or an invalid escape."""
    return _ESCAPED.sub(_unescaped, text) if _SPECIAL.search(text) else text


def _unescaped(match: re.Match[str]) -> str:
    sequence = match[0]
    if sequence in (",", "="):
        raise InvalidSelector(f"invalid field selector: unescaped character in value: {ord(sequence)}")
    if sequence[1:] not in ("\\", ",", "="):
        raise InvalidSelector(f"invalid field selector: invalid escape sequence: {sequence}")
    return sequence[1:]


def _requirements(text: str) -> Iterator[Requirement]:
    for term in sorted(_terms(text)):
        checkpoint()
        operator = _OPERATOR.search(term)
        if operator is None:
            raise InvalidSelector(f"invalid selector: '{text}'; can't understand '{term}'")
        value = unescape_value(term[operator.end() :])
        yield Requirement(term[: operator.start()], value, equal=operator[0] != "!=")


def _terms(text: str) -> Iterator[str]:
    """Return the terms between unescaped commas, without empty terms."""
    return (term for term in _TERM.findall(text) if term)
