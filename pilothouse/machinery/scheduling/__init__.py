"""Where a pod may run, as far as the pod and the node alone decide it: shared by the scheduler and by controllers."""
