"""The extensions of Google's C++ implementation of CEL that kube-apiserver's environment has."""

from __future__ import annotations

EXTENSIONS = """
name: kubernetes
extensions:
- name: optional
- name: strings
  version: 2
- name: sets
- name: lists
- name: two-var-comprehensions
- name: bindings
"""
