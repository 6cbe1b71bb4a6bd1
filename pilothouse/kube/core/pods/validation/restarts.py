"""When a single container is started again, as opposed to its pod's restart policy."""

from __future__ import annotations

from pilothouse.kube.validation.fields import one_of
from pilothouse.machinery.field import Errors, Path, required, too_many
from pilothouse.machinery.objects import Json

_POLICIES = ("Always", "Never", "OnFailure")
_ACTIONS = ("Restart", "RestartAllContainers")
_OPERATORS = ("In", "NotIn")
_MAX_RULES = 20
_MAX_EXIT_CODES = 255
_POLICY_MISSING = "must specify restartPolicy when restart rules are used"


def validate_restart_policy(container: Json, path: Path) -> Errors:
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or ()
    if policy is None and not rules:
        return
    if policy is None:
        yield required(path.child("restartPolicy"), _POLICY_MISSING)
    else:
        yield from one_of(policy, path.child("restartPolicy"), _POLICIES)
    if len(rules) > _MAX_RULES:
        yield too_many(path.child("restartPolicyRules"), len(rules), _MAX_RULES)
    for position, rule in enumerate(rules):
        yield from _validate_rule(rule, path.child("restartPolicyRules").index(position))


def validate_init_restart_policy(container: Json, path: Path) -> Errors:
    if container.get("restartPolicy") is not None:
        yield from validate_restart_policy(container, path)
    elif container.get("restartPolicyRules"):
        yield required(path.child("restartPolicy"), _POLICY_MISSING)


def _validate_rule(rule: Json, path: Path) -> Errors:
    yield from one_of(rule.get("action") or "", path.child("action"), _ACTIONS)
    codes = rule.get("exitCodes")
    if codes is None:
        yield required(path.child("exitCodes"), "must be specified")
        return
    yield from one_of(codes.get("operator") or "", path.child("exitCodes", "operator"), _OPERATORS)
    if len(codes.get("values") or ()) > _MAX_EXIT_CODES:
        yield too_many(path.child("exitCodes", "values"), len(codes["values"]), _MAX_EXIT_CODES)
