"""SELinux: only the types of containers, and neither a user nor a role."""

from __future__ import annotations

from dataclasses import field

from pilothouse.kube.admission.podsecurity.checks import CheckedPod, CheckPod, Violation
from pilothouse.kube.admission.podsecurity.wording import named, setters
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

_TYPES = frozenset(("", "container_t", "container_init_t", "container_kvm_t"))


@dataclass(slots=True)
class _SELinuxFindings:
    allowed: frozenset[str]
    types: set[str] = field(default_factory=set)
    user: bool = False
    role: bool = False

    def is_bad(self, security: Json) -> bool:
        """Remembers what it finds."""
        options = security.get("seLinuxOptions") or {}
        kind, user, role = (options.get(name) or "" for name in ("type", "user", "role"))
        if kind not in self.allowed:
            self.types.add(kind)
        self.user, self.role = self.user or bool(user), self.role or bool(role)
        return kind not in self.allowed or bool(user or role)

    def __str__(self) -> str:
        parts = [named("type", sorted(self.types))] if self.types else []
        parts += ["user may not be set"] if self.user else []
        parts += ["role may not be set"] if self.role else []
        return "; ".join(parts)


def se_linux_options(*more: str) -> CheckPod:
    """`more` types are allowed besides those that always are."""
    allowed = _TYPES | set(more)

    def check(pod: CheckedPod) -> Violation | None:
        found = _SELinuxFindings(allowed)
        who = setters(found.is_bad(pod.security), pod.names_of(found.is_bad))
        detail = f"{who} set forbidden securityContext.seLinuxOptions: {found}"
        return Violation("seLinuxOptions", detail) if who else None

    return check
