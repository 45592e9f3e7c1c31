"""What the web server loads at its start is left out of later garbage collections."""

import gc
import importlib
import sys


def test_what_is_loaded_is_not_collected_again(monkeypatch):
    monkeypatch.delitem(sys.modules, "quartermaster_site.wsgi", raising=False)
    thresholds = gc.get_threshold()
    gc.unfreeze()
    try:
        assert callable(importlib.import_module("quartermaster_site.wsgi").application)
        assert gc.get_freeze_count() > 100_000
        assert gc.get_threshold()[0] == 10_000, "and what a page makes is not looked through again and again"
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)
