"""What is known of a controller before it is imported."""

from __future__ import annotations

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersionResource


@dataclass(frozen=True, slots=True)
class ControllerDescriptor:
    """Names, aliases and service accounts are kube-controller-manager's."""

    name: str
    module: str
    alias: str = ""
    on_by_default: bool = True
    """Whether `*` stands for it, too."""
    with_simulation: bool = False
    """Whether `*` stands for it only where there are simulated nodes: it plays what a cloud does elsewhere."""
    account: str = ""
    """Its account in kube-system, as which it acts; with none it acts as the program itself."""
    has_every_right: bool = False
    """For one that Kubernetes has no role for."""
    feature: str = ""
    """The gate without which there is nothing for it to do, nor its resource."""
    concerns: tuple[GroupVersionResource, ...] = ()
    """The resources whose first object starts it; with none it starts at once."""

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, self.alias) if self.alias else (self.name,)
