"""The documentation: its pages, the site that is made of them, and the runner of all that they show.

`blocks.py` knows the forms that a block of a page may have. `running/` does what a page shows, from top to bottom, and
compares. `site/` makes the site. `reference/` writes the pages that are made from the code.
"""
