"""Node affinity: node selectors, required terms, and preferred terms with their weights.

A pod is compiled once and then matched against many nodes:

    affinity = required_node_affinity(pod)
    affinity.matches(node)                        → whether the node is allowed
    PreferredTerms.read(terms).score(node)        → the sum of the weights of matching terms
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import Path, invalid, not_supported, root
from pilothouse.machinery.objects import Json, labels_of, name_of
from pilothouse.machinery.selectors import fields, labels
from pilothouse.machinery.selectors.requirement import InvalidSelector, Operator, Requirement, new_requirement
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
"""operator -> whether the field must equal the value"""


@dataclass(frozen=True, slots=True)
class Term:
    """A NodeSelectorTerm: a node matches if all expressions on labels and fields match."""

    labels: labels.Selector = labels.EVERYTHING
    fields: fields.Selector = fields.EVERYTHING
    errors: tuple[str, ...] = ()
    """Parse errors; a term with errors matches no node."""

    @property
    def node_names(self) -> frozenset[str] | None:
        """Names that a matching node can have; None if the term does not restrict the name."""
        names = {field.value for field in self.fields.requirements if field.equal and field.field == "metadata.name"}
        if not names:
            return None
        return frozenset(names) if len(names) == 1 else frozenset()

    def matches(self, node: Json) -> bool:
        if self.errors or not self.labels.matches(labels_of(node)):
            return False
        return not self.fields.requirements or self.fields.matches({"metadata.name": name_of(node)})


@dataclass(frozen=True, slots=True)
class NodeSelector:
    """A v1.NodeSelector: a node matches if one term matches. Empty terms, and no terms, match no node."""

    terms: tuple[Term, ...]

    @staticmethod
    def read(selector: Json, path: Path | None = None) -> NodeSelector:
        """Never raises: an invalid term matches no node, and `check` reports its errors."""
        at = (path or root()).child("nodeSelectorTerms")
        every = enumerate(selector.get("nodeSelectorTerms") or ())
        return NodeSelector(tuple(read_term(term, at.index(i)) for i, term in every if not _is_empty(term)))

    def check(self) -> None:
        """Raise InvalidSelector with the errors of all terms."""
        _raise_any(error for term in self.terms for error in term.errors)

    def matches(self, node: Json) -> bool:
        return any(term.matches(node) for term in self.terms)


@dataclass(frozen=True, slots=True)
class RequiredNodeAffinity:
    """The pod's `nodeSelector` and required node affinity; a node must match both."""

    labels: labels.Selector = labels.EVERYTHING
    selector: NodeSelector | None = None

    def matches(self, node: Json) -> bool:
        if not self.labels.matches(labels_of(node)):
            return False
        return self.selector is None or self.selector.matches(node)

    @property
    def node_names(self) -> frozenset[str] | None:
        """Names of the nodes that can match, if every term restricts the name; else None."""
        if self.selector is None:
            return None
        names = [term.node_names for term in self.selector.terms]
        known = [name for name in names if name is not None]
        return frozenset().union(*known) if names and len(known) == len(names) else None


@dataclass(frozen=True, slots=True)
class PreferredTerms:
    """Preferred terms with their weights."""

    terms: tuple[tuple[int, Term], ...] = ()

    @staticmethod
    def read(preferred: Iterable[Json], path: Path | None = None) -> PreferredTerms:
        """Skip terms that are empty or have no weight. Raises InvalidSelector."""
        at, read = path or root(), []
        for position, term in enumerate(preferred):
            weight, preference = term.get("weight") or 0, term.get("preference") or {}
            if weight and not _is_empty(preference):
                read.append((weight, read_term(preference, at.index(position))))
        _raise_any(error for _, term in read for error in term.errors)
        return PreferredTerms(tuple(read))

    def score(self, node: Json) -> int:
        """Return the sum of the weights of the terms that match the node."""
        return sum(weight for weight, term in self.terms if term.matches(node))


def required_node_affinity(pod: Json) -> RequiredNodeAffinity:
    """Return the node requirements of a pod or a pod template."""
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
    """Read a non-empty NodeSelectorTerm. Parse errors are kept in `errors`."""
    errors: list[str] = []
    by_labels = _label_requirements(term.get("matchExpressions") or (), path.child("matchExpressions"), errors)
    by_fields = _field_requirements(term.get("matchFields") or (), path.child("matchFields"), errors)
    selector, wanted_fields = labels.Selector(tuple(by_labels)), fields.Selector(tuple(by_fields))
    return Term(selector, wanted_fields, tuple(errors))


def _label_requirements(expressions: Sequence[Json], path: Path, errors: list[str]) -> Iterator[Requirement]:
    for position, expression in enumerate(expressions):
        operator = expression.get("operator") or ""
        if operator not in _OPERATORS:
            errors.append(str(not_supported(path.index(position).child("operator"), operator, _OPERATORS)))
            continue
        try:
            yield new_requirement(expression.get("key") or "", _OPERATORS[operator], expression.get("values") or ())
        except InvalidSelector as error:
            errors.append(f"{path.index(position)}.{error}")


def _field_requirements(expressions: Sequence[Json], path: Path, errors: list[str]) -> Iterator[fields.Requirement]:
    for position, expression in enumerate(expressions):
        at, operator, values = path.index(position), expression.get("operator") or "", expression.get("values") or []
        if operator not in _FIELD_OPERATORS:
            errors.append(str(not_supported(at.child("operator"), operator, _FIELD_OPERATORS)))
        elif len(values) != 1:
            errors.append(str(invalid(at.child("values"), values, "must have one element")))
        else:
            yield fields.Requirement(expression.get("key") or "", values[0], equal=_FIELD_OPERATORS[operator])


def _is_empty(term: Json) -> bool:
    """An empty term matches no node."""
    return not term.get("matchExpressions") and not term.get("matchFields")


def _raise_any(errors: Iterable[str]) -> None:
    if problems := list(errors):
        raise InvalidSelector(aggregate(problems))
