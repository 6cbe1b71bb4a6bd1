"""References to what is scaled, and to the objects that metrics describe."""

from __future__ import annotations

from pilothouse.kube.validation.fields import follow
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import Errors, Path, invalid, required
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json, text
from pilothouse.machinery.validation.object_names import is_valid_path_segment_name


@dataclass(frozen=True, slots=True)
class ReferenceRules:
    allow_empty_group: bool = False
    allow_any_version: bool = False


def validate_reference(reference: Json, path: Path, rules: ReferenceRules) -> Errors:
    for name in ("kind", "name"):
        if not reference.get(name):
            yield required(path.child(name))
        else:
            yield from follow(is_valid_path_segment_name, reference[name], path.child(name))
    if problem := version_problem(reference, rules):
        yield invalid(path.child("apiVersion"), text(reference, "apiVersion"), problem)


def version_problem(reference: Json, rules: ReferenceRules) -> str:
    """Return what is wrong with the reference's apiVersion, empty when nothing is."""
    if rules.allow_any_version:
        return ""
    try:
        version = GroupVersion.parse(text(reference, "apiVersion"))
    except ValueError as error:
        return str(error)
    return "" if version.group or rules.allow_empty_group else "apiVersion must specify API group"
