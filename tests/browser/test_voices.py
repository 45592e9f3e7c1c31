"""Voices in a browser: a file is chosen, sent, heard and deleted; without scripts, and on small screens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.speech_files import wav
from tests.speech_stand_in import SpeechServer as StandIn
from tests.speech_stand_in import stand_in

SignIn = Callable[..., None]


@pytest.fixture
def server() -> Iterator[StandIn]:
    with stand_in() as found:
        yield found


@pytest.fixture
def speaking(library: str, server: StandIn) -> str:
    """The library with a speech model whose server runs."""
    from gpus_app.models import Host
    from models_app.models import HeaderFacts, Row, SpeechServer

    host = Host.objects.get(slug="atlas")
    path = "/speech/qwen-talker-1.7b-base-a-very-long-name-for-a-small-screen-Q8_0.gguf"
    facts = {"format": "gguf", "architecture": "qwen3-tts", "speech_type": "base"}
    header = HeaderFacts.objects.create(host=host, path=path, size_bytes=1, mtime_ns=1, facts=facts)
    name = Path(path).stem.lower()
    row = Row.objects.create(
        host=host,
        header=header,
        path=path,
        served_id=name,
        file_name=Path(path).name,
        model_class="tts",
        architecture="qwen3-tts",
        found={"id": name, "full_path": path},
    )
    SpeechServer.objects.create(row=row, url=server.url)
    return library


def register(page: Page, base: str, tmp_path: Path, name: str = "anna") -> None:
    sound = tmp_path / "anna.wav"
    sound.write_bytes(wav(seconds=3))
    page.goto(f"{base}/voices/atlas/")
    page.get_by_role("link", name="Register a voice").click()
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Recording").set_input_files(sound)
    page.get_by_label("What is said in it").fill("Hello there.")
    page.get_by_role("button", name="Register").click()


def test_the_whole_way_without_scripts(
    browser: Browser, speaking: str, server: StandIn, make_user: Any, tmp_path: Path
) -> None:
    make_user("admin")
    context = browser.new_context(java_script_enabled=False)
    context.set_default_timeout(10_000)
    page = context.new_page()
    page.goto(f"{speaking}/login/")
    page.get_by_label("Username").fill("admin")
    page.get_by_label("Password").fill("correct horse battery")
    page.get_by_role("button", name="Sign in").click()
    register(page, speaking, tmp_path)
    expect(page.locator("#voices-state")).to_contain_text("live")
    assert server.voices["anna"]["ref_text"] == "Hello there."
    page.get_by_role("link", name="Audition anna").click()
    expect(page.get_by_label("Voice", exact=True)).to_have_value("anna")
    page.get_by_label("Text").fill("one two three")
    page.get_by_text("Sampling").click()
    page.get_by_label("Seed").fill("7")
    page.get_by_role("button", name="Speak").click()
    expect(page.locator("audio")).to_have_count(1)
    expect(page.locator("#auditions")).to_contain_text("voice anna, seed 7")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download WAV").click()
    assert Path(download.value.path()).read_bytes() == wav(seconds=1.2)
    page.get_by_role("link", name="Voices of").click()
    page.get_by_role("link", name="Delete anna").click()
    page.get_by_role("button", name="Delete voice").click()
    expect(page.locator("#voices-state")).to_contain_text("No voice is kept")
    assert server.voices == {}
    context.close()


def test_what_is_refused_stands_beside_its_field(
    page: Page, speaking: str, sign_in: SignIn, trouble: list[str], tmp_path: Path
) -> None:
    sign_in("editor")
    register(page, speaking, tmp_path, name='an"na')
    expect(page.locator("#f-name_error")).to_contain_text("letters without accents, digits, blanks, - and _")
    expect(page.get_by_label("What is said in it")).to_have_value("Hello there.")


def test_it_plays(page: Page, speaking: str, sign_in: SignIn, trouble: list[str], tmp_path: Path) -> None:
    sign_in("admin")
    register(page, speaking, tmp_path)
    page.get_by_role("link", name="Audition anna").click()
    page.get_by_label("Text").fill("one two three")
    page.get_by_role("button", name="Speak").click()
    length = page.locator("audio").evaluate(
        "audio => new Promise(done => { audio.onloadedmetadata = () => done(audio.duration);"
        " audio.onerror = () => done(-1); audio.preload = 'auto'; audio.load(); })"
    )
    assert length == pytest.approx(1.2, abs=0.01)


@pytest.mark.parametrize("width", [320, 390])
def test_small_screens(
    page: Page, speaking: str, server: StandIn, sign_in: SignIn, trouble: list[str], tmp_path: Path, width: int
) -> None:
    server.speakers = ("a-speaker-with-a-name-that-goes-on-and-on-and-on-and-on", "ryan")
    sign_in("admin")
    register(page, speaking, tmp_path, name="b" * 64)
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(f"{speaking}/voices/atlas/")
    page.get_by_role("link", name="Audition b").click()
    page.get_by_label("Text").fill("one two three " + "x" * 80)
    page.get_by_role("button", name="Speak").click()
    expect(page.locator("audio")).to_have_count(1)
    here = page.url.partition("?")[0]
    for address in (
        here,
        f"{speaking}/voices/atlas/",
        f"{speaking}/voices/atlas/new/",
        here.replace("audition/", "address/"),
    ):
        page.goto(address)
        overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert overflow <= 0, f"{address} is {overflow} px too wide"
        assert page.locator("h1").count() == 1
        nameless: Any = page.evaluate(
            """() => Array.from(document.querySelectorAll('main input:not([type=hidden]), main select, main button'))
                 .filter(e => !(e.labels && e.labels.length) && !e.textContent.trim() && !e.getAttribute('aria-label'))
                 .map(e => e.outerHTML.slice(0, 120))"""
        )
        assert nameless == [], address
