"""Syntax checks of names, labels, keys and other short texts, including upstream's NameIs… rules for object names.

Every check returns upstream's messages; [] for a valid text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from pilothouse.machinery.validation.pattern_format import EMPTY_ERROR, PatternFormat, max_len_error

DNS1123_LABEL_MAX_LENGTH = 63
DNS1123_SUBDOMAIN_MAX_LENGTH = 253
LABEL_MAX_LENGTH = 63

_ENDS = "and must start and end with an alphanumeric character"
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_WITH_UNDERSCORE = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_MESSAGE = (
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', {_ENDS}"
)
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_QUALIFIED_MESSAGE = f"must consist of alphanumeric characters, '-', '_' or '.', {_ENDS}"
_QUALIFIED_EXAMPLES = ("MyName", "my.name", "123-abc")


is_dns1123_subdomain = PatternFormat(_SUBDOMAIN, _SUBDOMAIN_MESSAGE, "example.com", limit=DNS1123_SUBDOMAIN_MAX_LENGTH)

_caseless_subdomain = PatternFormat(
    _SUBDOMAIN,
    f"an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', {_ENDS}",
    "Example.com",
    limit=DNS1123_SUBDOMAIN_MAX_LENGTH,
    unit="bytes",
)

is_dns1123_subdomain_with_underscore = PatternFormat(
    rf"{_LABEL_WITH_UNDERSCORE}(\.{_LABEL_WITH_UNDERSCORE})*",
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', {_ENDS}",
    "example.com",
    limit=DNS1123_SUBDOMAIN_MAX_LENGTH,
)

is_wildcard_dns1123_subdomain = PatternFormat(
    rf"\*\.{_SUBDOMAIN}",
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
    "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
    "*.example.com",
    limit=DNS1123_SUBDOMAIN_MAX_LENGTH,
)

is_dns1035_label = PatternFormat(
    "[a-z]([-a-z0-9]*[a-z0-9])?",
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character",
    "my-name",
    "abc-123",
    limit=63,
)

is_valid_label_value = PatternFormat(
    f"({_QUALIFIED})?",
    f"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', {_ENDS}",
    "MyValue",
    "my_value",
    "12345",
    limit=LABEL_MAX_LENGTH,
    unit="bytes",
)

is_c_identifier = PatternFormat(
    "[A-Za-z_][A-Za-z0-9_]*",
    "a valid C identifier must start with alphabetic character or '_', "
    "followed by a string of alphanumeric characters or '_'",
    "my_name",
    "MY_NAME",
    "MyName",
)

is_http_header_name = PatternFormat(
    "[-A-Za-z0-9]+", "a valid HTTP header must consist of alphanumeric characters or '-'", "X-Header-Name"
)

is_valid_percent = PatternFormat(
    "[0-9]+%", "a valid percent string must be a numeric string followed by an ending '%'", "1%", "93%"
)

_dns1123_label = PatternFormat(
    _LABEL,
    f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', {_ENDS}",
    "my-name",
    "123-abc",
    limit=DNS1123_LABEL_MAX_LENGTH,
)
is_long_name = PatternFormat(
    _SUBDOMAIN, _SUBDOMAIN_MESSAGE, "example.com", limit=DNS1123_SUBDOMAIN_MAX_LENGTH, unit="bytes"
)
_label_key_name = PatternFormat(
    _QUALIFIED, _QUALIFIED_MESSAGE, *_QUALIFIED_EXAMPLES, limit=LABEL_MAX_LENGTH, unit="bytes"
)
_short_label_key = PatternFormat(f"({_SUBDOMAIN}/)?{_QUALIFIED}", "")
_too_many_slashes = PatternFormat(_QUALIFIED, f"a valid label key {_QUALIFIED_MESSAGE}", *_QUALIFIED_EXAMPLES)
_env_var = PatternFormat(
    "[-._a-zA-Z][-._a-zA-Z0-9]*",
    "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', "
    "and must not start with a digit",
    "my.env-name",
    "MY_ENV.NAME",
    "MyEnvName1",
)
_config_map_key = PatternFormat(
    "[-._a-zA-Z0-9]+",
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    "key.name",
    "KEY_NAME",
    "key-name",
    limit=DNS1123_SUBDOMAIN_MAX_LENGTH,
)
_printable_but_equals = PatternFormat("[ -<>-~]*", "")
_port_charset = PatternFormat("[-a-z0-9]+", "")


def is_dns1123_label(value: str) -> list[str]:
    if errors := _dns1123_label(value):
        # A subdomain that is not a label can only contain dots.
        only_dots = not _dns1123_label.matches(value) and is_dns1123_subdomain.matches(value)
        return [*_dns1123_label.length_errors(value), "must not contain dots"] if only_dots else errors
    return []


def is_dns1123_subdomain_caseless(value: str) -> list[str]:
    return _caseless_subdomain(value.lower())


def is_kind_name(value: str) -> list[str]:
    """Check the name of a kind: a DNS label apart from upper case. Returns at most one message with all problems."""
    problems = is_dns1035_label(value.lower())
    return [f"may have mixed case, but should otherwise match: {','.join(problems)}"] if problems else []


def is_qualified_name(value: str) -> list[str]:
    """Check a label key: a name with an optional prefix (DNS subdomain and slash)."""
    if len(value) <= LABEL_MAX_LENGTH and _short_label_key.matches(value):
        return []
    prefix, slash, name = value.rpartition("/")
    if "/" in prefix:
        suffix = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [_too_many_slashes("/")[0] + suffix]
    errors = _prefixed("prefix part ", is_long_name(prefix) if prefix else [EMPTY_ERROR]) if slash else []
    empty = [] if name else [EMPTY_ERROR]
    return errors + _prefixed("name part ", empty + _label_key_name(name))


def is_config_map_key(value: str) -> list[str]:
    return _config_map_key(value) + _leads_upwards(value)


def is_env_var_name(value: str) -> list[str]:
    return _env_var(value) + _leads_upwards(value)


def is_relaxed_env_var_name(value: str) -> list[str]:
    if not value:
        return [f"environment variable name {EMPTY_ERROR}"]
    if _printable_but_equals.matches(value):
        return []
    return ["a valid environment variable name must consist only of printable ASCII characters other than '='"]


def is_valid_port_name(port: str) -> list[str]:
    checks = {
        max_len_error(15): len(port.encode()) > 15,
        "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)": not _port_charset.matches(port),
        "must contain at least one letter (a-z)": not any("a" <= char <= "z" for char in port),
        "must not contain consecutive hyphens": "--" in port,
        "must not begin or end with a hyphen": port.startswith("-") or port.endswith("-"),
    }
    return [message for message, wrong in checks.items() if wrong]


def _leads_upwards(value: str) -> list[str]:
    if value in (".", ".."):
        return [f"must not be '{value}'"]
    return ["must not start with '..'"] if value.startswith("..") else []


def _prefixed(prefix: str, messages: list[str]) -> list[str]:
    return [prefix + message for message in messages]


ValidateName: TypeAlias = Callable[[str, bool], list[str]]
"""(name, is prefix of generated names) → messages."""


def is_valid_path_segment_name(name: str) -> list[str]:
    """Check a name used as a URL path segment."""
    if "/" not in name and "%" not in name and name not in (".", ".."):  # the common case
        return []
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    return is_valid_path_segment_prefix(name)


def is_valid_path_segment_prefix(name: str) -> list[str]:
    return [f"may not contain '{illegal}'" for illegal in "/%" if illegal in name]


def name_is_dns_subdomain(name: str, prefix: bool = False) -> list[str]:
    return is_dns1123_subdomain(_without_trailing_dash(name) if prefix else name)


def name_is_long_name(name: str, prefix: bool = False) -> list[str]:
    """Check a DNS subdomain like upstream's declarative validation: the length counts bytes."""
    return is_long_name(_without_trailing_dash(name) if prefix else name)


def name_is_dns_label(name: str, prefix: bool = False) -> list[str]:
    return is_dns1123_label(_without_trailing_dash(name) if prefix else name)


def name_is_dns1035_label(name: str, prefix: bool = False) -> list[str]:
    return is_dns1035_label(_without_trailing_dash(name) if prefix else name)


def name_is_path_segment(name: str, prefix: bool = False) -> list[str]:
    return is_valid_path_segment_prefix(name) if prefix else is_valid_path_segment_name(name)


def _without_trailing_dash(name: str) -> str:
    """Replace a trailing dash of a prefix, as upstream does, because a suffix follows."""
    return name[:-2] + "a" if len(name) > 1 and name.endswith("-") else name
