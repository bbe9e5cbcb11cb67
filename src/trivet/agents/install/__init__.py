"""Puts Trivet into the settings of coding agents: shown before it is written, and taken back exactly."""
