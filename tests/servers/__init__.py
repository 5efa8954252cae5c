"""Servers that other people wrote, run as they ship them, with agents of ours in them.

`make servers` puts each into an environment of its own; `running` starts them. A server's program
runs in the server's environment, so what it imports from here needs the standard library only.
"""
