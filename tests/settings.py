"""The site's settings in a folder of their own: tests touch nobody's data."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile

# Container images often forbid bytecode. Every process that a test starts would compile the whole product again, and
# pytest rewrite every assertion again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

_KEPT = {"QM_DATABASE_URL", "QM_CHROMIUM", "QM_LLAMA_BIN"}  # what the tests themselves run on or with
for _name in [name for name in os.environ if name.startswith("QM_") and name not in _KEPT]:
    del os.environ[_name]
os.environ["QM_DATA_DIR"] = tempfile.mkdtemp(prefix="quartermaster-tests-")
atexit.register(shutil.rmtree, os.environ["QM_DATA_DIR"], ignore_errors=True)
os.environ["QM_SECRET_KEY"] = "tests-only-" + "x" * 32

from quartermaster_site.settings import *  # noqa: E402, F403
from quartermaster_site.settings import MIDDLEWARE, STORAGES  # noqa: E402

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STORAGES = {**STORAGES, "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}}
MIDDLEWARE = [name for name in MIDDLEWARE if not name.startswith("whitenoise.")]
