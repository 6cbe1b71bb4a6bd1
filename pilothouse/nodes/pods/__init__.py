"""The life of a pod on a simulated node, as functions of the pod, what has happened so far, and the time.

`machine.advance` says what happens next and when, `status` says it in the words of the API, `restore` reads it back
after a restart. Nothing in here talks to anybody.
"""
