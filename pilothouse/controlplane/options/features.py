"""Features: gates for single behaviours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pilothouse.apiserver.server.features import FeatureGates
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.flags.declare import flag
from pilothouse.machinery.flags.values import BOOL_MAP


@dataclass(frozen=True)
class FeatureOptions:
    title: ClassVar[str] = "features"

    feature_gates: dict[str, bool] = flag(
        "feature-gates", BOOL_MAP, {}, "Gates as Name=true|false. One that this server can not follow is refused."
    )

    def validate(self) -> Iterator[str]:
        yield from FeatureGates(self.feature_gates).problems()
