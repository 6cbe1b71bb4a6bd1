"""The scheduler: assigns a node to each pending pod. Like kube-scheduler, a client of the API.

queue/ holds pending pods, cache/ holds nodes and their pods, plugins/ filters and scores nodes, preemption/ evicts pods
of lower priority. `cycle.py` schedules one pod; `scheduler.py` runs the loop over the queue.
"""
