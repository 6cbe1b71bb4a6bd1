"""The names that a project is made from, and those that follow from them. Each check raises ScaffoldError."""

from __future__ import annotations

import re
from keyword import iskeyword

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.kube_versions import is_version
from pilothouse.machinery.validation.names import is_dns1123_label, is_dns1123_subdomain
from pilothouse.scaffold.errors import ScaffoldError

_KIND = re.compile(r"[A-Z][A-Za-z0-9]{0,58}", re.ASCII)
"""Short enough for the plural, and for the kind of lists, to have 63 characters at most."""
_LABEL = re.compile(r"[a-z][-a-z0-9]{0,52}\.", re.ASCII)
"""How a group begins, so that its server's Service can be named after it."""
_IMPORTED = frozenset(("AGE", "BlockingAPI", "Column", "Errors", "ObjectMeta", "ObjectName", "Reconciler", "Resource"))
"""Names that mean something else in the files of a kind."""
_TAKEN = frozenset(("status", "scale"))
"""Subresources that a kind has by its types."""


@dataclass(frozen=True, slots=True)
class KindName:
    """A kind, in one version or, where that is empty, in the only one that it has."""

    kind: str
    version: str = ""

    @property
    def module(self) -> str:
        """The name of its files, without the suffix."""
        name = self.kind.lower()
        return f"{name}_" if iskeyword(name) else name


def check_group(group: str) -> str:
    """Return the group: a DNS subdomain of several labels, since single ones are Kubernetes' own."""
    _refuse("group", group, is_dns1123_subdomain(group))
    if "." not in group:
        raise ScaffoldError(f'group "{group}" needs a dot, as in {group}.example.com')
    if not _LABEL.match(group):
        raise ScaffoldError(f'group "{group}" must begin with a letter, and with 53 characters at most before a dot')
    return group


def package_of(group: str) -> str:
    """Return the name of the Python package: no other package has it, and no word of Python's is like it."""
    return f"{group.partition('.')[0].replace('-', '_')}_apiserver"


def parse_kind(text: str, *, versioned: bool = False) -> KindName:
    """Return what v1alpha1/Flunder names; the version may be left out unless the kind must be `versioned`."""
    version, slash, kind = text.rpartition("/")
    if versioned and not slash:
        raise ScaffoldError(f'"{text}" must name version and kind, as in v1alpha1/Flunder')
    if slash and not is_version(version):
        raise ScaffoldError(f'version "{version}" must be like v1, v1beta1 or v1alpha1')
    if not _KIND.fullmatch(kind):
        raise ScaffoldError(f'kind "{kind}" must be CamelCase with up to 59 letters and digits, as in Flunder')
    if kind in _IMPORTED or iskeyword(kind):
        raise ScaffoldError(f'kind "{kind}" has another meaning in Python files that use pilothouse.builder')
    return KindName(kind, version)


def parse_subresource(text: str) -> tuple[KindName, str]:
    """Return what Flunder/approve or v1alpha1/Flunder/approve names."""
    kind, slash, name = text.rpartition("/")
    if not slash:
        raise ScaffoldError(f'"{text}" must name kind and subresource, as in Flunder/approve')
    parsed = parse_kind(kind)
    _refuse("subresource", name, is_dns1123_label(name))
    if name in _TAKEN:
        raise ScaffoldError(f'subresource "{name}" is made from the types of {parsed.kind}, not by a function')
    return parsed, name


def _refuse(what: str, value: str, problems: list[str]) -> None:
    if problems:
        raise ScaffoldError(f'{what} "{value}": {"; ".join(problems)}')
