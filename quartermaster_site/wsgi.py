"""The WSGI entry point that gunicorn serves."""

from __future__ import annotations

import gc
import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "quartermaster_site.settings")
application = get_wsgi_application()

# What is loaded by now stays as long as the process: a full collection that walked through it again would hold a
# page of a long list up for a tenth of a second.
gc.collect()
gc.freeze()
# A page of ten thousand models makes tens of thousands of short-lived tuples: at the usual thresholds (700, 10, 10) it
# is held up by some ninety collections that find nothing, one of them through everything there is.
gc.set_threshold(10_000, 10, 20)
