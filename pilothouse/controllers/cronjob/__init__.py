"""CronJobs: jobs that are made when the clock says so."""
