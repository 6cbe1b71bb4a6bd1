"""Selection of controllers by a `--controllers` list."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pilothouse.controllers.descriptor import ControllerDescriptor
from pilothouse.controllers.table import CONTROLLERS

ALL, NONE = "*", "-*"


def enabled(
    choice: Sequence[str], *, simulation: bool = False, has_feature: Callable[[str], bool] = lambda name: False
) -> list[ControllerDescriptor]:
    """Return the enabled controllers. `*` enables all defaults, `-*` disables all; `foo` and `-foo` take precedence.

    `simulation` tells whether nodes are simulated; `has_feature` tests a feature gate.
    """
    wanted = [each for each in CONTROLLERS if _is_enabled(each, choice, simulation)]
    return [each for each in wanted if not each.feature or has_feature(each.feature)]


def unknown(choice: Sequence[str]) -> Iterator[str]:
    """Yield names in the list that match no controller."""
    known = {name for each in CONTROLLERS for name in each.names}
    for entry in choice:
        name = entry.removeprefix("-")
        if entry not in (ALL, NONE) and name not in known:
            yield name


def _is_enabled(descriptor: ControllerDescriptor, choice: Sequence[str], simulation: bool) -> bool:
    for entry in choice:
        if entry.removeprefix("-") in descriptor.names:
            return not entry.startswith("-")
    by_default = next((entry for entry in choice if entry in (ALL, NONE)), NONE)
    return by_default == ALL and descriptor.on_by_default and (simulation or not descriptor.with_simulation)
