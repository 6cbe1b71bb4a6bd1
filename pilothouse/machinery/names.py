"""Names of kinds and resources: GroupKind, GroupVersion, GroupVersionKind, GroupVersionResource.

SchemeNamePort is a name in proxy paths: `name`, `name:port` or `scheme:name:port`.
"""

from __future__ import annotations

from dataclasses import field

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote

NO_VERSION_OR_KIND = "couldn't get version/kind; json parse error: "
"""Beginning of the error for a text whose kind cannot be determined."""


@dataclass(frozen=True, slots=True)
class GroupKind:
    group: str
    kind: str

    def __str__(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind


@dataclass(frozen=True, slots=True)
class GroupResource:
    group: str
    resource: str

    def __str__(self) -> str:
        return f"{self.resource}.{self.group}" if self.group else self.resource


@dataclass(frozen=True, slots=True)
class GroupVersion:
    """Version of a group; the core group has an empty name.

    >>> from pilothouse.apiserver import GroupVersion
    >>> str(GroupVersion.parse("apps/v1").kind("Deployment"))
    'apps/v1, Kind=Deployment'
    """

    group: str
    version: str

    @classmethod
    def parse(cls, api_version: str) -> GroupVersion:
        """Parse an `apiVersion`: "v1" or "apps/v1". Raises ValueError for a text with two slashes."""
        group, slash, version = api_version.rpartition("/")
        if "/" in group:
            raise ValueError(f"unexpected GroupVersion string: {api_version}")
        return cls(group if slash else "", version)

    def __str__(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def kind(self, kind: str) -> GroupVersionKind:
        return GroupVersionKind(self.group, self.version, kind)

    def resource(self, resource: str) -> GroupVersionResource:
        return GroupVersionResource(self.group, self.version, resource)


@dataclass(frozen=True, slots=True)
class GroupVersionKind:
    """Kind in one version of a group; the core group has an empty name.

    >>> from pilothouse.client import GroupVersionKind
    >>> GroupVersionKind("apps", "v1", "Deployment").api_version
    'apps/v1'
    """

    group: str
    version: str
    kind: str

    @property
    def group_version(self) -> GroupVersion:
        """Group and version."""
        return GroupVersion(self.group, self.version)

    @property
    def group_kind(self) -> GroupKind:
        """Group and kind, independent of the version."""
        return GroupKind(self.group, self.kind)

    @property
    def api_version(self) -> str:
        """`group/version` as in objects; the version alone for the core group."""
        return str(self.group_version)

    def __str__(self) -> str:
        """Format as Go does in messages: `apps/v1, Kind=Deployment`."""
        return f"{self.group_version}, Kind={self.kind}" if self.group else f"/{self.version}, Kind={self.kind}"


@dataclass(frozen=True, slots=True)
class GroupVersionResource:
    """Resource (plural name) in one version of a group; the core group has an empty name.

    >>> from pilothouse.client import GroupVersionResource
    >>> str(GroupVersionResource("apps", "v1", "deployments").group_resource)
    'deployments.apps'
    """

    group: str
    version: str
    resource: str
    group_resource: GroupResource = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "group_resource", GroupResource(self.group, self.resource))

    @property
    def group_version(self) -> GroupVersion:
        """Group and version."""
        return GroupVersion(self.group, self.version)

    def __str__(self) -> str:
        return f"{self.group}/{self.version}, Resource={self.resource}"


def version_of(api_version: str) -> str:
    """Return the version of an apiVersion, without the group."""
    return api_version.rpartition("/")[2]


def not_registered(kind: str, api_version: str) -> str:
    """Return the error message for a kind that is not registered."""
    return f"no kind {quote(kind)} is registered for version {quote(api_version)}"


_SCHEMES = ("", "http", "https")


@dataclass(frozen=True, slots=True)
class SchemeNamePort:
    """Scheme (may be empty), name, and port (a number, a name or empty)."""

    scheme: str
    name: str
    port: str


def split_scheme_name_port(text: str) -> SchemeNamePort | None:
    """Parse the name; None for any other form."""
    parts = text.split(":")
    if len(parts) > 3:
        return None
    scheme, name, port = {1: ["", *parts, ""], 2: ["", *parts], 3: parts}[len(parts)]
    return SchemeNamePort(scheme, name, port) if name and scheme in _SCHEMES else None
