"""Ports and names of this machine, for `up`."""

from __future__ import annotations

import errno
import http.client
import ipaddress
import socket
import time
from collections.abc import Callable

import psutil

from gpus_app.core.errors import QuartermasterError, UsageError

_LOCAL = ("localhost", "127.0.0.1", "[::1]")


def check_port(host: str, port: int) -> None:
    """Raise UsageError when nothing can be bound there."""
    if not 1 <= port <= 65535:
        raise UsageError(f"--port {port}: a port is a number from 1 to 65535.")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (socket.gaierror, UnicodeError) as error:
        raise UsageError(f"--host {host}: this is no address of this machine.") from error
    with socket.socket(family, kind, protocol) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
        except OSError as error:
            raise UsageError(_why_not(error, host, port)) from error


def _why_not(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} on {host} is in use: stop what uses it, or choose another with --port."
    if error.errno == errno.EADDRNOTAVAIL:
        return f"--host {host}: this is no address of this machine."
    if error.errno == errno.EACCES:
        return f"port {port} needs more rights than this user has: choose one above 1023 with --port."
    return f"cannot listen on {host}:{port}: {error.strerror}."


def served_names(host: str) -> list[str]:
    """Names under which the site answers; the first is the one to print."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return list(dict.fromkeys([host, *_LOCAL]))
    if address.is_loopback:
        return list(dict.fromkeys([_written(address), *_LOCAL]))
    if not address.is_unspecified:
        return list(dict.fromkeys([_written(address), *_LOCAL]))
    own = [socket.gethostname(), socket.getfqdn(), *_own_addresses()]
    return list(dict.fromkeys([*own, *_LOCAL]))


def _written(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    return f"[{address}]" if address.version == 6 else str(address)


def _own_addresses() -> list[str]:
    found = []
    for entries in psutil.net_if_addrs().values():
        for entry in entries:
            if entry.family in (socket.AF_INET, socket.AF_INET6):
                found.append(_written(ipaddress.ip_address(entry.address.partition("%")[0])))
    return found


def wait_until_up(host: str, port: int, name: str, check: Callable[[], None], seconds: float) -> None:
    """Return once the web server answers. `check` raises when a process that is needed has died."""
    address = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared, not bound
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        check()
        try:
            connection = http.client.HTTPConnection(address, port, timeout=5)
            connection.request("GET", "/healthz", headers={"Host": name})
            if connection.getresponse().status < 500:
                return
        except OSError:
            pass
        time.sleep(0.1)
    raise QuartermasterError(f"the web server did not answer within {seconds:.0f} seconds.")
