"""deployment-controller: replica sets that take turns, so that a new pod template replaces the old one."""
