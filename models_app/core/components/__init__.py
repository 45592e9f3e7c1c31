"""Component files of diffusion models: what lies on disk, and what one model gets (discovery.md 11 to 16)."""
