"""Range checks of numbers: ports, user and group ids. Every check returns messages, none for a valid number."""

from __future__ import annotations

from pilothouse.machinery.validation.pattern_format import inclusive_range_error

MAX_ID = 2**31 - 1


def is_valid_port_num(port: int) -> list[str]:
    return is_in_range(port, 1, 65535)


def is_valid_user_id(uid: int) -> list[str]:
    return is_in_range(uid, 0, MAX_ID)


def is_valid_group_id(gid: int) -> list[str]:
    return is_in_range(gid, 0, MAX_ID)


def is_in_range(value: int, low: int, high: int) -> list[str]:
    return [] if low <= value <= high else [inclusive_range_error(low, high)]
