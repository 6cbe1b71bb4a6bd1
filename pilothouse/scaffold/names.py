"""Validation and derivation of project names. Each check raises ScaffoldError."""

from __future__ import annotations

import re
from keyword import iskeyword

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.status_error import PilothouseError
from pilothouse.machinery.validation.names import is_dns1123_label, is_dns1123_subdomain
from pilothouse.machinery.versions import is_version

_KIND = re.compile(r"[A-Z][A-Za-z0-9]{0,58}", re.ASCII)
"""Limits the plural and the list kind to 63 characters."""
_LABEL = re.compile(r"[a-z][-a-z0-9]{0,52}\.", re.ASCII)
"""First label of a group; the server's Service is named after it."""
_RESERVED_NAMES = frozenset(
    ("AGE", "BlockingAPI", "Column", "Errors", "ObjectMeta", "ObjectName", "Reconciler", "Resource")
)
"""Names that the generated files import."""
_OPERATOR_NAMES = frozenset(("Any", "Annotated", "Condition", "Manager", "MinLength", "Object"))
"""Further names that the generated files of an operator import."""
_BUILT_IN = frozenset(("status", "scale"))
"""Subresources that follow from the types of a kind."""


class ScaffoldError(PilothouseError):
    """Nothing was written. The message names the problem and the next step."""


@dataclass(frozen=True, slots=True)
class KindName:
    """A kind in one version; an empty version means its only version."""

    kind: str
    version: str = ""

    @property
    def module(self) -> str:
        """Module name of the kind's files."""
        name = self.kind.lower()
        return f"{name}_" if iskeyword(name) else name


@dataclass(frozen=True, slots=True)
class OperatorName:
    """Names of an operator's project."""

    name: str
    """Name of the Deployment and of the project, such as backup-operator."""
    group: str
    kind: KindName

    @property
    def package(self) -> str:
        return self.name.replace("-", "_")


def parse_operator(name: str, *, group: str = "", kind: str = "") -> OperatorName:
    """Return the names of an operator. The group defaults to NAME.example.com, the kind to the name in CamelCase."""
    _require("name", name, is_dns1123_label(name))
    if not name[0].isalpha() or len(name) > 50:
        raise ScaffoldError(f'name "{name}" must begin with a letter, and with 50 characters at most')
    stem = name.removesuffix("-operator") or name
    chosen = parse_kind(kind or "".join(word.capitalize() for word in stem.split("-")))
    if chosen.kind in _OPERATOR_NAMES:
        raise ScaffoldError(f'kind "{chosen.kind}" is reserved: choose another with --kind')
    return OperatorName(f"{stem}-operator", check_group(group or f"{stem}.example.com"), chosen)


def check_group(group: str) -> str:
    """Return a valid group: a DNS subdomain with a dot, because single labels belong to Kubernetes."""
    _require("group", group, is_dns1123_subdomain(group))
    if "." not in group:
        raise ScaffoldError(f'group "{group}" needs a dot, as in {group}.example.com')
    if not _LABEL.match(group):
        raise ScaffoldError(f'group "{group}" must begin with a letter, and with 53 characters at most before a dot')
    return group


def package_of(group: str) -> str:
    """Return the Python package name, which collides with no other package or keyword."""
    return f"{group.partition('.')[0].replace('-', '_')}_apiserver"


def parse_kind(text: str, *, versioned: bool = False) -> KindName:
    """Parse v1alpha1/Flunder. The version is optional unless `versioned`."""
    version, slash, kind = text.rpartition("/")
    if versioned and not slash:
        raise ScaffoldError(f'"{text}" must name version and kind, as in v1alpha1/Flunder')
    if slash and not is_version(version):
        raise ScaffoldError(f'version "{version}" must be like v1, v1beta1 or v1alpha1')
    if not _KIND.fullmatch(kind):
        raise ScaffoldError(f'kind "{kind}" must be CamelCase with up to 59 letters and digits, as in Flunder')
    if kind in _RESERVED_NAMES or iskeyword(kind):
        raise ScaffoldError(f'kind "{kind}" is reserved: the generated files import or define this name')
    return KindName(kind, version)


def parse_subresource(text: str) -> tuple[KindName, str]:
    """Parse Flunder/approve or v1alpha1/Flunder/approve."""
    kind, slash, name = text.rpartition("/")
    if not slash:
        raise ScaffoldError(f'"{text}" must name kind and subresource, as in Flunder/approve')
    parsed = parse_kind(kind)
    _require("subresource", name, is_dns1123_label(name))
    if name in _BUILT_IN:
        raise ScaffoldError(f'subresource "{name}" follows from the types of {parsed.kind}: declare the field instead')
    return parsed, name


def _require(field: str, value: str, problems: list[str]) -> None:
    if problems:
        raise ScaffoldError(f'{field} "{value}": {"; ".join(problems)}')
