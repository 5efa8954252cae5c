"""The simulated world: everything a job meets, as pure and seeded models."""
