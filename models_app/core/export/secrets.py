"""What looks like key material inside a command (web.md 11.4, V-15)."""

from __future__ import annotations

import re

SECRET_FLAGS = frozenset({"--api-key", "--hf-token", "-hft", "--token", "--auth-token", "--password"})
SECRET_SHAPES = re.compile(r"(?:sk-|qm-|hf_|ghp_|github_pat_|xox[abp]-|AKIA)[A-Za-z0-9_-]{12,}")
