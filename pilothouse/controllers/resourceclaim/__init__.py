"""Claims of devices: made from templates for pods, and given back when the pods are done."""
