"""Admission of custom resources: the common chain, and no creates while the definition is terminating."""

from __future__ import annotations

from collections.abc import Callable

from pilothouse.apiserver.admission.chain import AdmissionChain
from pilothouse.apiserver.admission.interface import Attributes, Operation
from pilothouse.machinery.errors import Forbidden

_TERMINATING = "create not allowed while custom resource definition is terminating"


class TerminatingAdmission(AdmissionChain):
    def __init__(self, delegate: AdmissionChain, is_terminating: Callable[[], bool]) -> None:
        super().__init__()
        self._delegate = delegate
        self._is_terminating = is_terminating

    async def admit(self, attributes: Attributes) -> None:
        self._check(attributes)
        await self._delegate.admit(attributes)

    async def validate(self, attributes: Attributes) -> None:
        self._check(attributes)
        await self._delegate.validate(attributes)

    def _check(self, attributes: Attributes) -> None:
        if attributes.operation is Operation.CREATE and self._is_terminating():
            raise Forbidden.of(attributes.resource.group_resource, attributes.name, _TERMINATING)
