"""Does what a page shows, as somebody does who copies it: each page in a folder, a shell and a network of its own."""
