"""Names are accepted and refused as upstream does, with its messages."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.machinery.validation import names, pattern_format

SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
KEY_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
CONFIG_KEY_RULE = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  "
    "or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
Check = Callable[[str], list[str]]


@pytest.mark.parametrize(
    ("check", "value"),
    [
        (names.is_dns1123_label, "a"),
        (names.is_dns1123_label, "0-9"),
        (names.is_dns1123_label, "a" * 63),
        (names.is_dns1123_subdomain, "a.b-c.0"),
        (names.is_dns1123_subdomain, "a" * 253),
        (names.is_dns1123_subdomain_with_underscore, "_a.b_c"),
        (names.is_wildcard_dns1123_subdomain, "*.example.com"),
        (names.is_dns1035_label, "a-1"),
        (names.is_qualified_name, "example.com/My_Name.1"),
        (names.is_qualified_name, "a" * 63),
        (names.is_valid_label_value, ""),
        (names.is_valid_label_value, "A.b_c-9"),
        (names.is_valid_path_segment_name, "Sys:Reader"),
        (names.is_valid_path_segment_prefix, ".."),
        (names.is_config_map_key, ".hidden_KEY-1"),
        (names.is_env_var_name, "MY.env-name_"),
        (names.is_relaxed_env_var_name, "9 lives!"),
        (names.is_c_identifier, "_x9"),
        (names.is_http_header_name, "X-Header-9"),
        (names.is_valid_percent, "93%"),
        (names.is_valid_port_name, "http-8"),
    ],
)
def test_a_good_name_has_no_faults(check: Check, value: str) -> None:
    assert check(value) == []


@pytest.mark.parametrize(
    ("check", "value", "faults"),
    [
        (names.is_dns1123_label, "has.dot", ["must not contain dots"]),
        (names.is_dns1123_label, "", [LABEL_RULE]),
        (names.is_dns1123_label, "a\n", [LABEL_RULE]),
        (names.is_dns1123_label, "a" * 64, ["must be no more than 63 characters"]),
        (names.is_dns1123_label, f"{'a' * 63}.b", ["must be no more than 63 characters", "must not contain dots"]),
        (names.is_dns1123_label, "Ä" * 40, ["must be no more than 63 characters", LABEL_RULE]),
        (names.is_dns1123_subdomain, "-dash", [SUBDOMAIN_RULE]),
        (names.is_dns1123_subdomain, "a" * 254, ["must be no more than 253 characters"]),
        (names.is_qualified_name, "", ["name part must be non-empty", f"name part {KEY_RULE}"]),
        (names.is_qualified_name, "/k", ["prefix part must be non-empty"]),
        (names.is_qualified_name, "bad name/x", [f"prefix part {SUBDOMAIN_RULE}"]),
        (names.is_qualified_name, "a" * 64, ["name part must be no more than 63 bytes"]),
        (names.is_qualified_name, f"{'a' * 254}/x", ["prefix part must be no more than 253 bytes"]),
        (
            names.is_qualified_name,
            "a/b/c",
            [f"a valid label key {KEY_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"],
        ),
        (names.is_valid_label_value, "a" * 64, ["must be no more than 63 bytes"]),
        (names.is_valid_path_segment_name, "..", ["may not be '..'"]),
        (names.is_valid_path_segment_name, "a/50%", ["may not contain '/'", "may not contain '%'"]),
        (names.is_config_map_key, "..", ["must not be '..'"]),
        (names.is_config_map_key, "..x", ["must not start with '..'"]),
        (names.is_config_map_key, "", [CONFIG_KEY_RULE]),
        (
            names.is_relaxed_env_var_name,
            "a=b",
            ["a valid environment variable name must consist only of printable ASCII characters other than '='"],
        ),
        (names.is_relaxed_env_var_name, "", ["environment variable name must be non-empty"]),
        (
            names.is_valid_port_name,
            "-1--2" * 4,
            [
                "must be no more than 15 characters",
                "must contain at least one letter (a-z)",
                "must not contain consecutive hyphens",
                "must not begin or end with a hyphen",
            ],
        ),
    ],
)
def test_a_bad_name_has_upstreams_faults(check: Check, value: str, faults: list[str]) -> None:
    assert check(value) == faults


def test_numbers_out_of_range_are_refused() -> None:
    assert pattern_format.is_valid_port_num(0) == ["must be between 1 and 65535, inclusive"]
    assert pattern_format.is_valid_port_num(65535) == []
    assert pattern_format.is_valid_user_id(-1) == ["must be between 0 and 2147483647, inclusive"]
    assert pattern_format.is_valid_group_id(2**31) == ["must be between 0 and 2147483647, inclusive"]


def test_a_prefix_of_a_generated_name_may_end_with_a_dash() -> None:
    assert names.name_is_dns_subdomain("web-", True) == []
    assert names.name_is_dns_subdomain("web-") == [SUBDOMAIN_RULE]
    assert names.name_is_dns_label("-", True) == [LABEL_RULE]
    assert names.name_is_path_segment("..", True) == []
    assert names.name_is_dns1035_label("9svc-", True) != []


@given(st.text(alphabet="aZ0-._/é\n", max_size=70))
def test_a_label_value_is_valid_just_when_it_may_stand_as_a_key_or_is_empty(value: str) -> None:
    as_key = "/" not in value and names.is_qualified_name(value) == []
    assert (names.is_valid_label_value(value) == []) is (as_key or value == "")
