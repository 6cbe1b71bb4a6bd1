"""Validation of a CustomResourceDefinition, in upstream's order and words, and warnings about unrecognized formats."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.extensions.customresourcedefinitions import conditions
from pilothouse.extensions.customresourcedefinitions.validation import ratcheting
from pilothouse.extensions.customresourcedefinitions.validation.spec import validate_names, validate_spec
from pilothouse.extensions.schema.structural import every_schema
from pilothouse.kinds.conditions import is_true
from pilothouse.machinery import version_rules
from pilothouse.machinery.field import Errors, Path, invalid, required, root
from pilothouse.machinery.objects import Json, annotations_of, metadata
from pilothouse.machinery.validation.formats import format_check
from pilothouse.machinery.validation.immutable import validate_immutable_field
from pilothouse.machinery.validation.names import name_is_dns_subdomain
from pilothouse.machinery.validation.object_meta import validate_object_meta, validate_object_meta_update

_SPEC, _STATUS = root("spec"), root("status")


def validate_definition(definition: Json) -> Errors:
    names = definition["spec"]["names"]
    wanted = f"{names['plural']}.{definition['spec']['group']}"

    def name_rule(name: str, prefix: bool) -> list[str]:
        wrong = [] if name == wanted else ['must be spec.names.plural+"."+spec.group']
        return [*name_is_dns_subdomain(name, prefix), *wrong]

    yield from validate_object_meta(metadata(definition), namespaced=False, name_rule=name_rule, path=root("metadata"))
    yield from validate_spec(definition["spec"], _SPEC, ratcheting.ON_CREATE)
    yield from _validate_on_every_write(definition, None)


def validate_definition_update(definition: Json, old: Json) -> Errors:
    yield from validate_object_meta_update(metadata(definition), metadata(old), path=root("metadata"))
    # Validate strictly first; examine the stored definition for ratcheting only after errors.
    if any(validate_spec(definition["spec"], _SPEC, ratcheting.strictest_on_update(old))):
        yield from validate_spec(definition["spec"], _SPEC, ratcheting.options_on_update(definition, old))
    spec, old_spec, names = definition["spec"], old["spec"], _SPEC.child("names")
    if is_true(old, conditions.ESTABLISHED):
        # Storage keys depend on these fields.
        yield from validate_immutable_field(spec["scope"], old_spec["scope"], _SPEC.child("scope"))
        yield from validate_immutable_field(spec["names"]["kind"], old_spec["names"]["kind"], names.child("kind"))
    yield from validate_immutable_field(spec["group"], old_spec["group"], _SPEC.child("group"))
    yield from validate_immutable_field(spec["names"]["plural"], old_spec["names"]["plural"], names.child("plural"))
    yield from _validate_on_every_write(definition, old)


def validate_status_update(definition: Json, old: Json) -> Errors:
    yield from validate_object_meta_update(metadata(definition), metadata(old), path=root("metadata"))
    yield from validate_names(definition["status"].get("acceptedNames") or {}, _STATUS.child("acceptedNames"))


def _validate_on_every_write(definition: Json, old: Json | None) -> Errors:
    status, versions = definition["status"], definition["spec"].get("versions") or []
    yield from validate_names(status.get("acceptedNames") or {}, _STATUS.child("acceptedNames"))
    yield from validate_stored_versions(status.get("storedVersions"), versions, _STATUS.child("storedVersions"))
    yield from _validate_approval(definition, old)
    if definition["spec"].get("preserveUnknownFields") and not ((old or {}).get("spec") or {}).get(
        "preserveUnknownFields"
    ):
        reason = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        )
        yield invalid(_SPEC.child("preserveUnknownFields"), True, reason)


def validate_stored_versions(stored: Sequence[str] | None, versions: Sequence[Json], path: Path) -> Errors:
    if not stored:
        yield invalid(path, stored, "must have at least one stored version")
        return
    # Each name matches once: a duplicate version name finds none, as upstream.
    not_met = {name: position for position, name in enumerate(stored)}
    for version in versions:
        if not_met.pop(version["name"], None) is None and version.get("storage"):
            yield invalid(path, list(stored), f"must have the storage version {version['name']}")
    for name, position in not_met.items():
        reason = (
            f"missing from spec.versions; {name} was previously a storage version, and must remain in "
            f"spec.versions until a storage migration ensures no data remains persisted in {name} and removes "
            f"{name} from status.storedVersions"
        )
        yield invalid(path.index(position), name, reason)


def _validate_approval(definition: Json, old: Json | None) -> Errors:
    if not conditions.is_protected_group(definition["spec"]["group"]):
        return
    approval = conditions.approval_of(definition)
    if old is not None and conditions.approval_of(old).state is approval.state:
        return
    path = root("metadata", "annotations").key(conditions.APPROVED_ANNOTATION)
    if approval.state is conditions.ApprovalState.MISSING:
        yield required(path, approval.reason)
    elif approval.state is conditions.ApprovalState.INVALID:
        yield invalid(path, annotations_of(definition).get(conditions.APPROVED_ANNOTATION) or "", approval.reason)


_NUMERIC = {"integer": ("int32", "int64"), "number": ("float", "double")}


def unrecognized_formats(spec: Json) -> list[str]:
    """Return the unrecognized formats in the order of the versions, with duplicates."""
    schemas = ((version.get("schema") or {}).get("openAPIV3Schema") for version in spec.get("versions") or ())
    return [part["format"] for schema in schemas for part in every_schema(schema) if not _is_recognized(part)]


def _is_recognized(schema: Json) -> bool:
    kind, name = schema.get("type") or "string", schema.get("format")
    if not name or (schema.get("type") != "string" and not version_rules.holds("NumericFormats")):
        return True
    return format_check(name) is not None if kind == "string" else name in _NUMERIC.get(kind, ())
