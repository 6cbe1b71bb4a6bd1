"""Keys of objects in the store. They are upstream's keys, so that kube-apiserver can read our stores.

/registry/configmaps/default/web        /registry/namespaces/default
"""

from __future__ import annotations

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import BadRequest
from pilothouse.machinery.validation.names import is_valid_path_segment_name


@dataclass(frozen=True, slots=True)
class Keys:
    prefix: str
    """Ends with a slash."""
    namespaced: bool

    def object(self, namespace: str, name: str) -> str:
        """Return the key of an object. Raises BadRequest for names that would escape their prefix."""
        if self.namespaced and not namespace:
            raise BadRequest("Namespace parameter required.")
        if not name:
            raise BadRequest("Name parameter required.")
        problems = is_valid_path_segment_name(name)
        if problems:
            raise BadRequest(f"Name parameter invalid: {_quote(name)}: {';'.join(problems)}")
        return f"{self.prefix}{namespace}/{name}" if self.namespaced else self.prefix + name

    def names(self, key: str) -> tuple[str, str]:
        """Return the namespace ("" if cluster-scoped) and the name in a key."""
        namespace, _, name = key.removeprefix(self.prefix).rpartition("/")
        return namespace, name

    def collection(self, namespace: str) -> str:
        return f"{self.prefix}{namespace}/" if self.namespaced and namespace else self.prefix


def _quote(name: str) -> str:
    return f'"{name}"'
