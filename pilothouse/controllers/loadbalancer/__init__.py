"""Addresses from outside, for services and ingresses, where no cloud gives any."""
