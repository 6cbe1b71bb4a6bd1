"""batch: jobs, and the cron jobs that make them."""
