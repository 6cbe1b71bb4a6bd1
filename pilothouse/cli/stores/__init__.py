"""Store access for `backup`, `restore`, `migrate` and `check`."""
