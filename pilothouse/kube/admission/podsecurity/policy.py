"""Policy of a namespace: level and version to enforce, audit and warn, from labels and PodSecurityConfiguration.

Invalid labels select the restricted level for enforcement, and the privileged level for audit and warnings. The
configuration has defaults for namespaces without labels, and exemptions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import IntEnum

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import Errors, FieldError, duplicate, invalid, root
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json, metadata, name_of
from pilothouse.machinery.validation.names import name_is_dns_label, name_is_dns_subdomain

_PREFIX = "pod-security.kubernetes.io/"
_VERSION = re.compile(r"v1\.(0|[1-9][0-9]*)")
_LABELS = root("metadata", "labels")


class Level(IntEnum):
    """The stricter, the greater."""

    privileged = 0
    baseline = 1
    restricted = 2


@dataclass(frozen=True, slots=True)
class LevelVersion:
    level: Level = Level.privileged
    minor: int | None = None
    """Minor version of v1.<minor>; None is the latest version."""

    def __str__(self) -> str:
        return f"{self.level.name}:{'latest' if self.minor is None else f'v1.{self.minor}'}"

    def is_equivalent(self, other: LevelVersion) -> bool:
        return self == other or self.level is other.level is Level.privileged


@dataclass(frozen=True, slots=True)
class NamespacePolicy:
    enforce: LevelVersion = LevelVersion()
    audit: LevelVersion = LevelVersion()
    warn: LevelVersion = LevelVersion()

    @property
    def modes(self) -> dict[str, LevelVersion]:
        return {"enforce": self.enforce, "audit": self.audit, "warn": self.warn}

    @property
    def is_privileged(self) -> bool:
        return all(mode.level is Level.privileged for mode in self.modes.values())

    def is_equivalent(self, other: NamespacePolicy) -> bool:
        pairs = zip(self.modes.values(), other.modes.values(), strict=True)
        return all(own.is_equivalent(other) for own, other in pairs)


@dataclass(frozen=True, slots=True)
class LabelledPolicy:
    policy: NamespacePolicy
    errors: tuple[FieldError, ...] = ()


def parse_level(text: str) -> Level:
    """Raises ValueError."""
    if text not in Level.__members__:
        raise ValueError(f"must be one of {', '.join(Level.__members__)}")
    return Level[text]


def parse_version(text: str) -> int | None:
    """Return the minor version, or None for the latest. Raise ValueError."""
    if text == "latest":
        return None
    match = _VERSION.fullmatch(text)
    if match is None:
        raise ValueError('must be "latest" or "v1.x"')
    return int(match[1])


def label_of(mode: str) -> str:
    """Return the label for the level of a mode. The version label adds `-version`. Audit annotations use the same
    names.
    """
    return _PREFIX + mode


def policy_of(labels: Mapping[str, str], defaults: NamespacePolicy) -> LabelledPolicy:
    """Return the policy and label errors of a namespace. Defaults apply to missing labels."""
    if not any(label.startswith(_PREFIX) for label in labels):
        return LabelledPolicy(defaults)
    errors: list[FieldError] = []
    modes = {mode: _read(mode, labels, default, errors) for mode, default in defaults.modes.items()}
    policy = NamespacePolicy(**modes)
    understood = labels.get(label_of("enforce")) in Level.__members__
    if understood and label_of("warn") not in labels and policy.enforce.level > policy.warn.level:
        has_version = label_of("warn") + "-version" in labels
        version = policy.warn.minor if has_version else policy.enforce.minor
        policy = replace(policy, warn=LevelVersion(policy.enforce.level, version))
    return LabelledPolicy(policy, tuple(errors))


def _read(mode: str, labels: Mapping[str, str], default: LevelVersion, errors: list[FieldError]) -> LevelVersion:
    level, minor = default.level, default.minor
    if (text := labels.get(label := label_of(mode))) is not None:
        try:
            level = parse_level(text)
        except ValueError as error:
            level = Level.restricted if mode == "enforce" else Level.privileged
            errors.append(invalid(_LABELS.key(label), text, str(error)))
    if (text := labels.get(label := label_of(mode) + "-version")) is not None:
        try:
            minor = parse_version(text)
        except ValueError as error:
            minor = None
            errors.append(invalid(_LABELS.key(label), text, str(error)))
    return LevelVersion(level, minor)


def exempt_namespace_warning(namespace: Json, policy: NamespacePolicy, defaults: NamespacePolicy) -> str:
    """Return a warning about the ineffective labels of an exempt namespace, or an empty string."""
    if policy.is_privileged or policy.is_equivalent(defaults):
        return ""
    labels = metadata(namespace).get("labels") or {}
    ignored = [
        f"{mode}={wanted}"
        for mode, wanted in policy.modes.items()
        if wanted.level is not Level.privileged and {label_of(mode), label_of(mode) + "-version"} & set(labels)
    ]
    reason = f"namespace {quote(name_of(namespace))} is exempt from Pod Security"
    return f"{reason}, and the policy ({', '.join(ignored)}) will be ignored"


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
