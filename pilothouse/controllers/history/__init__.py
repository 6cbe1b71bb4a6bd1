"""ControllerRevisions: the templates that a StatefulSet or DaemonSet has had, to which it can be rolled back."""
