"""Pictures of the documentation, as SVG: what a call goes through, and what a crash does to it."""
