"""Server-side apply: PATCH with the configuration that a field manager intends. Creates the object if necessary."""

from __future__ import annotations

from pilothouse.apiserver.endpoints.negotiation import APPLY_CBOR_PATCH, content_type_of
from pilothouse.apiserver.endpoints.scope import RequestScope
from pilothouse.apiserver.http import Request
from pilothouse.apiserver.registry.options import WriteOptions
from pilothouse.machinery import version_rules
from pilothouse.machinery.codec.body_errors import CONVERTING, strict_warnings
from pilothouse.machinery.codec.json import JsonError, parse, printed_numbers, untyped
from pilothouse.machinery.codec.yaml import ParsedYaml, parse_yaml
from pilothouse.machinery.codec.yaml_nodes import YamlError
from pilothouse.machinery.errors import BadRequest, Conflict
from pilothouse.machinery.gofmt import not_an_object
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
        # A cached_property of Python 3.11 holds one lock for all requests while one body is parsed.
        if self._configuration is None:
            is_cbor = content_type_of(self.request) == APPLY_CBOR_PATCH
            self._configuration = _parse_cbor(self.body) if is_cbor else _parse(self.body)
        return self._configuration

    def patched(self, existing: Json | None) -> Json:
        """Return the new object. Raises StatusError: without force, a Conflict with a cause for each field of
        another manager."""
        manager, force = self.options.field_manager, self.options.force
        obj = self.scope.field_manager.apply(existing, self.configuration.value or {}, manager, force=force)
        self.scope.served.default(obj)
        self._report_duplicate_keys()
        if existing is None and uid_of(obj):
            info = self.request.info
            reason = f"uid mismatch: the provided object specified uid {uid_of(obj)}, and no existing object was found"
            raise Conflict.of(info.group_resource, info.name, reason)
        return self.scope.to_stored(obj)

    def _report_duplicate_keys(self) -> None:
        """Reject or warn of duplicate keys, depending on the field validation of the request."""
        if not self.configuration.strict_error or self.options.field_validation == "Ignore":
            return
        reason = CONVERTING + self.configuration.strict_error
        if self.options.field_validation == "Strict":
            raise BadRequest(f"error strict decoding {_source()}: {reason}")
        self.request.warnings.extend(strict_warnings(reason))


def _source() -> str:
    return "patch" if version_rules.holds("PatchesAreDecodedFirst") else "YAML"


def _parse(body: bytes) -> ParsedYaml:
    try:
        parsed = _parse_json(body) or _parse_yaml(body)
    except YamlError as error:
        problem = "encoding patch" if version_rules.holds("PatchesAreDecodedFirst") else "decoding YAML"
        raise BadRequest(f"error {problem}: {CONVERTING}{error}") from None
    if parsed.value is not None and not isinstance(parsed.value, dict):
        reason = not_an_object(parsed.value)
        raise BadRequest(f"error decoding {_source()}: error unmarshaling JSON: while decoding JSON: {reason}")
    return parsed


def _parse_yaml(body: bytes) -> ParsedYaml:
    """Parse YAML. Integers beyond 64 bits become floats. Raises YamlError."""
    parsed = parse_yaml(body)
    return ParsedYaml(printed_numbers(untyped(parsed.value)), parsed.strict_error)


def _parse_cbor(body: bytes) -> ParsedYaml:
    """Parse CBOR. Upstream's error messages mention YAML here, too."""
    from pilothouse.machinery.cbor.decoding import decode, word_for
    from pilothouse.machinery.cbor.wellformed import CborError

    try:
        value = decode(body)
    except CborError as error:
        raise BadRequest(f"error decoding {_source()}: {error}") from None
    if value is not None and not isinstance(value, dict):
        found = word_for(decode(body, tell_bytes=True))
        reason = f"cbor: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
        raise BadRequest(f"error decoding {_source()}: {reason}")
    return ParsedYaml(value)


def _parse_json(body: bytes) -> ParsedYaml | None:
    """Parse JSON, which is also YAML but much faster to parse. Return None if the body needs the YAML parser.

    Upstream converts YAML to JSON before decoding, so 1.0 is an integer here.
    """
    if not body.startswith(b"{"):
        return None
    try:
        parsed = parse(body)
    except JsonError:
        return None
    return None if parsed.duplicates else ParsedYaml(printed_numbers(parsed.value))
