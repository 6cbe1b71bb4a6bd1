"""Knowledge about built-in kinds and their common fields: pods, nodes, owners, conditions, finalizers, deletion.

Pure functions over JSON objects, shared by the servers, the controllers, the scheduler, the simulated nodes and the
command line. Upstream keeps the same knowledge in k8s.io/component-helpers and pkg/api/v1.

    from pilothouse.kinds import pods

    if pods.is_ready(pod) and not pods.is_terminating(pod): ...
"""
