"""Django's settings, in one file. `QM_*` variables are read in `env.py` alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dj_database_url
from csp.constants import NONE, SELF

from quartermaster_site import env
from quartermaster_site.log_lines import UNREADABLE_REQUESTS, OneLine, without_trace_of_clients

BASE_DIR = Path(__file__).resolve().parent.parent
DATA_DIR = env.data_dir() if env.role() == "host" else env.prepared_data_dir()

# Site
DEBUG = env.debug()
SECRET_KEY = "host workers sign nothing" if env.role() == "host" else env.secret_key()
ALLOWED_HOSTS = list(env.allowed_hosts())
CSRF_TRUSTED_ORIGINS = list(env.trusted_origins())
TRUSTED_PROXIES = env.trusted_proxies()
ROOT_URLCONF = "quartermaster_site.urls"
WSGI_APPLICATION = "quartermaster_site.wsgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
LANGUAGE_CODE = "en"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.humanize",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django_htmx",
    "template_partials.apps.SimpleAppConfig",
    "csp",
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "allauth.mfa",
    "allauth.usersessions",
    "quartermaster_site.access.apps.AccessConfig",
    "quartermaster_site.jobs.apps.JobsConfig",
    "gpus_app.apps.GpusConfig",
    "models_app.apps.ModelsConfig",
    "quartermaster_site.apps.SiteConfig",
]

MIDDLEWARE = [
    # First what stands on every answer, those of the layers below included.
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "csp.middleware.CSPMiddleware",
    "quartermaster_site.middleware.kept_apart",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "quartermaster_site.middleware.request_id",
    "quartermaster_site.access.gate.network_gate",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "quartermaster_site.access.gate.network_rights",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "quartermaster_site.middleware.body_size",
    "quartermaster_site.middleware.session_age",
    "quartermaster_site.middleware.no_store",
    "quartermaster_site.access.refusals.refusals",
    "quartermaster_site.middleware.setup_gate",
    "quartermaster_site.middleware.SignedInOnly",
    "quartermaster_site.middleware.own_password",
    "quartermaster_site.middleware.own_time",
    "quartermaster_site.middleware.DomainErrors",
]

# Templates. The cached loader also serves `page.html#name`: on 5.2 through django-template-partials, in core from 6.0.
_LOADERS: list[Any] = [
    ("quartermaster_site.template_loader.Plain", [BASE_DIR / "templates"]),
    "django.template.loaders.app_directories.Loader",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "OPTIONS": {
            "loaders": [
                (
                    "template_partials.loader.Loader",
                    _LOADERS if DEBUG else [("django.template.loaders.cached.Loader", _LOADERS)],
                )
            ],
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "models_app.pages.shell.shell",
            ],
            "builtins": [
                "template_partials.templatetags.partials",
                "django_htmx.templatetags.django_htmx",
                "quartermaster_site.templatetags.quartermaster",
                "models_app.templatetags.held",
            ],
        },
    },
]

# Database
SQLITE_OPTIONS: dict[str, Any] = {
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA mmap_size=134217728;"
    " PRAGMA cache_size=-16000;",
}
_DATABASE_URL = env.database_url()
if env.role() == "host":
    # A host worker never talks to the database; the dummy engine makes any attempt an error.
    DATABASES: dict[str, Any] = {"default": {"ENGINE": "django.db.backends.dummy"}}
else:
    DATABASES = {
        "default": dj_database_url.parse(_DATABASE_URL, conn_max_age=60, conn_health_checks=True)
        if _DATABASE_URL
        else {"ENGINE": "django.db.backends.sqlite3", "NAME": DATA_DIR / "quartermaster.sqlite3", "CONN_MAX_AGE": 60}
    }
    if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
        DATABASES["default"].setdefault("OPTIONS", {}).update(SQLITE_OPTIONS)

# Cache: shared by all processes, since the sign-in limits are counted in it.
REDIS_URL = env.redis_url()
CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": REDIS_URL, "KEY_PREFIX": "qm"}
    if REDIS_URL
    else {
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": "site_cache",
        "OPTIONS": {"MAX_ENTRIES": 20_000},  # of the default of 300 a few hundred names would push the limits out
    }
}

# Static files
STATIC_URL = "/static/"
STATIC_ROOT = DATA_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
WHITENOISE_AUTOREFRESH = DEBUG
WHITENOISE_USE_FINDERS = DEBUG

# Accounts
AUTHENTICATION_BACKENDS = [
    "quartermaster_site.access.backends.WithAccount",
    "allauth.account.auth_backends.AuthenticationBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "/"
ACCOUNT_ADAPTER = "quartermaster_site.access.adapters.AccountAdapter"
SOCIALACCOUNT_ADAPTER = "quartermaster_site.access.adapters.SocialAccountAdapter"
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*", "password2*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_LOGOUT_REDIRECT_URL = "account_login"
ACCOUNT_PREVENT_ENUMERATION = True
ACCOUNT_RATE_LIMITS = {
    "login": "30/m/ip",  # attempts of any outcome from one address
    "login_failed": "10/m/ip,5/5m/key",  # failures from one address, and from there with one name
    # Failures with one name from all addresses. A single address cannot use it up: it has 15 in that time.
    "sign_in_anywhere": "50/15m/key",
}
SIGN_ON = env.sign_on()
SOCIALACCOUNT_PROVIDERS = SIGN_ON.providers() if SIGN_ON else {}
# A form that ends at another server would need that server in the policy of where forms may go. What a link starts is
# bound to the browser by its state and its code verifier.
SOCIALACCOUNT_LOGIN_ON_GET = True
SOCIALACCOUNT_EMAIL_VERIFICATION = "none"
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes", "webauthn"]
MFA_PASSKEY_LOGIN_ENABLED = True

# Sessions: 12 hours idle, 7 days in all (middleware.session_age). In the database alone: with a copy in the broker no
# page would answer while that is away, and whoever reads the broker could take a session over.
SESSION_ENGINE = "django.contrib.sessions.backends.db"
SESSION_COOKIE_AGE = 12 * 3600
SESSION_ABSOLUTE_AGE_SECONDS = 7 * 24 * 3600
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = env.https()
CSRF_FAILURE_VIEW = "quartermaster_site.error_pages.csrf_failure"

# Headers
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
if env.https():
    SECURE_HSTS_SECONDS = 30 * 24 * 3600
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "object-src": [NONE],
        "frame-ancestors": [NONE],
        "form-action": [SELF],
        "base-uri": [NONE],
    }
}
# A config file has 16 MiB at most, a recording of a voice 20.
DATA_UPLOAD_MAX_MEMORY_SIZE = 22 * 1024 * 1024
DATA_UPLOAD_MAX_NUMBER_FIELDS = 4000

# Logging
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"()": OneLine, "fmt": "{asctime} {levelname} {name}: {message}", "style": "{"}},
    "filters": {"clients": {"()": "django.utils.log.CallbackFilter", "callback": without_trace_of_clients}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": env.log_level()},
    "loggers": {
        "django.request": {"filters": ["clients"]},
        **{f"django.security.{name}": {"filters": ["clients"]} for name in UNREADABLE_REQUESTS},
        # Anybody can send a wrong host name; our own line about it has no trace (error_pages.bad_request).
        "django.security.DisallowedHost": {"level": "CRITICAL"},
    },
}
