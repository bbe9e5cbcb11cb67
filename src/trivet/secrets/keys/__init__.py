"""The keys that secrets are sealed with: where they are kept, made and rotated."""

from trivet.secrets.keys.places import places_of
from trivet.secrets.keys.ring import Key, KeyRing

__all__ = ["Key", "KeyRing", "places_of"]
