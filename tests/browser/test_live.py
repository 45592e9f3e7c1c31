"""The live page in a browser: drawings under the strict policy, polls that grow them, and rest while nobody looks."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from playwright.sync_api import Page, expect

SignIn = Callable[..., None]
GIB = 1 << 30


@pytest.mark.slow
def test_it_draws_and_follows_and_rests(page: Page, site: str, sign_in: SignIn, trouble: list[str]) -> None:
    from django.utils import timezone

    from gpus_app.models import Host, Telemetry
    from gpus_app.telemetry import checked

    host, _ = Host.objects.update_or_create(slug="local", defaults={"last_seen_at": timezone.now()})
    telemetry = Telemetry.objects.create(host=host)

    def sample(used: int, seconds_ago: float = 0) -> None:
        card = {"index": 0, "name": "RTX 3090", "total_bytes": 24 * GIB, "used_bytes": used * GIB}
        telemetry.sample = checked({"devices": [card], "ram": {"total_bytes": 64 * GIB, "available_bytes": GIB}})
        telemetry.received_at = timezone.now() - timedelta(seconds=seconds_ago)
        telemetry.save()

    sample(3, 10)
    sign_in("viewer")
    page.goto(f"{site}/hosts/local/live/")
    expect(page.locator("#live")).to_contain_text("3.00 / 24.00")
    expect(page.locator("[data-plot] canvas")).to_have_count(2)
    sample(17)
    look = "document.dispatchEvent(new Event('visibilitychange'))"
    page.evaluate(look)  # sooner than the poll of every five seconds
    expect(page.locator("#live")).to_contain_text("17.00 / 24.00")
    page.evaluate("Object.defineProperty(document, 'hidden', { get: () => true, configurable: true })")
    sample(5)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.evaluate(look)
    page.wait_for_timeout(500)
    assert asked == []
    page.evaluate(f"delete document.hidden; {look}")
    expect(page.locator("#live")).to_contain_text("5.00 / 24.00")
