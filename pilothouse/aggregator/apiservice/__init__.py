"""The APIService: its rules, its storage, and in which order APIServices come."""
