"""The live page of a host: one sample for all who watch, what it says of old figures, and what a poll costs."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from gpus_app.models import Host, Telemetry, TelemetryPoint
from gpus_app.telemetry import checked
from models_app.models import Router
from models_app.pages.live_history import history_of, plots_of
from quartermaster_site.access.models import Policy

GIB = 1 << 30
URL = "/hosts/local/live/"
HTMX = {"HX-Request": "true", "HX-Target": "live"}
CARD = {
    "index": 0,
    "name": "RTX 3090",
    "total_bytes": 24 * GIB,
    "used_bytes": 20 * GIB,
    "reserved_bytes": GIB // 2,
    "utilisation_percent": 97.4,
    "temperature_celsius": 61,
    "power_watts": 287.5,
    "ours_bytes": 17 * GIB,
    "others": [["python3", 2 * GIB]],
}
SAMPLE = {
    "devices": [CARD],
    "ram": {"total_bytes": 64 * GIB, "available_bytes": 60 * GIB},
    "cpu_percent": 12.2,
    "disks": [
        {"path": "/models", "total_bytes": 1000 * GIB, "free_bytes": 40 * GIB},
        {"path": "/mnt/share", "problem": "does not answer"},
    ],
}


@pytest.fixture
def sample(gpu_host):
    """`sample(seconds, …)`: the host sent it so many seconds ago."""

    def store(seconds_ago=3.0, **more):
        received = timezone.now() - timedelta(seconds=seconds_ago)
        facts = {"received_at": received, "sample": checked({**SAMPLE, **more})}
        return Telemetry.objects.update_or_create(host=gpu_host, defaults=facts)[0]

    return store


def seen(seconds_ago):
    Host.objects.update(last_seen_at=timezone.now() - timedelta(seconds=seconds_ago))


def text_of(response):
    return " ".join(response.content.decode().split())


def test_the_figures_of_a_device(viewer, sample):
    sample()
    text = text_of(viewer.get(URL))
    for words in (
        " s ago.</span>",
        "GPU 0 · RTX 3090",
        "20.00 / 24.00",
        "17.00",
        "2.50",
        "4.00",
        "97 %",
        "61 °C",
        "288 W",
        "python3 2.00",
        "4.00 / 64.00",
        "nearly full",
        "does not answer",
    ):
        assert words in text, words


def test_old_figures_are_called_old(viewer, sample):
    sample(40)
    text = text_of(viewer.get(URL))
    assert "Last sample 40 s ago" in text
    assert "a driver may hang" in text
    seen(40)
    assert "its worker is silent too" in text_of(viewer.get(URL))
    sample(400)
    text = text_of(viewer.get(URL))
    assert "stale" in text
    assert "data-point" not in text, "no drawing goes on with it"


def test_a_host_that_is_gone_says_since_when(viewer, sample):
    sample(1000)
    seen(1000)
    text = text_of(viewer.get(URL))
    assert "Host offline since 20" in text
    assert "The last sample came 16 min ago. What follows is from then." in text
    assert "20.00 / 24.00" in text


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(2, "No sample yet"), (1000, "It never sent a sample."), (None, "No worker has answered yet")],
)
def test_without_a_sample_it_says_why(viewer, gpu_host, seconds, words):
    if seconds is None:
        Host.objects.update(last_seen_at=None)
    else:
        seen(seconds)
    assert words in text_of(viewer.get(URL))


def test_no_device_is_said_with_its_reasons(viewer, sample):
    sample(devices=[], notes=["nvidia: no NVIDIA driver", "amd: no AMD device"])
    text = text_of(viewer.get(URL))
    assert "No device found here" in text
    assert "nvidia: no NVIDIA driver. amd: no AMD device." in text


def test_a_driver_that_fails_is_said_beside_the_devices_that_answer(viewer, sample):
    sample(failed=["nvidia"], notes=["nvidia: GPU 1 does not answer: GPU is lost"])
    text = text_of(viewer.get(URL))
    assert "Not every device could be asked." in text
    assert "GPU is lost" in text


def test_what_nobody_can_tell_is_a_dash_with_a_reason(viewer, sample):
    unknown = {"ours_bytes": None, "ours_note": "the driver does not tell", "others": []}
    bare = {"utilisation_percent": None, "temperature_celsius": None, "power_watts": None}
    sample(devices=[{**CARD, **unknown, **bare}], disks=[])
    text = text_of(viewer.get(URL, headers=HTMX))
    assert "the driver does not tell" in text
    assert text.count('<span class="q-n">-</span>') == 5


@pytest.fixture
def router(gpu_host):
    listed = [
        {"id": name, "state": state, "since": timezone.now().isoformat(), "aliases": [], "command": []}
        for name, state in (("qwen3-8b", "loaded"), ("gemma-3b", "loading"), ("other", "unloaded"))
    ]
    return Router.objects.create(host=gpu_host, url="http://127.0.0.1:1", seen_at=timezone.now(), listed=listed)


def test_what_the_router_holds(viewer, sample, router):
    sample()
    text = text_of(viewer.get(URL))
    assert "qwen3-8b" in text
    assert "gemma-3b" in text
    assert ">other<" not in text


def test_a_model_that_somebody_may_not_see_is_counted(viewer, sample, router, gpu_host):
    sample()
    Policy.objects.create(model="gemma*", level=0)
    text = text_of(viewer.get(URL))
    assert "qwen3-8b" in text
    assert "gemma" not in text
    assert "1 model that you may not see" in text


def test_nobody_knows_what_is_loaded_without_a_router(viewer, sample):
    sample()
    assert "No router address is set" in text_of(viewer.get(URL))


def test_two_hundred_polls_cost_no_sample_and_one_query_each(viewer, sample, router, monkeypatch):
    """Beside who asks: session, person, account, policies."""
    sample()
    sent = []
    monkeypatch.setattr("quartermaster_site.jobs.dispatch.send", lambda *args, **more: sent.append(args))
    viewer.get(URL, headers=HTMX)
    before = Telemetry.objects.values().get(), TelemetryPoint.objects.count()
    with CaptureQueriesContext(connection) as context:
        answers = [viewer.get(URL, headers=HTMX) for _ in range(200)]
    own = [
        query["sql"] for query in context.captured_queries if "gpus_app" in query["sql"] or "models_app" in query["sql"]
    ]
    assert len(own) == 200
    assert len(context.captured_queries) <= 5 * 200
    assert not any(query.lstrip().startswith(("INSERT", "UPDATE")) for query in own)
    assert (sent, before) == ([], (Telemetry.objects.values().get(), TelemetryPoint.objects.count()))
    assert all(b"Last sample" in answer.content and b"<html" not in answer.content for answer in answers)


def test_a_poll_carries_the_newest_point(viewer, sample):
    row = sample()
    fragment = viewer.get(URL, headers=HTMX)
    point = json.loads(fragment.context["live"].point)
    assert point == {"t": row.received_at.timestamp(), "values": {"gpu-0": [83.3, 97.4], "ram": [6.2]}}


def test_the_past_has_drawings_and_tables(viewer, sample, gpu_host):
    row = sample()
    values = {"devices": {"0": [12 * GIB, 24 * GIB, 50.0, 60.0]}, "ram": [8 * GIB, 64 * GIB]}
    for number, seconds in enumerate((600, 590, 300, 4)):
        at = row.received_at - timedelta(seconds=seconds)
        TelemetryPoint.objects.create(host=gpu_host, slot=number, at=at, values=values)
    response = viewer.get(URL)
    history = response.context["history"]
    assert history["plots"]["gpu-0"][0] == [50.0, 50.0, None, 50.0, None, 50.0], (
        "where nothing is known the line breaks"
    )
    assert history["plots"]["ram"] == [[12.5, 12.5, None, 12.5, None, 12.5]]
    assert len(history["t"]) == 6
    plot = response.context["plots"][0]
    assert (plot.rows[0].memory, plot.rows[0].busy, plot.rows[0].temperature) == ("12.00", "50 %", "60 °C")
    text = text_of(response)
    assert 'id="live-history" type="application/json"' in text
    assert "uPlot.iife.min" in text


def test_a_device_that_came_later_has_no_past():
    point = TelemetryPoint(at=timezone.now(), values={"devices": {}, "ram": None})
    plots = plots_of(checked(SAMPLE), [point])
    assert [plot.rows for plot in plots] == [(), ()]
    assert history_of(plots, [point])["plots"] == {"gpu-0": [[None], [None]], "ram": [[None]]}


def test_an_integrated_device_counts_what_it_borrows(viewer, sample):
    apu = {**CARD, "name": "780M", "total_bytes": 2 * GIB, "used_bytes": GIB, "integrated": True, "ours_bytes": None}
    sample(devices=[{**apu, "shared_total_bytes": 16 * GIB, "shared_used_bytes": 8 * GIB}])
    assert "9.00 / 18.00" in text_of(viewer.get(URL))


def test_the_overview_tells_loaded_models_from_other_use(viewer, gpu_host):
    device = gpu_host.devices.get()
    assert "1.00 used, 23.00 free<" in text_of(viewer.get("/"))
    device.free_bytes, device.ours_bytes = 4 * GIB, 17 * GIB
    device.save()
    text = text_of(viewer.get("/"))
    assert "17.00 loaded, 3.00 other, 4.00 free<" in text
    assert "loaded models 17.00 GiB" in text


@pytest.mark.parametrize(
    ("seconds", "words", "stale"), [(30, "free<", False), (90, "1 min ago<", False), (400, "6 min ago, stale<", True)]
)
def test_the_overview_says_how_old_its_figures_are(viewer, gpu_host, seconds, words, stale):
    gpu_host.devices.update(read_at=timezone.now() - timedelta(seconds=seconds))
    text = text_of(viewer.get("/hosts/local/card/", headers={"HX-Request": "true"}))
    assert words in text
    assert ("q-stale" in text) == stale


def test_a_full_disk_is_a_warning_of_the_host(viewer, sample):
    sample()
    text = text_of(viewer.get("/hosts/local/"))
    assert "The disk below /models is nearly full: 40.0 of 1,000.0 GiB are free." in text
    assert "/mnt/share is nearly full" not in text


def test_names_of_a_machine_are_text(viewer, sample):
    """Names of devices, processes and folders come from elsewhere; the data of the drawings is no markup either."""
    evil = '</script><img src=x onerror="alert(1)">'
    sample(
        devices=[{**CARD, "name": evil, "others": [[evil, GIB]]}], disks=[{"path": evil}], notes=[evil], failed=["x"]
    )
    text = viewer.get(URL).content.decode()
    assert evil not in text
    assert "<img" not in text
