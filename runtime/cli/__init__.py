"""The command line `reattach`: reads arguments, says errors in one line, and starts the parts."""
