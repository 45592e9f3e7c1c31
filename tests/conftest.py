"""What all tests share: tasks run at once, and people of every role are at hand."""

from __future__ import annotations

import functools
import gc
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from models_app.core.catalog import Header
from models_app.core.readers import read_header
from tests.made_once import made_once
from tests.zoo import zoo


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests of a real llama.cpp are part of a run where there is one, and counted as deselected where there is none."""
    if os.environ.get("QM_LLAMA_BIN"):
        return
    without = [item for item in items if item.get_closest_marker("llama")]
    if without:
        items[:] = [item for item in items if item not in set(without)]
        config.hook.pytest_deselected(items=without)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Modules of one `xdist_group` go to one process. Ids of pytest 9 no longer tell xdist 3.8 of the mark."""
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadGroupScheduling

    class ByModule(LoadGroupScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return _group_of(config.rootpath / nodeid.split("::")[0]) or nodeid

    return ByModule(config, log)


@functools.cache
def _group_of(module: Path) -> str:
    mark = re.search(r'^pytestmark = .*xdist_group\("([\w-]+)"\)', module.read_text(encoding="utf-8"), re.MULTILINE)
    return mark[1] if mark else ""


def pytest_collection_finish() -> None:
    """Half a million objects of the collection stay to the end: the garbage collector need not walk them each time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _tasks_run_at_once() -> Iterator[None]:
    """Celery without a worker. A test that starts a real one runs it in a process of its own."""
    from quartermaster_site.celery import app

    app.conf.task_always_eager = True
    yield
    app.conf.task_always_eager = False


@pytest.fixture
def make_user(db: None, django_user_model: Any) -> Callable[..., Any]:
    """`make_user("editor")` is a person with that role; the name is the role's."""
    from quartermaster_site.access.models import Account

    def make(role: str, name: str = "") -> Any:
        user = django_user_model.objects.create_user(username=name or role, password="correct horse battery")
        Account.objects.create(user=user, role=role)
        return user

    return make


@pytest.fixture
def actor(make_user: Callable[..., Any]) -> Any:
    """An administrator who acts."""
    from quartermaster_site.access.audit import Actor

    user = make_user("admin")
    return Actor(user=user, name=user.username, address="127.0.0.1", request_id="test")


@pytest.fixture
def host(db: None) -> Any:
    """A registered host whose worker was seen just now."""
    from django.utils import timezone

    from gpus_app.models import Host

    return Host.objects.create(slug="local", name="Local machine", last_seen_at=timezone.now())


@pytest.fixture(scope="session")
def zoo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All models of tests/zoo as sparse files, written once for all workers of a run. Read only."""

    def write(folder: Path) -> None:
        for name in zoo.MODELS:
            zoo.write_model(name, str(folder))

    return made_once(tmp_path_factory, "zoo", write)


@pytest.fixture(scope="session")
def zoo_header(zoo_folder: Path) -> Callable[[str], Header]:
    """`zoo_header("qwen3-8b-q4_k_m")`: the header of a model of the zoo, each read once."""

    @functools.cache
    def header(name: str) -> Header:
        return read_header(str(min(zoo_folder.glob(f"{name}*.gguf"))))

    return header
