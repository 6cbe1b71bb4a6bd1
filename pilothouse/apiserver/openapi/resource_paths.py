"""The paths of a resource: of its collection and of its objects, with their parameters."""

from __future__ import annotations

from dataclasses import replace

from pilothouse.apiserver.endpoints.groups import ServedResource
from pilothouse.apiserver.openapi.parameters import NAMESPACE, name_parameter
from pilothouse.apiserver.openapi.route import Parameter
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersion


@dataclass(frozen=True, slots=True)
class ResourcePath:
    """`prefix` and `suffix` go into the operation ids of the routes there: `listNamespacedPod`."""

    path: str
    parameters: tuple[Parameter, ...] = ()
    prefix: str = ""
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class ResourcePaths:
    """The places of one resource, or of one subresource, which has objects only."""

    group_version: GroupVersion
    served: ServedResource

    @property
    def root(self) -> str:
        group_version = self.group_version
        return f"/apis/{group_version}" if group_version.group else f"/api/{group_version.version}"

    @property
    def collection(self) -> ResourcePath:
        plural = self.served.names.plural
        if self.served.namespaced:
            return ResourcePath(f"{self.root}/namespaces/{{namespace}}/{plural}", (NAMESPACE,), "Namespaced")
        return ResourcePath(f"{self.root}/{plural}")

    @property
    def everywhere(self) -> ResourcePath:
        """A namespaced collection across all namespaces."""
        return ResourcePath(f"{self.root}/{self.served.names.plural}", suffix="ForAllNamespaces")

    @property
    def item(self) -> ResourcePath:
        collection, subresource = self.collection, self.served.subresource
        path = f"{collection.path}/{{name}}" + (f"/{subresource}" if subresource else "")
        parameters = (*collection.parameters, name_parameter(self.served.kind.kind))
        return replace(collection, path=path, parameters=parameters)

    def watched(self, place: ResourcePath) -> ResourcePath:
        """The deprecated path for watching what is at another place."""
        return replace(place, path=f"{self.root}/watch{place.path.removeprefix(self.root)}")
