"""Condition types of CustomResourceDefinitions."""

ESTABLISHED = "Established"
NAMES_ACCEPTED = "NamesAccepted"
TERMINATING = "Terminating"
NON_STRUCTURAL_SCHEMA = "NonStructuralSchema"
API_APPROVED = "KubernetesAPIApprovalPolicyConformant"
