"""Server-side apply: PATCH with a configuration that says what its manager wants, and makes the object if need be."""

from __future__ import annotations

from pilothouse.apiserver.endpoints.negotiation import content_type_of
from pilothouse.apiserver.endpoints.patch_types import APPLY_CBOR_PATCH
from pilothouse.apiserver.endpoints.scope import RequestScope
from pilothouse.apiserver.http import Request
from pilothouse.apiserver.registry.options import WriteOptions
from pilothouse.machinery.codec.json import JsonError, parse, printed_numbers, untyped
from pilothouse.machinery.codec.strict_failures import CONVERTING, strict_warnings
from pilothouse.machinery.codec.yaml import ParsedYaml, parse_yaml
from pilothouse.machinery.codec.yaml_nodes import YamlError
from pilothouse.machinery.errors import BadRequest, Conflict
from pilothouse.machinery.govalue import not_an_object
from pilothouse.machinery.objects import Json, uid_of


class ApplyMechanism:
    def __init__(self, request: Request, scope: RequestScope, body: bytes, options: WriteOptions) -> None:
        self.request = request
        self.scope = scope
        self.options = options
        self.body = body
        self._configuration: ParsedYaml | None = None

    @property
    def configuration(self) -> ParsedYaml:
        """Raises BadRequest."""
        # A cached_property of Python 3.11 holds one lock for all requests while the body of one of them is read.
        if self._configuration is None:
            is_cbor = content_type_of(self.request) == APPLY_CBOR_PATCH
            self._configuration = _parse_cbor(self.body) if is_cbor else _parse(self.body)
        return self._configuration

    def patched(self, existing: Json | None) -> Json:
        """Raises StatusError: Conflict with a cause for each field that somebody else owns, unless forced."""
        manager, force = self.options.field_manager, self.options.force
        obj = self.scope.field_manager.apply(existing, self.configuration.value or {}, manager, force=force)
        self.scope.served.default(obj)
        self._report_duplicate_keys()
        if existing is None and uid_of(obj):
            info = self.request.info
            why = f"uid mismatch: the provided object specified uid {uid_of(obj)}, and no existing object was found"
            raise Conflict.of(info.group_resource, info.name, why)
        return self.scope.to_stored(obj)

    def _report_duplicate_keys(self) -> None:
        """Refuse or warn of keys that stand in the configuration twice, as the request's field validation asks."""
        if not self.configuration.strict_error or self.options.field_validation == "Ignore":
            return
        why = CONVERTING + self.configuration.strict_error
        if self.options.field_validation == "Strict":
            raise BadRequest(f"error strict decoding YAML: {why}")
        self.request.warnings.extend(strict_warnings(why))


def _parse(body: bytes) -> ParsedYaml:
    try:
        parsed = _parse_json(body) or _parse_yaml(body)
    except YamlError as error:
        raise BadRequest(f"error decoding YAML: {CONVERTING}{error}") from None
    if parsed.value is not None and not isinstance(parsed.value, dict):
        why = not_an_object(parsed.value)
        raise BadRequest(f"error decoding YAML: error unmarshaling JSON: while decoding JSON: {why}")
    return parsed


def _parse_yaml(body: bytes) -> ParsedYaml:
    """An integer that 64 bits do not hold is a float from here on. Raises YamlError."""
    parsed = parse_yaml(body)
    return ParsedYaml(printed_numbers(untyped(parsed.value)), parsed.strict_error)


def _parse_cbor(body: bytes) -> ParsedYaml:
    """What upstream says of it speaks of YAML nevertheless."""
    from pilothouse.machinery.cbor.decoding import decode, word_for
    from pilothouse.machinery.cbor.wellformed import CborError

    try:
        value = decode(body)
    except CborError as error:
        raise BadRequest(f"error decoding YAML: {error}") from None
    if value is not None and not isinstance(value, dict):
        found = word_for(decode(body, tell_bytes=True))
        raise BadRequest(
            f"error decoding YAML: cbor: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
        )
    return ParsedYaml(value)


def _parse_json(body: bytes) -> ParsedYaml | None:
    """Most clients send JSON, which is YAML too and much quicker to read. None for all that needs a closer look.

    As YAML it is written as JSON again before it is decoded, which is why 1.0 is an integer here.
    """
    if not body.startswith(b"{"):
        return None
    try:
        parsed = parse(body)
    except JsonError:
        return None
    return None if parsed.duplicates else ParsedYaml(printed_numbers(parsed.value))
