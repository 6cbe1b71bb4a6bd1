"""Where the objects of a kind are posted to."""

from __future__ import annotations

from urllib.parse import quote

from pilothouse.cli.offline.server import Caller
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

_DISCOVERY = b"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@dataclass(frozen=True, slots=True)
class KindPath:
    """`base` is the path of the group version."""

    base: str
    plural: str
    namespaced: bool

    def collection(self, namespace: str) -> str:
        return (
            f"{self.base}/namespaces/{quote(namespace)}/{self.plural}"
            if self.namespaced
            else f"{self.base}/{self.plural}"
        )

    def item(self, namespace: str, name: str) -> str:
        return f"{self.collection(namespace)}/{quote(name)}"


class KindPaths:
    """The kinds that the server knows: its own, and those of definitions that were added."""

    _paths: dict[tuple[str, str], KindPath]  # by apiVersion and kind

    def __init__(self) -> None:
        self._paths = {}

    async def discover(self, call: Caller) -> None:
        """Learn all that the server has now."""
        for root in ("/api", "/apis"):
            for group in (await call("GET", root, accept=_DISCOVERY)).body["items"]:
                name = group["metadata"].get("name", "")
                for version in group["versions"]:
                    api_version = f"{name}/{version['version']}" if name else version["version"]
                    for resource in version.get("resources", ()):
                        kind = resource["responseKind"].get("kind") or ""
                        path = KindPath(
                            f"{root}/{api_version}", resource["resource"], resource["scope"] == "Namespaced"
                        )
                        if "create" in resource["verbs"] or "update" in resource["verbs"]:
                            self._paths.setdefault((api_version, kind), path)

    def add_definition(self, definition: Json) -> None:
        """Learn the kinds of a CustomResourceDefinition that the server has taken."""
        spec = definition["spec"]
        for version in spec["versions"]:
            if version["served"]:
                api_version = f"{spec['group']}/{version['name']}"
                path = KindPath(f"/apis/{api_version}", spec["names"]["plural"], spec["scope"] == "Namespaced")
                self._paths[api_version, spec["names"]["kind"]] = path

    def get(self, obj: Json) -> KindPath | None:
        return self._paths.get((obj["apiVersion"], obj["kind"]))

    def versions_of(self, kind: str) -> list[str]:
        """Return in which group versions there is a kind of this name."""
        return sorted(api_version for api_version, known in self._paths if known == kind)
