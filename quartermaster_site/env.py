"""The only reader of `QM_*` variables. Imports no Django, so that a host worker can use it too.

Every function looks at the environment when it is called and fails with one sentence that names the variable.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Sequence
from pathlib import Path

from gpus_app.core.errors import QuartermasterError
from quartermaster_site.access.networks import Network, parse_network
from quartermaster_site.access.sign_on import SignOn, checked_server, parsed_roles
from quartermaster_site.broker_address import with_ca

SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
ROLES = ("web", "control", "host", "all")
_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})
_SECRET_FILE = "secret-key"  # noqa: S105 - the name of a file, not a secret
_MINIMUM_SECRET_LENGTH = 32


class ConfigurationError(QuartermasterError):
    """A `QM_*` variable, or the data folder, that cannot be used."""


def text(name: str, default: str = "") -> str:
    """The value without surrounding blanks; NAME_FILE names a file that holds it instead."""
    value = os.environ.get(name, "").strip()
    path = os.environ.get(f"{name}_FILE", "").strip()
    if value and path:
        raise ConfigurationError(f"Set {name} or {name}_FILE, not both.")
    if not path:
        return value or default
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{name}_FILE: cannot read {path}: {error}.") from error


def flag(name: str, *, default: bool = False) -> bool:
    """A yes or no; anything unclear is refused."""
    word = text(name)
    if not word:
        return default
    if word.lower() in _TRUE:
        return True
    if word.lower() in _FALSE:
        return False
    raise ConfigurationError(f"{name} is {word!r}: write 1 or 0.")


def words(name: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
    """A list separated by commas or blanks."""
    found = tuple(word for word in re.split(r"[,\s]+", text(name)) if word)
    return found or default


def data_dir() -> Path:
    """Where all state lives: database, broker, caches, static files."""
    configured = text("QM_DATA_DIR")
    folder = Path(configured).expanduser() if configured else Path.home() / ".local/share/quartermaster"
    return folder.absolute()


def prepared_data_dir() -> Path:
    """The data folder, made when it is not there. Raises ConfigurationError when it cannot be used."""
    folder = data_dir()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"The data folder {folder} cannot be made: {error.strerror or error}.") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigurationError(f"The data folder {folder} is not writable: set QM_DATA_DIR to one that is.")
    return folder


def secret_key() -> str:
    """`QM_SECRET_KEY`, `QM_SECRET_KEY_FILE`, or a key made once and kept in the data folder (mode 0600)."""
    given = text("QM_SECRET_KEY")
    if given:
        if len(given) < _MINIMUM_SECRET_LENGTH:
            raise ConfigurationError(f"QM_SECRET_KEY is too short: use at least {_MINIMUM_SECRET_LENGTH} characters.")
        return given
    path = prepared_data_dir() / _SECRET_FILE
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return _kept_secret(path)
    except OSError as error:
        raise ConfigurationError(f"Cannot write {path}: {error.strerror}. Set QM_SECRET_KEY instead.") from error
    key = secrets.token_urlsafe(48)
    with os.fdopen(descriptor, "w", encoding="ascii") as stream:
        stream.write(key)
    return key


def _kept_secret(path: Path) -> str:
    try:
        key = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"Cannot read the secret key in {path}: {error}.") from error
    if len(key) < _MINIMUM_SECRET_LENGTH:
        raise ConfigurationError(f"The secret key in {path} is damaged: remove the file, everybody signs in again.")
    return key


def sealing_key() -> str:
    """The key that secrets at rest are encrypted with; "" for one that is kept in the data folder."""
    return text("QM_SEALING_KEY")


def debug() -> bool:
    return flag("QM_DEBUG")


def https() -> bool:
    """The site is reached over HTTPS (through a proxy that says so): secure cookies, HSTS."""
    return flag("QM_HTTPS")


def allowed_hosts() -> tuple[str, ...]:
    return words("QM_ALLOWED_HOSTS", ("localhost", "127.0.0.1", "[::1]"))


def trusted_origins() -> tuple[str, ...]:
    """Origins (`https://name`) whose forms are accepted when a proxy changes scheme or host."""
    origins = words("QM_TRUSTED_ORIGINS")
    for origin in origins:
        if not origin.startswith(("http://", "https://")):
            raise ConfigurationError(f"QM_TRUSTED_ORIGINS: {origin!r} must start with http:// or https://.")
    return origins


def trusted_proxies() -> tuple[Network, ...]:
    """Addresses and networks of proxies whose X-Forwarded-For is believed; nobody's when unset."""
    found = []
    for word in words("QM_TRUSTED_PROXIES"):
        try:
            found.append(parse_network(word))
        except ValueError as error:
            raise ConfigurationError(f"QM_TRUSTED_PROXIES: {word!r} is no address or network. {error}") from error
    return tuple(found)


def sign_on() -> SignOn | None:
    """The OpenID Connect server at which people may sign in; None when `QM_OIDC_SERVER` is unset."""
    server = text("QM_OIDC_SERVER")
    if not server:
        return None
    client, secret = text("QM_OIDC_CLIENT_ID"), text("QM_OIDC_CLIENT_SECRET")
    for name, value in (("QM_OIDC_CLIENT_ID", client), ("QM_OIDC_CLIENT_SECRET", secret)):
        if not value:
            raise ConfigurationError(f"{name} is not set, but QM_OIDC_SERVER is: the server gives you both values.")
    try:
        server = checked_server(server)
    except ValueError as error:
        raise ConfigurationError(f"QM_OIDC_SERVER: {error}") from error
    try:
        roles = parsed_roles(text("QM_OIDC_ROLES"))
    except ValueError as error:
        raise ConfigurationError(f"QM_OIDC_ROLES: {error}") from error
    name, claim = text("QM_OIDC_NAME", "Single sign-on"), text("QM_OIDC_GROUPS_CLAIM", "groups")
    return SignOn(server, client, secret, name=name[:40], claim=claim, roles=roles)


