"""Features: gates for single behaviours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pilothouse.apiserver.server.features import FeatureGates
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.flags.declare import BOOL_MAP, flag


@dataclass(frozen=True)
class FeatureOptions:
    title: ClassVar[str] = "features"

    feature_gates: dict[str, bool] = flag(
        "feature-gates", BOOL_MAP, {}, "Gates as Name=true|false. One that this server can not follow is refused."
    )

    @property
    def gates(self) -> FeatureGates:
        """The gates by their plain names: `kube:` says whose they are, and there are no others."""
        return FeatureGates({name.removeprefix("kube:"): value for name, value in self.feature_gates.items()})

    def validate(self) -> Iterator[str]:
        yield from self.gates.problems()
