"""Serializers: one per media type, for objects, lists and watch events. Endpoints are independent of the media type."""
