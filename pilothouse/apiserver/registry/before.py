"""The steps before an object is created or updated: strategy hooks in upstream's order (rest.BeforeCreate,
BeforeUpdate)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from pilothouse.apiserver.registry.metadata import carry_over, ensure_namespace
from pilothouse.apiserver.registry.operations import RequestContext
from pilothouse.apiserver.registry.strategy import Objections, Strategy
from pilothouse.machinery.errors import Invalid
from pilothouse.machinery.field import Errors, FieldError, Path, located, root
from pilothouse.machinery.names import GroupKind
from pilothouse.machinery.objects import Json, metadata, name_of
from pilothouse.machinery.validation.names import name_is_path_segment
from pilothouse.machinery.validation.object_meta import METADATA, validate_object_meta, validate_object_meta_update


def before_create(
    strategy: Strategy, ctx: RequestContext, kind: GroupKind, obj: Json, objections: Objections = None
) -> None:
    """Prepare and validate a new object that has its name, uid and creation time. Raises Invalid."""
    ensure_namespace(obj, ctx.namespace if strategy.namespaced else "")
    strategy.prepare_for_create_by(ctx.user, obj)
    for warning in strategy.warnings_of_preparation(obj):
        ctx.warn(warning)
    _refuse(kind, obj, chain(objections or (), strategy.validate(obj)))
    # After the strategy's validation, so that its more specific messages take precedence.
    _refuse(kind, obj, _validate_common(strategy, obj))
    for warning in strategy.warnings_on_create(obj):
        ctx.warn(warning)
    strategy.canonicalize(obj)


def before_update(
    strategy: Strategy, ctx: RequestContext, kind: GroupKind, obj: Json, old: Json, objections: Objections = None
) -> None:
    """Prepare and validate an update. Restore the fields that only the server sets. Raises Invalid."""
    ensure_namespace(obj, ctx.namespace if strategy.namespaced else "")
    carry_over(metadata(obj), metadata(old), "generation")
    strategy.prepare_for_update(obj, old)
    _keep_identity(metadata(obj), metadata(old))
    common = _validate_common_update(strategy, obj, old)
    _refuse(kind, obj, chain(common, objections or (), strategy.validate_update(obj, old)))
    for warning in strategy.warnings_on_update(obj, old):
        ctx.warn(warning)
    strategy.canonicalize(obj)


def _keep_identity(meta: Json, old: Json) -> None:
    """Restore the creation time, the uid and the deletion mark. Objects that another program wrote to etcd may have
    no uid."""
    if not meta.get("uid") and old.get("uid"):
        meta["uid"] = old["uid"]
    if old.get("creationTimestamp"):
        meta["creationTimestamp"] = old["creationTimestamp"]
    if old.get("deletionTimestamp"):
        meta["deletionTimestamp"] = old["deletionTimestamp"]
    if meta.get("deletionGracePeriodSeconds") is None and old.get("deletionGracePeriodSeconds") is not None:
        meta["deletionGracePeriodSeconds"] = old["deletionGracePeriodSeconds"]


def _validate_common(strategy: Strategy, obj: Json) -> Errors:
    def validate(path: Path) -> Errors:
        return validate_object_meta(
            metadata(obj), namespaced=strategy.namespaced, name_rule=name_is_path_segment, path=path
        )

    return located(validate, METADATA)


def _validate_common_update(strategy: Strategy, obj: Json, old: Json) -> Errors:
    yield from _validate_common(strategy, obj)
    yield from validate_object_meta_update(metadata(obj), metadata(old), path=root("metadata"))


def _refuse(kind: GroupKind, obj: Json, errors: Iterable[FieldError]) -> None:
    found = list(errors)
    if found:
        raise Invalid.of(kind, name_of(obj), found)
