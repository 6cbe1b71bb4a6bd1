"""Label selectors: `parse` reads a labelSelector, a Selector matches labels and prints canonically.

    selector = parse("tier in (web, db),!old")
    selector.matches({"tier": "db"})  → True
    str(selector)                     → "!old,tier in (db,web)"

`from_label_selector` reads metav1.LabelSelector objects (matchLabels, matchExpressions).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter

from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json
from pilothouse.machinery.selectors.label_parser import parse_requirements, sorted_in_pieces
from pilothouse.machinery.selectors.requirement import (
    FEW,
    Conjunction,
    InvalidSelector,
    Matcher,
    Operator,
    Requirement,
    merged_matcher,
    new_requirement,
)


@dataclass(frozen=True, slots=True)
class Selector(Conjunction[Requirement]):
    """Conjunction of requirements, ordered by key."""

    def __post_init__(self) -> None:
        ordered = tuple(sorted_in_pieces(self.requirements, key=attrgetter("key")))
        object.__setattr__(self, "requirements", ordered)
        compiler = _compile if len(ordered) <= FEW else merged_matcher
        object.__setattr__(self, "matches", compiler(ordered) if self.selectable else _nothing)

    def add(self, *requirements: Requirement) -> Selector:
        return Selector(self.requirements + requirements) if self.selectable else self

    def requires_exact_match(self, label: str) -> str | None:
        """Return the value required by the first requirement on the label, if it allows exactly one."""
        for requirement in self.requirements:
            if requirement.key == label:
                return requirement.exact_value
        return None


def _everything(labels: Mapping[str, str]) -> bool:
    return True


def _nothing(labels: Mapping[str, str]) -> bool:
    return False


def _compile(requirements: Sequence[Requirement]) -> Matcher:
    matchers = [requirement.matcher() for requirement in requirements]
    if len(matchers) == 1:
        return matchers[0]

    def matches(labels: Mapping[str, str]) -> bool:
        for meets in matchers:  # noqa: SIM110  (a generator costs more than the matching)
            if not meets(labels):
                return False
        return True

    return matches if matchers else _everything


EVERYTHING = Selector()
NOTHING = Selector(selectable=False)


# A requirement takes about a hundred times the memory of its text.
@bounded_cache(entries=512, key_bytes=192)
def parse(text: str) -> Selector:
    """Parse a labelSelector. Raises InvalidSelector."""
    return Selector(parse_requirements(text)) if text else EVERYTHING


def from_set(labels: Mapping[str, str]) -> Selector:
    """Return the selector of objects with these labels, without validation."""
    return Selector(tuple(Requirement(key, Operator.EQUALS, (value,)) for key, value in labels.items()))


def validated_from_set(labels: Mapping[str, str]) -> Selector:
    """As `from_set`, but raises InvalidSelector for an invalid label."""
    return Selector(tuple(new_requirement(key, Operator.EQUALS, (value,)) for key, value in labels.items()))


def format_labels(labels: Mapping[str, str]) -> str:
    """Format labels as tables do."""
    return ",".join(sorted(f"{key}={value}" for key, value in labels.items())) or "<none>"


_OPERATORS = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.DOES_NOT_EXIST,
}


def from_label_selector(selector: Json | None) -> Selector:
    """Convert a LabelSelector. None matches no object, an empty selector matches every object. Raises
    InvalidSelector."""
    if selector is None:
        return NOTHING
    requirements = tuple(_requirements(selector))
    return Selector(requirements) if requirements else EVERYTHING


def format_label_selector(selector: Json | None) -> str:
    """Format a LabelSelector as tables do."""
    try:
        return str(from_label_selector(selector)) or "<none>"
    except InvalidSelector:
        return "<error>"


def _requirements(selector: Json) -> Iterator[Requirement]:
    for key, value in (selector.get("matchLabels") or {}).items():
        yield new_requirement(key, Operator.EQUALS, (value,))
    for expression in selector.get("matchExpressions") or ():
        operator = expression.get("operator") or ""
        if operator not in _OPERATORS:
            raise InvalidSelector(f"{quote(operator)} is not a valid label selector operator")
        yield new_requirement(expression.get("key") or "", _OPERATORS[operator], expression.get("values") or ())
