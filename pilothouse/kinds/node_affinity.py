"""Which nodes a pod asks for: its node selector, required node affinity, and preferred terms with their weights.

Everything is read once into functions that are then asked about many nodes:

    affinity = required_node_affinity(pod)
    affinity.matches(node)                        → whether the pod may run there
    PreferredTerms.read(terms).score(node)        → the sum of the weights of the terms that match
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import Path, invalid, not_supported, root
from pilothouse.machinery.objects import Json, labels_of, name_of
from pilothouse.machinery.selectors import fields, labels
from pilothouse.machinery.selectors.errors import InvalidSelector
from pilothouse.machinery.selectors.requirement import Operator, Requirement, new_requirement
from pilothouse.machinery.status_error import aggregate

_OPERATORS = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.DOES_NOT_EXIST,
    "Gt": Operator.GREATER_THAN,
    "Lt": Operator.LESS_THAN,
}
_FIELD_OPERATORS = {"In": True, "NotIn": False}
"""Whether the field must have the value."""


@dataclass(frozen=True, slots=True)
class Term:
    """A NodeSelectorTerm: a node must meet all of its expressions, on labels and on fields."""

    labels: labels.Selector = labels.EVERYTHING
    fields: fields.Selector = fields.EVERYTHING
    errors: tuple[str, ...] = ()
    """Why it can not be understood. It then matches no node."""

    @property
    def node_names(self) -> frozenset[str] | None:
        """The only names that a matching node can have; None if the term does not ask for one by name."""
        names = {each.value for each in self.fields.requirements if each.equal and each.field == "metadata.name"}
        if not names:
            return None
        return frozenset(names) if len(names) == 1 else frozenset()

    def matches(self, node: Json) -> bool:
        if self.errors or not self.labels.matches(labels_of(node)):
            return False
        return not self.fields.requirements or self.fields.matches({"metadata.name": name_of(node)})


@dataclass(frozen=True, slots=True)
class NodeSelector:
    """A v1.NodeSelector: one of its terms must match. Without terms that say something it matches no node."""

    terms: tuple[Term, ...]

    @staticmethod
    def read(selector: Json, path: Path | None = None) -> NodeSelector:
        """Read without failing: a term that can not be understood matches nothing, and `check` says why."""
        at = (path or root()).child("nodeSelectorTerms")
        every = enumerate(selector.get("nodeSelectorTerms") or ())
        return NodeSelector(tuple(read_term(term, at.index(i)) for i, term in every if not _is_empty(term)))

    def check(self) -> None:
        """Raises InvalidSelector with all that is wrong with the terms."""
        _raise_any(error for term in self.terms for error in term.errors)

    def matches(self, node: Json) -> bool:
        return any(term.matches(node) for term in self.terms)


@dataclass(frozen=True, slots=True)
class RequiredNodeAffinity:
    """What a node must have for a pod: its `nodeSelector` and its required node affinity, both."""

    labels: labels.Selector = labels.EVERYTHING
    selector: NodeSelector | None = None

    def matches(self, node: Json) -> bool:
        if not self.labels.matches(labels_of(node)):
            return False
        return self.selector is None or self.selector.matches(node)

    @property
    def node_names(self) -> frozenset[str] | None:
        """The only nodes that can match, where every term asks for a node by its name; None if any may."""
        if self.selector is None:
            return None
        names = [term.node_names for term in self.selector.terms]
        known = [each for each in names if each is not None]
        return frozenset().union(*known) if names and len(known) == len(names) else None


@dataclass(frozen=True, slots=True)
class PreferredTerms:
    """Terms that a node need not match, each with its weight."""

    terms: tuple[tuple[int, Term], ...] = ()

    @staticmethod
    def read(preferred: Iterable[Json], path: Path | None = None) -> PreferredTerms:
        """Terms that are empty or have no weight are left out. Raises InvalidSelector."""
        at, read = path or root(), []
        for position, each in enumerate(preferred):
            weight, preference = each.get("weight") or 0, each.get("preference") or {}
            if weight and not _is_empty(preference):
                read.append((weight, read_term(preference, at.index(position))))
        _raise_any(error for _, term in read for error in term.errors)
        return PreferredTerms(tuple(read))

    def score(self, node: Json) -> int:
        """Return the sum of the weights of the terms that match the node."""
        return sum(weight for weight, term in self.terms if term.matches(node))


def required_node_affinity(pod: Json) -> RequiredNodeAffinity:
    """Return what the pod, or anything else that has a pod's spec, requires of its node."""
    spec = pod.get("spec") or {}
    required = node_affinity_of(pod).get("requiredDuringSchedulingIgnoredDuringExecution")
    return RequiredNodeAffinity(
        labels.from_set(spec.get("nodeSelector") or {}), None if required is None else NodeSelector.read(required)
    )


def node_affinity_of(pod: Json) -> Json:
    """Return the pod's `spec.affinity.nodeAffinity`; empty if it has none."""
    affinity = (pod.get("spec") or {}).get("affinity") or {}
    return affinity.get("nodeAffinity") or {}


def read_term(term: Json, path: Path) -> Term:
    """Read one NodeSelectorTerm, which should not be empty. What is wrong is kept in its `errors`."""
    errors: list[str] = []
    by_labels = _label_requirements(term.get("matchExpressions") or (), path.child("matchExpressions"), errors)
    by_fields = _field_requirements(term.get("matchFields") or (), path.child("matchFields"), errors)
    selector, wanted_fields = labels.Selector(tuple(by_labels)), fields.Selector(tuple(by_fields))
    return Term(selector, wanted_fields, tuple(errors))


def _label_requirements(expressions: Sequence[Json], path: Path, errors: list[str]) -> Iterator[Requirement]:
    for position, each in enumerate(expressions):
        operator = each.get("operator") or ""
        if operator not in _OPERATORS:
            errors.append(str(not_supported(path.index(position).child("operator"), operator, _OPERATORS)))
            continue
        try:
            yield new_requirement(each.get("key") or "", _OPERATORS[operator], each.get("values") or ())
        except InvalidSelector as error:
            errors.append(f"{path.index(position)}.{error}")


def _field_requirements(expressions: Sequence[Json], path: Path, errors: list[str]) -> Iterator[fields.Requirement]:
    for position, each in enumerate(expressions):
        at, operator, values = path.index(position), each.get("operator") or "", each.get("values") or []
        if operator not in _FIELD_OPERATORS:
            errors.append(str(not_supported(at.child("operator"), operator, _FIELD_OPERATORS)))
        elif len(values) != 1:
            errors.append(str(invalid(at.child("values"), values, "must have one element")))
        else:
            yield fields.Requirement(each.get("key") or "", values[0], equal=_FIELD_OPERATORS[operator])


def _is_empty(term: Json) -> bool:
    """Such a term selects no node."""
    return not term.get("matchExpressions") and not term.get("matchFields")


def _raise_any(errors: Iterable[str]) -> None:
    if found := list(errors):
        raise InvalidSelector(aggregate(found))
