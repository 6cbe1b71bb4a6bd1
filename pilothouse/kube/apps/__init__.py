"""apps: deployments, replica sets, stateful sets, daemon sets and controller revisions."""
