"""apps: deployments, replica sets, stateful sets, daemon sets and the history of their templates."""
