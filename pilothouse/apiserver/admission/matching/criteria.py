"""The match criteria of a webhook or policy, compiled once per configuration."""

from __future__ import annotations

from pilothouse.apiserver.admission.matching.rules import RuleWithOperations, rules_of
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json
from pilothouse.machinery.selectors.labels import EVERYTHING, Selector, from_label_selector


@dataclass(frozen=True, slots=True)
class MatchCriteria:
    rules: tuple[RuleWithOperations, ...]
    """Without rules, nothing matches unless `without_rules`."""
    excluded: tuple[RuleWithOperations, ...] = ()
    namespace_selector: Selector = EVERYTHING
    object_selector: Selector = EVERYTHING
    equivalent: bool = False
    """Whether rules also match requests for equivalent resources (matchPolicy Equivalent)."""
    without_rules: bool = False
    """Whether an empty rule list matches everything."""

    @classmethod
    def of_webhook(cls, webhook: Json) -> MatchCriteria:
        """Compile the criteria of a webhook. Raises InvalidSelector."""
        return cls(
            rules=rules_of(webhook.get("rules")),
            namespace_selector=from_label_selector(webhook.get("namespaceSelector")),
            object_selector=from_label_selector(webhook.get("objectSelector")),
            equivalent=webhook.get("matchPolicy") == "Equivalent",
        )

    @classmethod
    def of_match_resources(cls, resources: Json) -> MatchCriteria:
        """Compile a policy's matchConstraints or a binding's matchResources. Raises InvalidSelector."""
        rules = rules_of(resources.get("resourceRules"))
        return cls(
            rules=rules,
            excluded=rules_of(resources.get("excludeResourceRules")),
            namespace_selector=from_label_selector(resources.get("namespaceSelector")),
            object_selector=from_label_selector(resources.get("objectSelector")),
            equivalent=resources.get("matchPolicy") == "Equivalent",
            without_rules=not rules,
        )
