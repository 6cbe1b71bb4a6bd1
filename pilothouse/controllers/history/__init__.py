"""ControllerRevisions: former templates of a StatefulSet or DaemonSet, for rollbacks."""
