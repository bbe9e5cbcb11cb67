"""A dataset of the user's own memories, with questions whose answers are known because they were made of them."""
