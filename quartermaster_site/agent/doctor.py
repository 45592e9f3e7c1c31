"""What `doctor` says on an enrolled machine: server, broker, clock and versions. Imports no Django."""

from __future__ import annotations

import os
import time

from gpus_app.core.errors import QuartermasterError
from quartermaster_site import env
from quartermaster_site.agent import client, identity
from quartermaster_site.broker_address import with_ca
from quartermaster_site.doctor import Result
from quartermaster_site.version import product_version

MOST_SKEW_SECONDS = 5.0
_TIMEOUT_SECONDS = 3.0


def is_agent() -> bool:
    """Whether the data folder holds an enrolment, a damaged one included."""
    return (env.data_dir() / identity.FOLDER).is_dir()


def server() -> Result:
    """Whether the server knows this machine, and understands it."""
    try:
        me = identity.load()
        if me is None:
            return Result("Server", "problem", "this machine is not enrolled", "Make a code for it on the Hosts page.")
        answer = client.check(me, "")
    except QuartermasterError as error:
        return Result("Server", "problem", str(error), "Look at the page of this host on the server.")
    text = f"{me.server}, version {answer.get('version')}, knows this machine as host {me.slug}"
    if answer.get("state") == "mismatch":
        return Result("Server", "problem", str(answer.get("message")), "Use the same version on both sides.")
    if answer.get("version") != product_version():
        return Result("Server", "note", f"{text}; here is {product_version()}", "Use the same version on both sides.")
    skew = float(answer.get("server_time") or 0) - time.time()
    if abs(skew) > MOST_SKEW_SECONDS:
        return Result("Server", "note", f"{text}; its clock is {skew:+.0f} s from ours", "Set both clocks by NTP.")
    return Result("Server", "ok", text)


def broker() -> Result:
    """Whether the broker lets this machine in."""
    from redis import Redis, RedisError

    try:
        me = identity.load()
    except QuartermasterError as error:
        return Result("Queue", "problem", str(error))
    if me is None:
        return Result("Queue", "note", "not known before this machine is enrolled")
    url = with_ca(me.broker_url, str(identity.ca_path()) if me.broker_ca else "")
    try:
        with Redis.from_url(url, socket_connect_timeout=_TIMEOUT_SECONDS, socket_timeout=_TIMEOUT_SECONDS) as redis:
            redis.ping()
    except (RedisError, OSError) as error:
        remedy = "Is that address right for this machine (QM_AGENT_REDIS_URL on the server)? Is the port open?"
        return Result("Queue", "problem", f"the broker cannot be used: {error}", remedy)
    return Result("Queue", "ok", f"the broker of host {me.slug} answers")


def no_database() -> Result:
    """A machine that is an agent has none, and must not be given one."""
    named = [name for name in ("QM_DATABASE_URL", "QM_DATABASE_URL_FILE") if os.environ.get(name)]
    if named:
        return Result("Database", "note", f"{named[0]} is set here", "Unset it: an agent needs no database.")
    return Result("Database", "ok", "none, as it should be")
