"""Pods: defaults, validation, what may change, subresources and the connections behind them."""
