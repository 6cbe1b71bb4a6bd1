"""Admission: what may still change or refuse a write after authorization, before it is stored."""
