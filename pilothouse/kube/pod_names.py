"""Names that end up in the names of pods."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.machinery.objects import Json, name_of
from pilothouse.machinery.validation.names import is_dns1123_label

_ADVICE = (
    "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; "
    "a DNS label is recommended: "
)


def pod_name_warnings(obj: Json) -> Iterable[str]:
    messages = is_dns1123_label(name_of(obj))
    return [f"{_ADVICE}[{' '.join(messages)}]"] if messages else []
