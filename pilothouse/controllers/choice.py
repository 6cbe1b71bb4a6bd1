"""Which of the controllers a `--controllers` list enables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pilothouse.controllers.descriptor import ControllerDescriptor
from pilothouse.controllers.table import CONTROLLERS

ALL, NONE = "*", "-*"


def enabled(
    choice: Sequence[str], *, simulation: bool = False, has_feature: Callable[[str], bool] = lambda name: False
) -> list[ControllerDescriptor]:
    """`*` stands for all that are on by default, `-*` for none, `foo` and `-foo` for one, which goes before those.

    `simulation`: whether there are simulated nodes. `has_feature` says which gates are on.
    """
    wanted = [each for each in CONTROLLERS if _is_enabled(each, choice, simulation)]
    return [each for each in wanted if not each.feature or has_feature(each.feature)]


def unknown(choice: Sequence[str]) -> Iterator[str]:
    """The names in the list that no controller has."""
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
