"""The scheduler: finds a node for each pod that has none. A client of the API, as kube-scheduler is.

queue/ has the pods that wait, cache/ the nodes and what is on them, plugins/ the reasons for and against a node,
preemption/ makes room; `cycle.py` puts them together for one pod, `scheduler.py` for one pod after the other.
"""
