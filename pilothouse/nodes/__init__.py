"""Simulated nodes: nodes are Ready and their pods run, fail and end, without machines or containers.

The simulation is a client of the API, like a kubelet. All nodes share one identity, the server's own under the name
kubelet: a credential per node would cost much and prove nothing.
"""
