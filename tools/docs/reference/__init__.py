"""The pages of the reference that are made from the code, and from data beside it.

They are kept in the repository, so that a code host shows them; a test compares them with what would be made.
"""
