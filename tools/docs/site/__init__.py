"""Makes the site: orders the pages, gives links that leave `docs/` pages to lead to, and lets Zensical render."""
