"""Type checking of validating admission policies: what is wrong with an expression shows in the policy's status."""
