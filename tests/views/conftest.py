"""A host with a few scanned models, and clients of every role."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from gpus_app.models import Device, Host, HostSetting
from gpus_app.selectors import get_host
from models_app import services
from models_app.models import Root, Row
from quartermaster_site.access.audit import Actor
from quartermaster_site.access.models import Installation
from tests.kept_rows import KeptRows
from tests.zoo import zoo

MODELS = ("qwen3-0.6b-q8_0", "qwen3-8b-q4_k_m", "mixtral-8x7b-q4_0", "nomic-embed-text-v1.5-f16")
GIB = 1 << 30
ROLES = ("viewer", "operator", "editor", "admin")


@pytest.fixture
def gpu_host(host: Host) -> Host:
    """A host with one 24 GiB card, its budget set by hand."""
    Device.objects.create(
        host=host, index=0, name="RTX 3090", vendor="nvidia", total_bytes=24 * GIB, free_bytes=23 * GIB
    )
    HostSetting.objects.create(host=host, section="memory", values={"targetVramGB": 22.5, "maxRamGB": 48.0}, version=1)
    Host.objects.filter(pk=host.pk).update(ram_total_bytes=64 * GIB, ram_available_bytes=58 * GIB)
    Host.objects.filter(pk=host.pk).update(probed_at=timezone.now())
    return get_host(host.slug)


@pytest.fixture(scope="session")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a handful of models and a file that is none."""
    folder = tmp_path_factory.mktemp("shelf")
    for name in MODELS:
        zoo.write_model(name, str(folder))
    (folder / "broken.gguf").write_bytes(b"GGUF\x03\x00")
    return folder


@pytest.fixture(scope="session")
def found_on_the_shelf() -> KeptRows:
    return KeptRows()


@pytest.fixture
def scanned(gpu_host: Host, shelf: Path, found_on_the_shelf: KeptRows, django_capture_on_commit_callbacks: Any) -> Host:
    """The shelf as a real scan found it, planned and rendered."""

    def scan() -> None:
        Root.objects.create(host=gpu_host, path=str(shelf))
        run(django_capture_on_commit_callbacks, lambda: services.start_scan(host=gpu_host, actor=Actor()))

    found_on_the_shelf.store(scan)
    return get_host(gpu_host.slug)


def run(capture: Any, action: Callable[[], Any]) -> Any:
    """Do something and everything it queues, and what that queues."""
    with capture(execute=True):
        return action()


@pytest.fixture
def finished_setup(db: None) -> None:
    Installation.objects.update_or_create(pk=1, defaults={"setup_finished_at": timezone.now()})


@pytest.fixture
def as_role(make_user: Callable[..., Any], finished_setup: None) -> Callable[[str], Client]:
    """`as_role("viewer")` is a signed-in client of that role."""

    def signed_in(role: str) -> Client:
        client = Client()
        client.force_login(make_user(role))
        return client

    return signed_in


@pytest.fixture
def viewer(as_role: Callable[[str], Client]) -> Client:
    return as_role("viewer")


@pytest.fixture
def admin(as_role: Callable[[str], Client]) -> Client:
    return as_role("admin")


@pytest.fixture
def post(django_capture_on_commit_callbacks: Any) -> Callable[..., Any]:
    """Post a form with everything that it queues."""

    def send(client: Client, address: str, **values: str) -> Any:
        return run(django_capture_on_commit_callbacks, lambda: client.post(address, values))

    return send


@pytest.fixture
def row_named() -> Callable[[str], Row]:
    return lambda name: Row.objects.get(served_id__startswith=name)
