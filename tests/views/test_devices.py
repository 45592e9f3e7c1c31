"""The device section of a host through its form."""

from __future__ import annotations

import pytest

from gpus_app.models import Device, HostSetting
from gpus_app.selectors import get_host, host_budget
from models_app import services
from models_app.models import Revision, Root
from quartermaster_site.access.audit import Actor
from tests.views.conftest import run

PATH = "/hosts/local/settings/gpu/"
GIB = 1 << 30


@pytest.fixture
def cards(gpu_host):
    Device.objects.create(
        host=gpu_host, index=1, name="RTX 3060", vendor="nvidia", total_bytes=12 * GIB, free_bytes=11 * GIB
    )
    return gpu_host


@pytest.fixture(autouse=True)
def _nothing_is_sent(request, monkeypatch):
    if "shelf" not in request.fixturenames:
        monkeypatch.setattr("quartermaster_site.jobs.dispatch.send", lambda *args, **kwargs: None)


def sent(**values):
    """The form as a browser sends it: switches that are on, and every text field."""
    form = {"version": "0", "multiGpu": "on", "minGpuVramGB": "", "sharedMemory": "", "reserve-0": "", "reserve-1": ""}
    return {key: value for key, value in {**form, **values}.items() if value is not None}


def test_an_untouched_form_changes_nothing(admin, cards):
    assert admin.post(PATH, sent()).status_code == 302
    assert not HostSetting.objects.filter(section="gpu").exists()
    assert "default: automatic" in admin.get(PATH).content.decode(), "the word of the list, not its stored value"


def test_what_was_set_is_in_force(admin, cards):
    admin.post(PATH, sent(multiGpu=None, minGpuVramGB="2,5", **{"reserve-0": "4"}))
    values = HostSetting.objects.get(section="gpu").values
    assert values == {"multiGpu": False, "minGpuVramGB": 2.5, "deviceReserveGB": {"0": 4.0}}
    budget = host_budget(get_host("local"))
    assert budget.capacity_bytes == (20 * GIB,)
    content = admin.get(PATH).content.decode()
    assert "not used: planning uses one card only" in content
    assert 'value="2.5"' in content


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("minGpuVramGB", "-1"),
        ("minGpuVramGB", "nan"),
        ("minGpuVramGB", "1e12"),
        ("reserve-0", "-2"),
        ("reserve-0", "25"),
        ("reserve-1", "inf"),
        ("sharedMemory", "maybe"),
    ],
)
def test_a_bad_value_is_an_error_of_its_field(admin, cards, field, value):
    response = admin.post(PATH, sent(**{field: value}))
    assert response.status_code == 422
    assert f'id="e-{field}"' in response.content.decode() or f"f-{field}_error" in response.content.decode()
    assert list(response.context["form"].errors) == [field]
    assert not HostSetting.objects.filter(section="gpu").exists()


def test_of_two_the_second_sees_what_differs(admin, cards):
    admin.post(PATH, sent(**{"reserve-0": "4"}))
    response = admin.post(PATH, sent(**{"reserve-0": "2"}))
    assert response.status_code == 409
    content = response.content.decode()
    assert "saved these settings" in content
    assert 'name="version" value="1"' in content
    assert admin.post(PATH, sent(version="1", **{"reserve-0": "2"})).status_code == 302


def test_a_reserve_of_a_card_that_is_away_stays(admin, cards):
    admin.post(PATH, sent(**{"reserve-1": "3"}))
    Device.objects.filter(index=1).delete()
    admin.post(PATH, sent(version="1", minGpuVramGB="1", **{"reserve-1": None}))
    assert HostSetting.objects.get(section="gpu").values["deviceReserveGB"] == {"1": 3.0}


def test_when_a_card_is_used(admin, cards):
    admin.post(PATH, sent(**{"use-0": "", "use-1": "first"}))
    assert HostSetting.objects.get(section="gpu").values == {"devicePreference": {"1": "first"}}
    content = admin.get(PATH).content.decode()
    assert "used first, as set; the main device, by the order that is set" in content
    assert '<option value="first" selected>' in content
    Device.objects.filter(index=1).delete()
    admin.post(PATH, sent(version="1", minGpuVramGB="1", **{"reserve-1": None}))
    assert HostSetting.objects.get(section="gpu").values["devicePreference"] == {"1": "first"}
    assert admin.post(PATH, sent(version="2", **{"use-0": "best"})).status_code == 422


def test_the_main_card_says_why(admin, cards):
    assert "used for planning; the main device, with most memory" in admin.get(PATH).content.decode()


def test_without_a_gpu_the_form_is_there(viewer, host):
    content = viewer.get(PATH).content.decode()
    assert "Not measured yet" in content
    assert "needs the role editor" in content


def test_the_written_entries_hide_a_card_that_does_not_count(gpu_host, shelf, django_capture_on_commit_callbacks):
    """The display card beside it would get layers else: llama-server shares them among all cards that it sees."""
    Device.objects.filter(index=0).update(index=1)
    Device.objects.create(host=gpu_host, index=0, name="T400", vendor="nvidia", total_bytes=2 * GIB, free_bytes=GIB)
    Root.objects.create(host=gpu_host, path=str(shelf))
    run(django_capture_on_commit_callbacks, lambda: services.start_scan(host=get_host("local"), actor=Actor()))
    text = Revision.objects.latest("pk").text
    assert "CUDA_VISIBLE_DEVICES=1" in text
    assert "CUDA_DEVICE_ORDER=PCI_BUS_ID" in text
