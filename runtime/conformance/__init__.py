"""Does an adapter tell the truth? A pytest class that asks it and a live server, through the fault proxy."""
