"""Requests to other servers: where they are, the connections to them, one request and its answer, what goes wrong.

Everything that this server asks of others over HTTP goes this way: kubelets, pods, webhooks, aggregated APIs, issuers.
"""
