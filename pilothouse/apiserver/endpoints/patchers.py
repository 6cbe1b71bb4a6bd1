"""The patch types: each parses its body once, and applies to any number of states of an object."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Protocol, TypeVar

from pilothouse.apiserver.endpoints.decoding import DecodedObject
from pilothouse.apiserver.endpoints.negotiation import JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH
from pilothouse.apiserver.endpoints.scope import RequestScope
from pilothouse.apiserver.http import Request
from pilothouse.machinery import version_rules
from pilothouse.machinery.codec.json import JsonError, ParsedJson, dump_spelled, parse_printed, parse_spelled
from pilothouse.machinery.errors import BadRequest, Invalid, RequestEntityTooLarge
from pilothouse.machinery.field import (
    invalid,
    root,
)
from pilothouse.machinery.gofmt import escape_html, go_value, not_an_object
from pilothouse.machinery.names import GroupKind
from pilothouse.machinery.objects import METADATA_ORDER, Json, metadata
from pilothouse.machinery.patch import json_patch, merge_patch, strategic
from pilothouse.machinery.patch.interface import (
    MalformedPatch,
    PatchDoesNotApply,
    PatchError,
    PatchFailed,
    TooManyOperations,
)
from pilothouse.machinery.schema.object_type import DecodeError
from pilothouse.machinery.server_errors import ERROR_IN_REQUEST
from pilothouse.machinery.status_error import StatusError

_NO_KIND = GroupKind("", "")
REDACTED = "<secret contents redacted>"
"""Upstream's replacement for Secret data in validation errors."""

T = TypeVar("T")


class ObjectPatcher(Protocol):
    def apply(self, current: Json) -> Json:
        """Return the patched object, decoded as its kind; consumes `current`. Raises StatusError."""


class _Patcher:
    """The base class of the patch types: the parsed body, and the handling of unknown fields."""

    def __init__(self, request: Request, scope: RequestScope, body: bytes, field_validation: str) -> None:
        self.warn = request.warnings.append
        self.scope = scope
        self.field_validation = field_validation
        self.strict = field_validation != "Ignore"
        try:
            parsed = self.parse(body)
        except JsonError as error:
            raise BadRequest(self.decoding_error(body, error)) from None
        self.patch: Any = parsed.value
        self.spelled = parsed.spelled
        self.strict_errors = list(parsed.duplicates)

    def parse(self, body: bytes) -> ParsedJson:
        """Raises JsonError."""
        return parse_spelled(body)

    def decoding_error(self, body: bytes, error: JsonError) -> str:
        if version_rules.holds("PatchesAreDecodedFirst"):
            return "invalid JSON patch"
        return f"error decoding patch: {error}" if self.strict else self.unchecked_error(body, error)

    def unchecked_error(self, body: bytes, error: JsonError) -> str:
        """Return the message without field validation, when upstream reads the body only in order to apply it."""
        return str(error)

    def read_patched(self, patched: Any) -> Json:
        """Decode the result of a patch that upstream applies to the text of the object."""
        decoder = self.scope.served.decoder
        # Go sorts the keys of an object without a Go type.
        text = dump_spelled(patched, sort_keys=decoder.patch_schema is None)
        decode = partial(decoder.normalise, spelled=self.spelled)
        return self.finish(patched, decode, lambda: escape_html(text.decode()))

    def finish(self, obj: Any, decode: Callable[[Any], DecodedObject], shown: Callable[[], str]) -> Json:
        """Check types, unknown and duplicate fields. `shown` returns the value in error messages. Errors of a Secret
        show no value: errors are logged, and the author of a patch may lack read access."""
        if self.scope.served.is_confidential:
            shown = _redacted
        try:
            decoded = decode(obj)
        except DecodeError as error:
            raise _refused(shown(), str(error)) from None
        self._report_strict_errors([*self.strict_errors, *decoded.strict_errors], shown)
        return decoded.obj

    def _report_strict_errors(self, strict_errors: Iterable[str], shown: Callable[[], str]) -> None:
        found = list(strict_errors)
        if not found or self.field_validation == "Ignore":
            return
        if self.field_validation == "Strict":
            raise _refused(shown(), f"strict decoding error: {', '.join(found)}")
        for problem in found:
            self.warn(problem)


class JsonPatcher(_Patcher):
    def __init__(self, request: Request, scope: RequestScope, body: bytes, field_validation: str) -> None:
        super().__init__(request, scope, body, field_validation)
        self.operations = _translated(lambda: json_patch.decode(self.patch, strict=self.strict))
        duplicates = [f"json patch {e}" for e in self.strict_errors]
        self.strict_errors = sorted([*duplicates, *self.operations.strict_errors], key=_operation_at)

    def apply(self, current: Json) -> Json:
        patched = _translated(lambda: self.operations.apply(_in_go_order(current)))
        return self.read_patched(patched)


def _operation_at(strict_error: str) -> int:
    """Return the index of the operation in a strict error. Errors are in the order of the text."""
    found = re.search(r'"\[(\d+)\]', strict_error)
    return int(found[1]) if found else 0


class MergePatcher(_Patcher):
    def __init__(self, request: Request, scope: RequestScope, body: bytes, field_validation: str) -> None:
        super().__init__(request, scope, body, field_validation)
        _translated(lambda: merge_patch.check(self.patch, strict=self.strict))

    def unchecked_error(self, body: bytes, error: JsonError) -> str:
        return merge_patch.MALFORMED

    def apply(self, current: Json) -> Json:
        patched = merge_patch.apply(_in_go_order(current), self.patch)
        return self.read_patched(patched)


class StrategicMergePatcher(_Patcher):
    def __init__(self, request: Request, scope: RequestScope, body: bytes, field_validation: str) -> None:
        super().__init__(request, scope, body, field_validation)
        if self.patch is None:
            self.patch = {}
        if not isinstance(self.patch, dict):
            raise BadRequest(not_an_object(self.patch))

    def parse(self, body: bytes) -> ParsedJson:
        return parse_printed(body)

    def decoding_error(self, body: bytes, error: JsonError) -> str:
        return str(error)

    def apply(self, current: Json) -> Json:
        schema = self.scope.served.decoder.patch_schema
        assert schema is not None, "only kinds with a schema are installed with this patch type"
        patched = _translated(lambda: strategic.apply(current, self.patch, schema))
        return self.finish(patched, self.scope.served.decoder.convert, lambda: go_value(self.patch))


PATCHERS: dict[str, Callable[[Request, RequestScope, bytes, str], ObjectPatcher]] = {
    JSON_PATCH: JsonPatcher,
    MERGE_PATCH: MergePatcher,
    STRATEGIC_MERGE_PATCH: StrategicMergePatcher,
}


def _in_go_order(obj: Json) -> Json:
    """Return the object with its metadata in the field order of Go's struct, because error messages show the whole
    object."""
    meta = metadata(obj)
    return obj | {"metadata": {name: meta[name] for name in METADATA_ORDER if name in meta}}


def _redacted() -> str:
    return REDACTED


def _refused(shown: str, problem: str) -> Invalid:
    return Invalid.of(_NO_KIND, "", [invalid(root("patch"), shown, problem)])


def _translated(do: Callable[[], T]) -> T:
    try:
        return do()
    except MalformedPatch as error:
        raise BadRequest(str(error)) from None
    except TooManyOperations as error:
        raise RequestEntityTooLarge.of(str(error)) from None
    except PatchDoesNotApply:
        raise Invalid(ERROR_IN_REQUEST, details={}) from None
    except (PatchFailed, PatchError) as error:
        raise StatusError(str(error)) from None
