"""cronjob-controller: creates jobs on a schedule."""
