"""Static description of a controller, available before its import."""

from __future__ import annotations

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersionResource


@dataclass(frozen=True, slots=True)
class ControllerDescriptor:
    """Description of a controller. Names, aliases and service accounts are kube-controller-manager's."""

    name: str
    module: str
    alias: str = ""
    on_by_default: bool = True
    """Whether `*` includes the controller."""
    with_simulation: bool = False
    """Whether `*` includes the controller only with simulated nodes, where it stands in for a cloud provider."""
    account: str = ""
    """Service account in kube-system; empty = the server's own identity."""
    has_every_right: bool = False
    """Whether the controller acts with full privileges, because Kubernetes defines no role for it."""
    feature: str = ""
    """Feature gate that must be enabled for this controller and its resource."""
    concerns: tuple[GroupVersionResource, ...] = ()
    """Resources whose first object starts the controller; empty = starts at once."""

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, self.alias) if self.alias else (self.name,)
