"""Repositories and download addresses that may be used (classes.md 16.1, 16.4)."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

_REPO = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+\Z")
_HOST = "github.com"
_DOWNLOAD_DOMAINS = ("github.com", "githubusercontent.com")
HTTPS_PORT = 443


def validate_repo(repo: str) -> bool:
    """Is this exactly `owner/name`?"""
    return bool(_REPO.match(repo)) and all(part.strip(".") for part in repo.split("/"))


def parse_repo(text: str) -> str:
    """`owner/name` out of what people paste: a name, or an address on GitHub, however deep; "" for anything else."""
    text = text.strip()
    if "://" in text:
        try:
            address = urlsplit(text)
            host = address.hostname or ""
        except ValueError:
            return ""
        if address.scheme not in ("http", "https") or host.removeprefix("www.") != _HOST:
            return ""
        text = "/".join(address.path.strip("/").split("/")[:2])
    elif text.startswith(f"{_HOST}/"):
        text = "/".join(text.split("/")[1:3])
    repo = text.rstrip("/").removesuffix(".git")
    return repo if validate_repo(repo) else ""


def valid_asset_url(url: str) -> bool:
    """Only files of GitHub, over https, without credentials."""
    try:
        address = urlsplit(url)
        host, port = (address.hostname or "").lower(), address.port
    except ValueError:
        return False
    if address.scheme != "https" or port not in (None, HTTPS_PORT) or "@" in address.netloc or "\\" in url:
        return False
    exact = host == _HOST
    return exact or any(host.endswith(f".{domain}") for domain in _DOWNLOAD_DOMAINS)
