"""Priority: pods have the priority of their class."""
