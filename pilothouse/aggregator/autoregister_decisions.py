"""The decisions of the autoRegisterController about an APIService, by how it is and how it is wanted to be."""

from __future__ import annotations

from enum import Enum

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, labels_of

AUTO_REGISTER_MANAGED_LABEL = "kube-aggregator.kubernetes.io/automanaged"
MANAGE_ON_START = "onstart"
MANAGE_CONTINUOUSLY = "true"


class CurrentState(Enum):
    """The rows: how the APIService is."""

    LOOKUP_ERROR = 1
    NOT_FOUND = 2
    NO_SYNC = 3
    SYNC_ON_START_NOT_PRESENT_AT_START = 4
    SYNC_ON_START_PRESENT_AT_START = 5
    SYNC_ALWAYS = 6


class DesiredState(Enum):
    """The columns: how the APIService is wanted."""

    NOT_FOUND = "A"
    SYNC_ON_START = "B"
    SYNC_ALWAYS = "C"


class Act(Enum):
    FAIL = "error"
    NOTHING = "-"
    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class RegistrationDecision:
    act: Act
    once: bool = False
    """Only as long as the APIService has never been synced successfully."""


_ERROR, _NOTHING = RegistrationDecision(Act.FAIL), RegistrationDecision(Act.NOTHING)
_CREATE, _UPDATE, _DELETE = (
    RegistrationDecision(Act.CREATE),
    RegistrationDecision(Act.UPDATE),
    RegistrationDecision(Act.DELETE),
)
_CREATE_ONCE, _UPDATE_ONCE = RegistrationDecision(Act.CREATE, once=True), RegistrationDecision(Act.UPDATE, once=True)
_DELETE_ONCE = RegistrationDecision(Act.DELETE, once=True)

# fmt: off
_TABLE = {
    #                                                 A. not found   B. sync on start  C. sync always
    CurrentState.LOOKUP_ERROR:                       (_ERROR,        _ERROR,           _ERROR),
    CurrentState.NOT_FOUND:                          (_NOTHING,      _CREATE_ONCE,     _CREATE),
    CurrentState.NO_SYNC:                            (_NOTHING,      _NOTHING,         _NOTHING),
    CurrentState.SYNC_ON_START_NOT_PRESENT_AT_START: (_NOTHING,      _NOTHING,         _NOTHING),
    CurrentState.SYNC_ON_START_PRESENT_AT_START:     (_DELETE_ONCE,  _UPDATE_ONCE,     _UPDATE_ONCE),
    CurrentState.SYNC_ALWAYS:                        (_DELETE,       _UPDATE_ONCE,     _UPDATE),
}
# fmt: on


def decide(current: CurrentState, desired: DesiredState) -> RegistrationDecision:
    return dict(zip(DesiredState, _TABLE[current], strict=True))[desired]


def current_state(api_service: Json | None, *, present_at_start: bool) -> CurrentState:
    if api_service is None:
        return CurrentState.NOT_FOUND
    label = labels_of(api_service).get(AUTO_REGISTER_MANAGED_LABEL)
    if label == MANAGE_CONTINUOUSLY:
        return CurrentState.SYNC_ALWAYS
    if label != MANAGE_ON_START:
        return CurrentState.NO_SYNC
    return (
        CurrentState.SYNC_ON_START_PRESENT_AT_START
        if present_at_start
        else CurrentState.SYNC_ON_START_NOT_PRESENT_AT_START
    )


def desired_state(api_service: Json | None) -> DesiredState:
    if api_service is None:
        return DesiredState.NOT_FOUND
    label = labels_of(api_service)[AUTO_REGISTER_MANAGED_LABEL]
    return DesiredState.SYNC_ON_START if label == MANAGE_ON_START else DesiredState.SYNC_ALWAYS
