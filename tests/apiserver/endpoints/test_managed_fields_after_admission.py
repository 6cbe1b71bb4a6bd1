"""What admission does to managedFields is kept if it can be read, and taken back if not."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from pilothouse.apiserver.admission.chain import AdmissionChain
from pilothouse.apiserver.admission.interface import Attributes, Operation
from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.endpoints.write import admit
from pilothouse.machinery.names import GroupVersionKind, GroupVersionResource
from pilothouse.machinery.objects import Json

ENTRY = {"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:a": {}}}


async def admitted(entries: Any) -> tuple[Json, list[str]]:
    obj: Json = {"metadata": {"managedFields": [ENTRY]}}
    warnings: list[str] = []
    kind, resource = GroupVersionKind("", "v1", "Any"), GroupVersionResource("", "v1", "anys")
    attributes = Attributes(Operation.CREATE, kind, resource, "", "n", "x", User("u"), obj=obj, warn=warnings.append)
    await admit(AdmissionChain([_plugin(lambda o: o["metadata"].update(managedFields=entries))]), attributes)
    return obj, warnings


def _plugin(change: Callable[[Json], None]) -> Any:
    async def run(attributes: Any) -> None:
        change(attributes.obj)

    return SimpleNamespace(name="Changes", handles=lambda operation: True, admit=run)


async def test_a_change_that_makes_sense_is_kept() -> None:
    changed = ENTRY | {"manager": "other"}
    assert await admitted([changed]) == ({"metadata": {"managedFields": [changed]}}, [])


async def test_a_change_that_makes_none_is_taken_back_with_a_warning() -> None:
    obj, warnings = await admitted([ENTRY | {"operation": "Guess"}])
    assert obj == {"metadata": {"managedFields": [ENTRY]}}
    assert warnings[0].endswith("please fix your requests: operation must be `Apply` or `Update`")
