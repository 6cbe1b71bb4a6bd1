"""Cron schedules: reading them, and finding out when they are due."""
