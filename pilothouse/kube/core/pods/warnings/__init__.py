"""Warnings about valid pods."""
