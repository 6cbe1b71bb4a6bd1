"""Recordings: what users and programs asked for, and the least rights by which they may."""
