"""Whose fault it is when an author's function fails: its own, or that of the object that it was given."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pilothouse.extensions.customresources.model import CustomResource
from pilothouse.machinery.errors import Invalid
from pilothouse.machinery.names import GroupKind
from pilothouse.machinery.objects import Json, name_of
from pilothouse.machinery.status_error import StatusError


@contextmanager
def blamed(resource: CustomResource, version: str, obj: Json) -> Iterator[None]:
    """Run the author's functions on an object of this version that is not validated yet.

    They may count on its types: what they raise for an object that does not fit them is raised as Invalid, which
    says what is wrong with the object.
    """
    try:
        yield
    except StatusError:
        raise
    except Exception:
        refuse_misfit(resource, version, obj)
        raise


def refuse_misfit(resource: CustomResource, version: str, obj: Json) -> None:
    """Raises Invalid with all in which the object does not fit its schema."""
    if wrong := list(resource.schemas.of(version).validate(obj)):
        raise Invalid.of(GroupKind(resource.group, resource.names.kind), name_of(obj), wrong) from None
