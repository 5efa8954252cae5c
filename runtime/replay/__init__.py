"""Replay of journals: every recorded fact through today's step, every state compared."""
