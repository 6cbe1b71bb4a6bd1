"""clusterrole-aggregation-controller: aggregated cluster roles."""
