"""Building a judged set: pool what the arms found, judge it blind, measure agreement, export the plain layout."""
