"""validatingadmissionpolicy-status-controller: type checking of validating admission policies."""
