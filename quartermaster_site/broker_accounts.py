"""Accounts of hosts at a Redis or Valkey: each may take from its own queue, and add to the control queue, no more.

The server keeps a hash of each password and makes accounts again that a restarted broker has forgotten.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

from quartermaster_site import env, redis_broker
from quartermaster_site.celery import host_queue
from quartermaster_site.errors import Unavailable
from quartermaster_site.jobs.kinds import CONTROL_QUEUE

PREFIX = "qm-host-"
_LEAST_VERSION = (7, 0)
"""Older servers cannot grant writing without reading."""
_TIMEOUT_SECONDS = 2.0
_ANY = ("ping", "select", "multi", "exec", "discard", "unwatch", "script|load")
_NAMING = "client|setinfo"
"""Clients tell what they are, where the server knows this command; refused, each would leave a line in its log."""
_OWN = (
    *("brpop", "rpop", "lpush", "rpush", "exists", "zadd", "zrem", "zrange", "hset", "hget", "hdel"),
    *("watch", "set", "get", "del", "eval", "evalsha"),
)
"""What kombu does with the keys of a queue, its lock included."""


def account_name(slug: str) -> str:
    return PREFIX + slug


def password_digest(password: str) -> str:
    return hashlib.sha256(password.encode()).hexdigest()


def rules(slug: str, digest: str, *more: str) -> list[str]:
    """The arguments of `ACL SETUSER` after the name; `more` commands are allowed as well."""
    keys = [f"~{key}" for key in redis_broker.keys_of(host_queue(slug))]
    allowed = [f"+{command}" for command in (*_ANY, *_OWN, *more)]
    return [
        *("reset", "on", f"#{digest}", "resetchannels"),
        *(*keys, *allowed),
        f"(%W~{CONTROL_QUEUE} +lpush)",
    ]


def client() -> Any:
    """The server's own connection to its broker."""
    from redis import Redis  # slow to import, and not needed without QM_REDIS_URL

    return Redis.from_url(
        env.redis_url(),
        socket_connect_timeout=_TIMEOUT_SECONDS,
        socket_timeout=_TIMEOUT_SECONDS,
        decode_responses=True,
    )


def why_shared() -> str:
    """Why all machines share one account, as a sentence; "" where each gets its own. Raises Unavailable."""
    if not env.redis_url():
        return "The queue is files in the data folder of this machine: there are no accounts."
    return _why_shared(env.redis_url())


@lru_cache(maxsize=1)
def _why_shared(url: str) -> str:
    from redis import RedisError, ResponseError

    try:
        with client() as connection:
            version = str(connection.info("server").get("redis_version", "0"))
            if tuple(int(part) for part in version.split(".")[:2]) < _LEAST_VERSION:
                return (
                    f"This broker (version {version}) has no access lists that are fine enough; Redis 7 or Valkey has."
                )
            connection.execute_command("ACL", "USERS")
            default = _pairs(connection.execute_command("ACL", "GETUSER", "default"))
    except ResponseError as error:
        return f"The account of QM_REDIS_URL may not manage accounts ({error})."
    except (RedisError, OSError, ValueError) as error:
        raise Unavailable("Redis does not answer (QM_REDIS_URL): no machine can be enrolled now.") from error
    flags = default.get("flags", [])
    if "on" in flags and "nopass" in flags:
        return "The broker's default account has no password: whoever reaches the broker may do anything."
    return ""


def _pairs(answer: Any) -> Mapping[str, Any]:
    """What `ACL GETUSER` answers, in either protocol version."""
    return answer if isinstance(answer, dict) else dict(zip(answer[::2], answer[1::2], strict=False))


def grant(slug: str, digest: str) -> None:
    """Make the account of a host, or make it anew. Raises Unavailable."""
    try:
        _ask("ACL", "SETUSER", account_name(slug), *rules(slug, digest, _NAMING))
    except Unavailable:  # before Redis 7.2 there is no such command
        _ask("ACL", "SETUSER", account_name(slug), *rules(slug, digest))


def revoke(slug: str) -> None:
    """Remove the account; connections under it end at once. Raises Unavailable."""
    _ask("ACL", "DELUSER", account_name(slug))


def renew(digests: Mapping[str, str], *, known_too: bool = False) -> list[str]:
    """Make the accounts of these hosts (slug -> digest) that the broker has forgotten; their slugs.

    With `known_too` the others get today's access list as well; connections under them go on. Raises Unavailable.
    """
    known = set(_ask("ACL", "USERS"))
    missing = [slug for slug in digests if account_name(slug) not in known]
    for slug in digests if known_too else missing:
        grant(slug, digests[slug])
    return missing


def forget_queue(slug: str) -> None:
    """Remove what waits for a host that is removed. Raises Unavailable."""
    from redis import RedisError

    try:
        with client() as connection:
            connection.delete(*redis_broker.keys_of(host_queue(slug)))
    except (RedisError, OSError) as error:
        raise Unavailable("Redis does not answer (QM_REDIS_URL).") from error


def _ask(*command: str) -> Any:
    from redis import RedisError

    try:
        with client() as connection:
            return connection.execute_command(*command)
    except (RedisError, OSError) as error:
        raise Unavailable(f"The broker could not be told: {error}") from error


def address_for(slug: str, password: str) -> str:
    """The broker's address as an agent uses it: with its own account, or with ours where there is one for all."""
    base = env.agent_redis_url()
    if not password:
        return base
    parts = urlsplit(base)
    place = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{account_name(slug)}:{quote(password, safe='')}@{place}"))