def redis_url() -> str:
    """A Redis or Valkey for queue, cache and sign-in limits; "" for files in the data folder."""
    url = text("QM_REDIS_URL")
    if url and not url.startswith(("redis://", "rediss://", "unix://")):
        raise ConfigurationError("QM_REDIS_URL must start with redis://, rediss:// or unix://.")
    return with_ca(url, redis_ca())


def agent_redis_url() -> str:
    """The same Redis as other machines reach it; `QM_REDIS_URL` when unset."""
    url = text("QM_AGENT_REDIS_URL")
    if url and not url.startswith(("redis://", "rediss://")):
        raise ConfigurationError("QM_AGENT_REDIS_URL must start with redis:// or rediss://.")
    return url or text("QM_REDIS_URL")


def redis_ca() -> str:
    """The path of a file with the certificates that a rediss:// server is checked against; the system's when unset."""
    path = text("QM_REDIS_CA")
    if path and not os.path.isfile(path):
        raise ConfigurationError(f"QM_REDIS_CA: there is no file {path}.")
    return path


def agent_instance() -> str:
    """Which start of `quartermaster agent` this worker belongs to; "" for the worker beside the server."""
    return text("QM_AGENT_INSTANCE")


def database_url() -> str:
    url = text("QM_DATABASE_URL")
    if url and not url.startswith(("postgres://", "postgresql://", "sqlite://")):
        raise ConfigurationError("QM_DATABASE_URL must start with postgres://, postgresql:// or sqlite://.")
    return url


def role() -> str:
    """What this process is: `web`, `control`, `host` (no database) or `all`."""
    return _one_of(ROLES, "QM_ROLE", text("QM_ROLE", "web"))


def host_slug() -> str:
    """The host whose disk and devices this machine's worker looks after."""
    value = text("QM_HOST_SLUG", "local")
    if not SLUG.fullmatch(value):
        raise ConfigurationError(f"QM_HOST_SLUG is {value!r}: use lower-case letters, digits and dashes, up to 40.")
    return value


def browse_roots() -> tuple[str, ...]:
    """Folders that the folder browser of this host may list; everything when unset."""
    return _folders("QM_BROWSE_ROOTS")


def backend_roots() -> tuple[str, ...]:
    """Folders from which this host runs backends that people register; everything when unset."""
    return _folders("QM_BACKEND_ROOTS")


def target_roots() -> tuple[str, ...]:
    """Folders in which this host looks at and writes the files of routers; everything when unset."""
    return _folders("QM_TARGET_ROOTS")


def _folders(name: str) -> tuple[str, ...]:
    found = tuple(part for part in text(name).split(os.pathsep) if part)
    for part in found:
        if not os.path.isabs(part):
            raise ConfigurationError(f"{name}: {part!r} is not an absolute path.")
    return found or (os.path.abspath(os.sep),)


def executable_roots() -> tuple[str, ...]:
    """Folders in which people may look for an executable: those from which backends run, where they are limited."""
    return backend_roots() if text("QM_BACKEND_ROOTS") else browse_roots()


def program_environment() -> dict[str, str]:
    """The environment of this process for foreign programs: without our own variables, which may hold secrets."""
    own = ("QM_", "DJANGO_", "CELERY_")
    return {name: value for name, value in os.environ.items() if not name.startswith(own)}


def log_level() -> str:
    return _one_of(("DEBUG", "INFO", "WARNING", "ERROR"), "QM_LOG_LEVEL", text("QM_LOG_LEVEL", "INFO").upper())


def worker_nice() -> int:
    """How far workers step back behind pages and running models; 0 is not at all (nice(2))."""
    return int(_one_of([str(nice) for nice in range(20)], "QM_WORKER_NICE", text("QM_WORKER_NICE", "10")))


def _one_of(choices: Sequence[str], name: str, value: str) -> str:
    if value not in choices:
        raise ConfigurationError(f"{name} is {value!r}: use one of {', '.join(choices)}.")
    return value


READERS = (
    prepared_data_dir,
    secret_key,
    sealing_key,
    debug,
    https,
    allowed_hosts,
    trusted_origins,
    trusted_proxies,
    sign_on,
    redis_ca,
    redis_url,
    agent_redis_url,
    database_url,
    role,
    host_slug,
    browse_roots,
    backend_roots,
    target_roots,
    log_level,
    worker_nice,
)
"""Every reader, for `doctor`: a value that one of them refuses is named there."""

VARIABLES = frozenset(
    """QM_DATA_DIR QM_SECRET_KEY QM_DEBUG QM_HTTPS QM_ALLOWED_HOSTS QM_TRUSTED_ORIGINS QM_REDIS_URL QM_DATABASE_URL
    QM_ROLE QM_HOST_SLUG QM_BROWSE_ROOTS QM_LOG_LEVEL QM_BACKEND_ROOTS QM_TARGET_ROOTS QM_SEALING_KEY
    QM_TRUSTED_PROXIES QM_AGENT_REDIS_URL QM_AGENT_INSTANCE QM_REDIS_CA QM_OIDC_SERVER QM_OIDC_CLIENT_ID
    QM_OIDC_CLIENT_SECRET QM_OIDC_NAME QM_OIDC_GROUPS_CLAIM QM_OIDC_ROLES QM_WORKER_NICE QM_VENV QM_PYTHON""".split()  # noqa: SIM905 half as long as a list
)
"""Every variable that is read, the two of the `quartermaster` script included. Each may end in `_FILE` instead."""
