"""Two texts of a host's config compared: models, flags, keys, the causes, and what a router does about it."""
