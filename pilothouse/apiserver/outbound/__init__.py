"""HTTP client: targets, connections, exchanges and failures.

All outgoing HTTP goes through this package: kubelets, pods, webhooks, aggregated APIs and token issuers.
"""
