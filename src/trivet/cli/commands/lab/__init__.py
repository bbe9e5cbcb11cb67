"""Commands of `trivet lab`."""
