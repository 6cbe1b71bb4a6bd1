"""OpenTelemetry traces: spans from the filters to the store, under upstream's names."""
