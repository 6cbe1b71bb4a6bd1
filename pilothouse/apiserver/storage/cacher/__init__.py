"""The watch cache: serves GET, LIST and WATCH of one resource from memory."""
