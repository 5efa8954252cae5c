"""The demonstration: one crash, with this library and without, counted from the server's own log."""
