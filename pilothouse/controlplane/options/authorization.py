"""Options of authorization: modes, webhook, configuration file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.flags import DURATION, STRING, STRINGS, flag
from pilothouse.machinery.gofmt import quote

MODES = ("AlwaysAllow", "AlwaysDeny", "ABAC", "Webhook", "RBAC", "Node")
ALWAYS_ALLOW, ALWAYS_DENY, ABAC, WEBHOOK, RBAC, NODE = MODES
NOT_WITH_CONFIG = frozenset({
    "authorization-mode", "authorization-webhook-config-file", "authorization-webhook-version",
    "authorization-webhook-cache-authorized-ttl", "authorization-webhook-cache-unauthorized-ttl",
})  # fmt: skip
"""Flags that conflict with --authorization-config."""


@dataclass(frozen=True)
class AuthorizationOptions:
    title: ClassVar[str] = "authorization"

    modes: tuple[str, ...] = flag(
        "authorization-mode",
        STRINGS,
        (),
        f"Who decides, in this order: {', '.join(MODES)}. AlwaysAllow if empty and without --authorization-config.",
    )
    config: str = flag(
        "authorization-config",
        STRING,
        "",
        "File with an AuthorizationConfiguration, which says who decides. It is read again when it changes.",
    )
    policy_file: str = flag(
        "authorization-policy-file", STRING, "", "File with the policies of mode ABAC, a JSON object a line."
    )
    webhook_config_file: str = flag(
        "authorization-webhook-config-file", STRING, "", "A kubeconfig for the webhook that mode Webhook asks."
    )
    webhook_version: str = flag(
        "authorization-webhook-version",
        STRING,
        "v1beta1",
        "The version of SubjectAccessReview that the webhook is sent: v1 or v1beta1.",
    )
    webhook_cache_authorized_ttl: float = flag(
        "authorization-webhook-cache-authorized-ttl",
        DURATION,
        300.0,
        "How long it is remembered that the webhook allowed something.",
    )
    webhook_cache_unauthorized_ttl: float = flag(
        "authorization-webhook-cache-unauthorized-ttl",
        DURATION,
        30.0,
        "How long it is remembered that the webhook did not allow something.",
    )
    given_beside_config: bool = False
    """Whether flags of NOT_WITH_CONFIG are given."""

    def validate(self) -> Iterator[str]:
        if self.config:
            yield from self._validate_config()
            return
        if not self.modes:
            yield "at least one authorization-mode must be passed"
        for mode in self.modes:
            if mode not in MODES:
                yield f"authorization-mode {quote(mode)} is not a valid mode"
            if mode == ABAC and not self.policy_file:
                yield "authorization-mode ABAC's authorization policy file not passed"
            if mode == WEBHOOK and not self.webhook_config_file:
                yield "authorization-mode Webhook's authorization config file not passed"
            if mode == WEBHOOK and self.webhook_version not in ("v1", "v1beta1"):
                version = f"unsupported webhook authorizer version {quote(self.webhook_version)}"
                yield f'{version}, supported versions are "v1", "v1beta1"'
        if self.policy_file and ABAC not in self.modes:
            yield "cannot specify --authorization-policy-file without mode ABAC"
        if self.webhook_config_file and WEBHOOK not in self.modes:
            yield "cannot specify --authorization-webhook-config-file without mode Webhook"
        if len(set(self.modes)) < len(self.modes):
            yield f"authorization-mode [{' '.join(map(quote, self.modes))}] has mode specified more than once"

    def _validate_config(self) -> Iterator[str]:
        if self.given_beside_config:
            flags = "--authorization-mode or --authorization-webhook-* flags"
            yield f"--authorization-config can not be specified when {flags} are defined"
            return
        from pilothouse.controlplane.authorization.configuration import read_authorization_configuration
        from pilothouse.controlplane.options.files import content

        try:
            read_authorization_configuration(content(self.config))
        except ValueError as error:
            yield str(error)
