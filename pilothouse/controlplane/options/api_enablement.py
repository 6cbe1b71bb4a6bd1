"""API enablement: which built-in API versions are served."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from pilothouse.apiserver.server.resource_config import parse_runtime_config
from pilothouse.controlplane.flags.declare import flag
from pilothouse.controlplane.flags.values import CONFIGURATION_MAP

_HELP = """Turns built-in APIs on or off with key=true|false:
v1, group/version or group/version/resource for one of them (apps/v1=false)
api/ga, api/beta, api/alpha for all versions of that maturity
api/all for all versions"""


@dataclass(frozen=True)
class APIEnablementOptions:
    title: ClassVar[str] = "API enablement"

    runtime_config: dict[str, str] = flag("runtime-config", CONFIGURATION_MAP, {}, _HELP)  # noqa: RUF009

    def validate(self) -> Iterator[str]:
        if self.runtime_config == {"api/all": "false"}:
            yield "invalid runtime-config with only api/all=false"
        yield from parse_runtime_config(self.runtime_config).problems
