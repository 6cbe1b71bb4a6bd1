"""The three patch formats: JSON patch, JSON merge patch and strategic merge patch, as kube-apiserver applies them.

A document that is patched is taken over and changed; a patch is only read, so that it can be applied again.
"""
