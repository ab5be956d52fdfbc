"""Integrations, tried with the real programs and a scripted model."""
