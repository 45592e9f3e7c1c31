"""What other people's files say, as items that a person can tick: router configs, generate files, sidecars."""
