"""LimitRanger: pods and claims stay inside the bounds of the limit ranges in their namespace."""
