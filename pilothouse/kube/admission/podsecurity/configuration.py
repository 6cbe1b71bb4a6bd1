"""PodSecurityConfiguration: defaults for namespaces without labels, and exemptions."""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.kube.admission.podsecurity.policy import LevelVersion, NamespacePolicy, parse_level, parse_version
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import Errors, duplicate, invalid, root
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.object_names import name_is_dns_label, name_is_dns_subdomain

PRIVILEGED = NamespacePolicy()
_MODES = ("enforce", "warn", "audit")


@dataclass(frozen=True, slots=True)
class Configuration:
    defaults: NamespacePolicy = PRIVILEGED
    exempt_namespaces: frozenset[str] = frozenset()
    exempt_users: frozenset[str] = frozenset()
    exempt_runtime_classes: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, config: Json) -> Configuration:
        """Parse a PodSecurityConfiguration. Raise ValueError with every problem."""
        if problems := [str(error) for error in _problems(config)]:
            raise ValueError(f"PodSecurity invalid: {'; '.join(problems)}")
        defaults, exemptions = config.get("defaults") or {}, config.get("exemptions") or {}
        modes = {mode: LevelVersion(parse_level(_level(defaults, mode)), _minor(defaults, mode)) for mode in _MODES}
        return cls(
            NamespacePolicy(**modes),
            exempt_namespaces=frozenset(exemptions.get("namespaces") or ()),
            exempt_users=frozenset(exemptions.get("usernames") or ()),
            exempt_runtime_classes=frozenset(exemptions.get("runtimeClasses") or ()),
        )


def _level(defaults: Json, mode: str) -> str:
    return defaults.get(mode) or "privileged"


def _minor(defaults: Json, mode: str) -> int | None:
    return parse_version(defaults.get(f"{mode}-version") or "latest")


def _problems(config: Json) -> Errors:
    defaults, exemptions = config.get("defaults") or {}, config.get("exemptions") or {}
    for mode in _MODES:
        try:
            parse_level(_level(defaults, mode))
        except ValueError as error:
            yield invalid(root("defaults", mode), defaults[mode], str(error))
        try:
            _minor(defaults, mode)
        except ValueError as error:
            yield invalid(root("defaults", f"{mode}-version"), defaults[f"{mode}-version"], str(error))
    for field in ("namespaces", "runtimeClasses", "usernames"):
        names = exemptions.get(field) or []
        seen: set[str] = set()
        for index, name in enumerate(names):
            path = root("exemptions", field).index(index)
            if wrong := ", ".join(_name_problems(field, name)):
                yield invalid(path, name, wrong)
            elif name in seen:
                yield duplicate(path, name)
            seen.add(name)


def _name_problems(field: str, name: str) -> Iterator[str]:
    if field == "usernames":
        yield from () if name else ("username must not be empty",)
    else:
        yield from name_is_dns_label(name) if field == "namespaces" else name_is_dns_subdomain(name)
