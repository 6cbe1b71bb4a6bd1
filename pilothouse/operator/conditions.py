"""Conditions of a status: `status.conditions.set(Condition("Ready", True, "Applied"))`.

`observedGeneration` and `lastTransitionTime` are handled: the generation comes from the object, and the time changes
with the status of the condition only. A set condition that changes nothing leaves the list equal, so no write follows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import field
from datetime import datetime
from typing import Annotated, Any, Literal, TypeAlias, dataclass_transform

from pilothouse.builder.types.form import AnnotationPath, Form
from pilothouse.builder.types.markers import Default, ListMap, MaxLength, Minimum, MinLength, Pattern
from pilothouse.builder.types.wire import WIRE_FORM, form_of, marked
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json
from pilothouse.machinery.times import system_clock

ConditionStatus: TypeAlias = Literal["True", "False", "Unknown"]


@dataclasses.dataclass(init=False)  # noqa: TID251  (has its own __init__)
class Condition:
    """One condition, as metav1.Condition. A status of None is Unknown.

    >>> from pilothouse.operator import Condition
    >>> Condition("Ready", True, "Applied").status
    'True'
    """

    type: Annotated[str, MinLength(1), MaxLength(316)]
    status: ConditionStatus
    reason: Annotated[str, MinLength(1), MaxLength(1024), Pattern(r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")]
    message: Annotated[str, MaxLength(32768), Default("")]
    observed_generation: Annotated[int, Minimum(0)] | None = None
    last_transition_time: datetime | None = None

    def __init__(
        self,
        type: str,
        status: bool | ConditionStatus | None,
        reason: str,
        message: str = "",
        *,
        observed_generation: int | None = None,
        last_transition_time: datetime | None = None,
    ) -> None:
        self.type = type
        self.status = _STATUSES[status]
        self.reason = reason
        self.message = message
        self.observed_generation = observed_generation
        self.last_transition_time = last_transition_time

    def __bool__(self) -> bool:
        """Whether the status is True."""
        return self.status == "True"


_STATUSES: dict[bool | str | None, ConditionStatus] = {
    True: "True",
    False: "False",
    None: "Unknown",
    "True": "True",
    "False": "False",
    "Unknown": "Unknown",
    "": "Unknown",
}


class Conditions(list[Condition]):
    """The conditions of one status, each type once, in the order of their first `set`.

    >>> from pilothouse.operator import Condition, Conditions
    >>> conditions = Conditions()
    >>> _ = conditions.set(Condition("Ready", False, "Waiting"))
    >>> _ = conditions.set(Condition("Ready", True, "Applied"))
    >>> [(condition.type, condition.status) for condition in conditions], conditions.is_true("Ready")
    ([('Ready', 'True')], True)
    """

    def __init__(
        self,
        conditions: Iterable[Condition] = (),
        *,
        generation: int | None = None,
        clock: Callable[[], datetime] = system_clock,
    ) -> None:
        super().__init__(conditions)
        self.generation = generation
        """Generation of the object; default of `observed_generation`."""
        self._clock = clock

    def get(self, type_: str) -> Condition | None:
        """Return the condition of the type; None without one."""
        return next((condition for condition in self if condition.type == type_), None)

    def is_true(self, type_: str) -> bool:
        """Whether the condition exists with status True."""
        return bool(self.get(type_))

    def set(self, condition: Condition) -> bool:
        """Add or replace the condition of this type; report whether its content changed.

        Without `observed_generation`, the generation of the object is set. Without `last_transition_time`, the time is
        now if the status changed, and stays otherwise.
        """
        old = self.get(condition.type)
        generation = condition.observed_generation
        moment = condition.last_transition_time
        if moment is None:
            unchanged = old is not None and old.status == condition.status
            moment = old.last_transition_time if old is not None and unchanged else None
        new = Condition(
            condition.type,
            condition.status,
            condition.reason,
            condition.message,
            observed_generation=self.generation if generation is None else generation,
            last_transition_time=moment or self._clock().replace(microsecond=0),
        )
        if old is None:
            self.append(new)
        else:
            self[self.index(old)] = new
        return old != new

    def remove(self, condition: Condition | str) -> None:
        """Remove the condition of this type. Idempotent."""
        type_ = condition if isinstance(condition, str) else condition.type
        self[:] = [kept for kept in self if kept.type != type_]


def _conditions_form() -> Form:
    """Return the form of a list that server-side apply merges by type."""
    listed = form_of(list[Condition])
    schema = marked(listed.schema, (ListMap("type"),), AnnotationPath("conditions"))
    schema["items"] = {
        **schema["items"],
        "description": "One aspect of the current state of the object.",
        "required": ["lastTransitionTime", "message", "reason", "status", "type"],
    }

    def read(value: object) -> object:
        return Conditions(listed.read(value)) if isinstance(value, list) else Conditions()

    return Form(schema, read, Conditions)


setattr(Conditions, WIRE_FORM, _conditions_form())


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
@dataclass(kw_only=True)
class Status:
    """Base class of a typed status, with conditions. Subclasses become dataclasses.

    A kind with `status=True` has this class itself: `status["phase"] = "Running"` sets fields without a declaration.

    >>> from pilothouse.operator import Condition, Status
    >>> class BackupStatus(Status):
    ...     last_run: str = ""
    >>> status = BackupStatus(last_run="yesterday")
    >>> status.conditions.set(Condition("Ready", True, "Done"))
    True
    """

    conditions: Conditions = field(default_factory=Conditions)
    undeclared: Json = field(default_factory=dict, init=False, repr=False)
    """Fields without a declaration, by JSON name."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        dataclass(kw_only=True)(cls)

    def __getitem__(self, name: str) -> Any:
        """Return an undeclared field. Raises KeyError."""
        return self.undeclared[name]

    def __setitem__(self, name: str, value: Any) -> None:
        """Set an undeclared field to a JSON value."""
        self.undeclared[name] = value

    def get(self, name: str, default: Any = None) -> Any:
        """Return an undeclared field, or the default."""
        return self.undeclared.get(name, default)
