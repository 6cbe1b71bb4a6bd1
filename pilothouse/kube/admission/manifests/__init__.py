"""What may stand in static manifests."""
