"""Rules of what people set: load sequence, resolution, variants, patches, the sidecar, the inputs hash (state.md)."""
