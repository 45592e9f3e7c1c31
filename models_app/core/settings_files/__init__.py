"""The hand-written generate file and the UI-owned sidecar as texts: read with line numbers, written, laid together."""
