"""The commands of `trivet lab`."""
