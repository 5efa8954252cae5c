"""Looks at journals for people: every call as a lane over time, and one call in words."""
