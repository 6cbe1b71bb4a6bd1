"""Admission: plugins that change or reject writes after authorization and before storage."""
