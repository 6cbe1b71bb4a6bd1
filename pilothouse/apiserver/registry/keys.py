"""Where objects live in the store: upstream's keys, so that a real kube-apiserver can read what we wrote.

/registry/configmaps/default/web        /registry/namespaces/default
"""

from __future__ import annotations

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import BadRequest
from pilothouse.machinery.validation.object_names import is_valid_path_segment_name


@dataclass(frozen=True, slots=True)
class Keys:
    prefix: str
    """Ends with a slash."""
    namespaced: bool

    def object(self, namespace: str, name: str) -> str:
        """Raises BadRequest for names that would leave their place in the hierarchy."""
        if self.namespaced and not namespace:
            raise BadRequest("Namespace parameter required.")
        if not name:
            raise BadRequest("Name parameter required.")
        problems = is_valid_path_segment_name(name)
        if problems:
            raise BadRequest(f"Name parameter invalid: {_quote(name)}: {';'.join(problems)}")
        return f"{self.prefix}{namespace}/{name}" if self.namespaced else self.prefix + name

    def names(self, key: str) -> tuple[str, str]:
        """The namespace, if there is one, and the name of the object that lives there."""
        namespace, _, name = key.removeprefix(self.prefix).rpartition("/")
        return namespace, name

    def collection(self, namespace: str) -> str:
        return f"{self.prefix}{namespace}/" if self.namespaced and namespace else self.prefix


def _quote(name: str) -> str:
    return f'"{name}"'
