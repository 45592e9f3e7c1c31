"""The address of a Redis behind TLS, as its clients read it."""

from __future__ import annotations

from urllib.parse import urlencode


def with_ca(url: str, path: str) -> str:
    """The address with what redis and kombu take from it: that a certificate is checked, and against which file.

    An empty path stands for the system's certificates; other addresses than `rediss://` stay as they are.
    """
    if not url.startswith("rediss://"):
        return url
    checked = {} if "ssl_cert_reqs=" in url else {"ssl_cert_reqs": "required"}
    if path:
        checked["ssl_ca_certs"] = path
    return f"{url}{'&' if '?' in url else '?'}{urlencode(checked)}" if checked else url
