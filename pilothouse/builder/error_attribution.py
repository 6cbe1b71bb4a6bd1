"""Attribution of errors in author functions: to the function, or to the object that violates its schema."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pilothouse.extensions.customresources.model import CustomResource
from pilothouse.machinery.errors import Invalid
from pilothouse.machinery.names import GroupKind
from pilothouse.machinery.objects import Json, name_of
from pilothouse.machinery.status_error import StatusError


@contextmanager
def attributing_errors(resource: CustomResource, version: str, obj: Json) -> Iterator[None]:
    """Run author functions on an object that is not validated yet.

    Author functions may rely on the declared types. If a function raises and the object violates its schema, Invalid is
    raised with the violations; otherwise the error of the function is raised.
    """
    try:
        yield
    except StatusError:
        raise
    except Exception:
        require_valid(resource, version, obj)
        raise


def require_valid(resource: CustomResource, version: str, obj: Json) -> None:
    """Raises Invalid with all violations of the schema."""
    if errors := list(resource.schemas.of(version).validate(obj)):
        raise Invalid.of(GroupKind(resource.group, resource.names.kind), name_of(obj), errors) from None
