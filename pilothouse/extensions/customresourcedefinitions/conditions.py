"""The conditions that the status of a CustomResourceDefinition has."""

ESTABLISHED = "Established"
NAMES_ACCEPTED = "NamesAccepted"
TERMINATING = "Terminating"
NON_STRUCTURAL_SCHEMA = "NonStructuralSchema"
API_APPROVED = "KubernetesAPIApprovalPolicyConformant"
