"""kwok's Stage objects (kwok.x-k8s.io/v1alpha1), which replace the default life cycle of pods or nodes.

A stage has a selector, a delay and an action. Expressions and templates cover kwok's own stages; a stage with
unsupported features is rejected with an event.
"""
