"""The RBAC authorizer: an index of grants, fed by watch caches."""
