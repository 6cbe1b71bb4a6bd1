"""An answer of the author together with the metadata that only the mirror knows. Pure functions on objects.

the author answers       name, namespace, labels                 spec
the mirror keeps         uid, creationTimestamp, finalizers, managedFields, generation, …
"""

from __future__ import annotations

from pilothouse.apiserver.registry.metadata import new_uid
from pilothouse.machinery.codec.json import canonical_json
from pilothouse.machinery.objects import Json, metadata
from pilothouse.machinery.times import now

_WHICH_OBJECT = frozenset({"name", "namespace", "resourceVersion"})
_MAY_BE_TAKEN_BACK = frozenset({"labels", "annotations", "ownerReferences", "finalizers"})
"""What an author who mentioned it once and does no longer has removed. The rest of an object's metadata stays."""
_NOT_CONTENT = ("kind", "apiVersion", "metadata", "status")


def mentioned(answered: Json) -> frozenset[str]:
    """The metadata that the author keeps of this object."""
    return frozenset(metadata(answered)) - _WHICH_OBJECT


def new_metadata() -> Json:
    """Of an object that appeared without our doing."""
    return {"uid": new_uid(), "creationTimestamp": now(), "generation": 1}


def combined(answered: Json, kept: Json, *, taken_back: frozenset[str] = frozenset()) -> Json:
    """The answer with those parts of the metadata `kept` that it does not mention. `taken_back` is what the author
    mentioned the last time, and does no longer. A generation never goes down."""
    own = {key: value for key, value in metadata(answered).items() if key != "resourceVersion"}
    gone = (taken_back & _MAY_BE_TAKEN_BACK) | {"resourceVersion"}
    meta = {key: value for key, value in kept.items() if key not in own and key not in gone} | own
    if kept.get("generation") and meta["generation"] < kept["generation"]:
        meta["generation"] = kept["generation"]
    return {**answered, "metadata": meta}


def with_next_generation(obj: Json, mirrored: Json) -> Json:
    """With a later generation than the mirrored object has, if anything but metadata and status changed."""
    last = metadata(mirrored).get("generation")
    if not last or metadata(obj)["generation"] > last or same(_content(obj), _content(mirrored)):
        return obj
    return {**obj, "metadata": {**metadata(obj), "generation": last + 1}}


def changes_what_the_author_keeps(obj: Json, mirrored: Json, carried: frozenset[str]) -> bool:
    """`carried` is the metadata that the author's objects have. All other metadata is the mirror's affair alone:
    finalizers, deletion marks, who manages which fields."""
    return not same(_kept_by_author(obj, carried), _kept_by_author(mirrored, carried))


def same(one: Json, other: Json) -> bool:
    """As JSON: to Python, True equals 1."""
    return one == other and canonical_json(one) == canonical_json(other)


def _kept_by_author(obj: Json, carried: frozenset[str]) -> Json:
    return {**obj, "metadata": {key: value for key, value in metadata(obj).items() if key in carried}}


def _content(obj: Json) -> Json:
    return {key: value for key, value in obj.items() if key not in _NOT_CONTENT}
