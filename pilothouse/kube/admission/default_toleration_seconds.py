"""DefaultTolerationSeconds: bounded tolerations for not-ready and unreachable nodes."""

from __future__ import annotations

from pilothouse.apiserver.admission.interface import Attributes, Handler, Operation
from pilothouse.kube.admission.config import DEFAULT_TOLERATION_SECONDS
from pilothouse.kube.admission.pods import PODS, spec_of_written_pod

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"


class DefaultTolerationSeconds(Handler):
    name = "DefaultTolerationSeconds"
    resources = (PODS,)
    operations = (Operation.CREATE, Operation.UPDATE)

    def __init__(
        self, *, not_ready: int = DEFAULT_TOLERATION_SECONDS, unreachable: int = DEFAULT_TOLERATION_SECONDS
    ) -> None:
        self._seconds = {NOT_READY: not_ready, UNREACHABLE: unreachable}

    async def admit(self, attributes: Attributes) -> None:
        spec = spec_of_written_pod(attributes)
        if spec is None:
            return
        given = list(spec.get("tolerations") or ())
        for taint, seconds in self._seconds.items():
            if not any(
                ((item.get("key") or taint) == taint and (item.get("effect") or "NoExecute") == "NoExecute")
                for item in given
            ):
                added = {"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}
                spec["tolerations"] = [*(spec.get("tolerations") or ()), added]
