"""kwok's Stage objects (kwok.x-k8s.io/v1alpha1): where there are any for pods or nodes, they drive these instead.

A stage says which objects it is for, how long it waits, and what becomes of them then. Its expressions and templates
are understood as far as kwok's own stages need it; a stage that uses more is refused as a whole, with an event.
"""
