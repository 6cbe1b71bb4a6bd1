"""job-controller: runs pods to completion."""
