"""Checks of the repository itself: commit subjects, npm lock files, ends and sizes of files, the coverage floor.

Each module is a program for `.pre-commit-config.yaml` or `noxfile.py`, and exits with 1 when the check fails.
"""
