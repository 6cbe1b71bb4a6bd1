"""Simulated nodes: no machine and no container anywhere, but nodes are ready and the pods on them run, fail and end.

They are a client of the API like a kubelet. All of them act as one identity, the server's own under the name kubelet:
a thousand nodes with a credential each would prove nothing and cost much.
"""
