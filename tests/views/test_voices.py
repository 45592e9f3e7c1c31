"""The Voices pages: what servers list, keeping a voice, sending it, trying it; who may; what stands in the way."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from gpus_app.models import Host
from models_app.models import Audition, HeaderFacts, Root, Router, Row, SpeechServer, Voice
from models_app.services import routers, voice_jobs
from quartermaster_site.access.models import AuditEntry
from quartermaster_site.jobs.models import Job
from tests.speech_files import latents, wav
from tests.speech_stand_in import SpeechServer as StandIn
from tests.speech_stand_in import stand_in

PAGE = "/voices/local/"


@pytest.fixture
def add_model(host: Host) -> Callable[..., Row]:
    root = Root.objects.create(host=host, path="/m", state="ok")

    def add(name: str = "qwen-talker-base", model_type: str = "base", width: int = 2048) -> Row:
        path = f"/m/{name}.gguf"
        facts = {"format": "gguf", "architecture": "qwen3-tts", "speech_type": model_type}
        header = HeaderFacts.objects.create(
            host=host,
            path=path,
            size_bytes=1 << 30,
            mtime_ns=1,
            facts=facts | {"extra": {"talker.embedding_length": width}},
        )
        return Row.objects.create(
            host=host,
            root=root,
            header=header,
            path=path,
            served_id=name,
            file_name=f"{name}.gguf",
            model_class="tts",
            category="tts",
            architecture="qwen3-tts",
            found={"id": name, "full_path": path},
        )

    return add


@pytest.fixture
def talker(add_model: Callable[..., Row]) -> Row:
    return add_model()


@pytest.fixture
def server() -> Iterator[StandIn]:
    with stand_in() as found:
        yield found


@pytest.fixture
def direct(talker: Row, server: StandIn) -> StandIn:
    """A server at an address of its own."""
    SpeechServer.objects.create(row=talker, url=server.url)
    return server


@pytest.fixture
def routed(host: Host, talker: Row, server: StandIn) -> StandIn:
    """A server behind the router of the host, which was seen with it loaded."""
    server.running = {talker.served_id: "ready"}
    Host.objects.update(publish_dialect="llama-swap")
    entry = {"id": talker.served_id, "state": "loaded", "since": "2026-11-30T10:00:00+00:00", "aliases": []}
    Router.objects.create(host=host, url=server.url, seen_at=timezone.now(), held=1, listed=[entry])
    return server


@pytest.fixture(autouse=True)
def _commits(django_capture_on_commit_callbacks: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits for a commit happens after each request: tests run inside a transaction."""
    plain = Client.request

    def request(self: Client, **sent: Any) -> Any:
        with django_capture_on_commit_callbacks(execute=True):
            return plain(self, **sent)

    monkeypatch.setattr(Client, "request", request)


def upload(name: str, data: bytes) -> SimpleUploadedFile:
    return SimpleUploadedFile(name, data)


def keep(client: Client, name: str = "anna", **fields: Any) -> Any:
    sent = {"name": name, "ref_text": "Hello there.", "wav": upload("a.wav", wav(seconds=3))}
    return client.post(f"{PAGE}new/", sent | fields)


def text_of(client: Client, url: str = PAGE) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", client.get(url).content.decode()))


def test_a_recording_is_kept_and_registered(direct: StandIn, talker: Row, admin: Client) -> None:
    answer = keep(admin)
    assert (answer.status_code, answer["Location"]) == (302, PAGE)
    voice = Voice.objects.get()
    assert (voice.name, voice.form, voice.ref_text, voice.seconds) == ("anna", "wav", "Hello there.", 3)
    assert direct.voices["anna"]["bytes"]["wav_b64"] == wav(seconds=3)
    shown = text_of(admin)
    assert "live" in shown
    assert "being registered with 1 running server" in shown
    job = Job.objects.get(kind="register_voice")
    assert (job.state, job.result) == ("succeeded", {"voices": 1})
    assert "wav" not in str(job.inputs), "files are in no job's row"
    entry = AuditEntry.objects.get(action="voice.register")
    assert entry.changes["voice"] == ["", "anna"]


def test_latents_are_kept_and_registered(direct: StandIn, admin: Client) -> None:
    spk, rvq = latents(2048)
    assert keep(admin, wav="", spk=upload("a.spk", spk), rvq=upload("a.rvq", rvq)).status_code == 302
    assert direct.voices["anna"]["bytes"] == {"spk_b64": spk, "rvq_b64": rvq}
    assert Voice.objects.get().width == 2048


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"name": 'an"na'}, "letters without accents"),
        ({"wav": upload("a.wav", b"ID3" + b"x" * 100)}, "but an MP3"),
        ({"wav": upload("a.wav", b"")}, "Choose a recording"),
        ({"wav": ""}, "Choose a recording"),
        ({"wav": upload("a.wav", wav()[:-100])}, "was cut off"),
        ({"wav": upload("a.wav", wav(seconds=0.01))}, "too short"),
        ({"wav": upload("a.wav", wav() + bytes(20 << 20))}, "20 MiB"),
        ({"spk": upload("a.spk", latents()[0]), "rvq": upload("a.rvq", latents()[1])}, "not both"),
        ({"wav": "", "spk": upload("a.spk", latents()[0])}, "belong together"),
        ({"wav": "", "rvq": upload("a.rvq", latents()[1])}, "belong together"),
        ({"wav": "", "spk": upload("a", b"x" * 4095), "rvq": upload("b", latents()[1])}, "this one has 4,095"),
        ({"wav": "", "spk": upload("a", latents(1024)[0]), "rvq": upload("b", latents()[1])}, "1,024 wide; those"),
        ({"wav": "", "spk": upload("a", latents()[0]), "rvq": upload("b", b"x" * 21)}, "no file of codes"),
        ({"ref_text": "x" * 2001}, "2000 characters"),
    ],
)
def test_what_no_server_would_take_is_refused_here(direct: StandIn, admin: Client, fields: Any, said: str) -> None:
    answer = keep(admin, **fields)
    assert answer.status_code == 422
    assert said in answer.content.decode()
    assert not Voice.objects.exists()
    assert direct.asked == []


def test_a_name_is_taken_until_somebody_says_replace(direct: StandIn, admin: Client) -> None:
    keep(admin)
    again = keep(admin, wav=upload("b.wav", wav(seconds=5)))
    assert again.status_code == 422
    assert "There is a voice anna already" in again.content.decode()
    assert keep(admin, wav=upload("b.wav", wav(seconds=5)), replaces="on").status_code == 302
    assert Voice.objects.get().seconds == 5
    assert direct.voices["anna"]["bytes"]["wav_b64"] == wav(seconds=5)


def test_sending_a_voice_that_was_deleted_meanwhile(direct: StandIn, admin: Client) -> None:
    keep(admin)
    Voice.objects.all().delete()
    direct.asked.clear()
    admin.post(f"/jobs/{Job.objects.get(kind='register_voice').pk}/retry/")
    again = Job.objects.latest("pk")
    assert (again.state, again.error) == ("failed", "This voice was deleted meanwhile.")
    assert direct.asked == []


def test_voices_are_bounded(direct: StandIn, admin: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("models_app.services.voices.MAX_VOICES", 1)
    keep(admin)
    assert "delete one first" in keep(admin, "b").content.decode()
    monkeypatch.setattr("models_app.services.voices.MAX_VOICES", 9)
    monkeypatch.setattr("models_app.services.voices.MAX_TOTAL_BYTES", 200_000)
    assert "delete one first" in keep(admin, "c").content.decode()


def test_only_base_models_take_voices(add_model: Any, admin: Client) -> None:
    add_model("qwen-talker-custom", "custom_voice")
    assert "No base model is here" in keep(admin).content.decode()


def test_what_a_server_answers_is_shown(direct: StandIn, talker: Row, admin: Client) -> None:
    direct.model_type = "custom_voice"  # what its file says is not what runs
    keep(admin)
    assert Job.objects.get(kind="register_voice").state == "failed"
    shown = text_of(admin)
    assert "anna at qwen-talker-base: the server answers 400: voice extraction requires a base model" in shown
    admin.post(f"{PAGE}servers/{talker.pk}/ask/")
    shown = text_of(admin)
    assert "voice extraction requires" in shown, "it is not over because something else went well"
    assert "not there" in shown
    direct.model_type = "base"
    admin.post(f"{PAGE}{Voice.objects.get().pk}/send/", {"model": talker.pk})
    shown = text_of(admin)
    assert "live" in shown
    assert "voice extraction requires" not in shown


def test_a_server_that_went_away(direct: StandIn, talker: Row, admin: Client) -> None:
    keep(admin)
    direct.fault = "text"
    admin.post(f"{PAGE}servers/{talker.pk}/ask/")
    shown = text_of(admin)
    assert "does not answer" in shown
    assert "When it was asked last: what answers there lists no voices: it is no qwentts server" in shown
    assert "As they were listed last" in shown
    direct.fault = ""
    admin.post(f"{PAGE}servers/{talker.pk}/ask/")
    assert "live" in text_of(admin)


def test_deleting(direct: StandIn, admin: Client) -> None:
    keep(admin)
    url = f"{PAGE}{Voice.objects.get().pk}/delete/"
    assert "Delete the voice anna?" in admin.get(url).content.decode()
    assert admin.post(url).status_code == 302
    assert not Voice.objects.exists()
    assert direct.voices == {}
    assert AuditEntry.objects.filter(action="voice.delete").exists()
    assert admin.post(url).status_code == 404


def test_a_voice_that_somebody_else_registered(direct: StandIn, talker: Row, admin: Client) -> None:
    direct.voices["guest"] = {"width": 2048}
    admin.post(f"{PAGE}servers/{talker.pk}/ask/")
    assert "not by us" in text_of(admin)
    admin.post(f"{PAGE}servers/{talker.pk}/drop/", {"name": "guest"})
    assert direct.voices == {}
    assert admin.post(f"{PAGE}servers/{talker.pk}/drop/", {"name": "ryan"}).status_code == 422


class TestAudition:
    def speak(self, client: Client, row: Row, **fields: Any) -> Any:
        return client.post(f"{PAGE}servers/{row.pk}/audition/", {"input": "one two three", **fields})

    def test_it_is_heard_and_downloaded(self, direct: StandIn, talker: Row, admin: Client) -> None:
        numbers = {"seed": "7", "temperature": "0,5", "top_k": "20", "top_p": "0.9", "max_new_tokens": "100"}
        assert self.speak(admin, talker, **numbers).status_code == 302
        sent = direct.asked[-1][2]
        assert sent == {
            "input": "one two three",
            "response_format": "wav",
            "seed": 7,
            "temperature": 0.5,
            "top_k": 20,
            "top_p": 0.9,
            "max_new_tokens": 100,
        }
        html = admin.get(f"{PAGE}servers/{talker.pk}/audition/").content.decode()
        assert "<audio" in html
        assert "1.2 s" in html
        found = Audition.objects.get()
        audio = admin.get(f"{PAGE}auditions/{found.pk}/audio/")
        assert audio["Content-Type"] == "audio/wav"
        assert audio.content == wav(seconds=1.2)
        saved = admin.get(f"{PAGE}auditions/{found.pk}/audio/?download=1")
        assert saved["Content-Disposition"] == f'attachment; filename="audition-{found.pk}.wav"'
        part = admin.get(f"{PAGE}auditions/{found.pk}/audio/", headers={"Range": "bytes=0-3"})
        assert (part.status_code, part.content) == (206, b"RIFF")
        assert "audio" not in str(Job.objects.get(kind="audition").result), "no job holds the sound"
        assert AuditEntry.objects.filter(action="voice.audition").exists()

    @pytest.mark.parametrize(
        ("fault", "said"),
        [
            ("cut", "the sound was cut off: the connection ended in the middle"),
            ("cut-wav", "the sound was cut off after"),
            ("huge", "longer than 7 MiB"),
            ("text", "something else than a WAV"),
            ("empty", "no sound at all"),
            ("broken", "the server answers 502: GGML_ASSERT failed more"),
        ],
    )
    def test_trouble_in_words(self, direct: StandIn, talker: Row, admin: Client, fault: str, said: str) -> None:
        direct.fault = fault
        self.speak(admin, talker)
        html = admin.get(f"{PAGE}servers/{talker.pk}/audition/").content.decode()
        assert said in html
        assert "<audio" not in html
        assert admin.get(f"{PAGE}auditions/{Audition.objects.get().pk}/audio/").status_code == 404

    @pytest.mark.parametrize(
        ("fields", "said"),
        [
            ({"input": ""}, "Write what is to be said"),
            ({"input": "x" * 1001}, "1000 characters"),
            ({"top_p": "0"}, "above 0"),
            ({"top_p": "1.1"}, "up to 1"),
            ({"seed": "1.5"}, "whole number"),
            ({"max_new_tokens": "2049"}, "2,048"),
            ({"temperature": "hot"}, "takes a number"),
            ({"voice": "nobody"}, "Select a valid choice"),
        ],
    )
    def test_what_is_refused_before_it_is_sent(
        self, direct: StandIn, talker: Row, admin: Client, fields: Any, said: str
    ) -> None:
        answer = self.speak(admin, talker, **fields)
        assert answer.status_code == 422
        assert said in answer.content.decode()
        assert direct.asked == []

    def test_a_model_with_speakers_of_its_own(self, add_model: Any, admin: Client) -> None:
        row = add_model("qwen-talker-custom", "custom_voice")
        with stand_in(model_type="custom_voice", speakers=("ryan", "serena")) as server:
            SpeechServer.objects.create(row=row, url=server.url)
            admin.post(f"{PAGE}servers/{row.pk}/ask/")
            html = admin.get(f"{PAGE}servers/{row.pk}/audition/?voice=serena").content.decode()
            assert '<option value="serena" selected>' in html
            assert 'name="instructions"' in html
            self.speak(admin, row, voice="ryan", instructions="softly")
            assert server.asked[-1][2]["voice"] == "ryan"
            assert Audition.objects.get().seconds > 0

    def test_speakers_are_offered_before_anybody_asked(self, add_model: Any, admin: Client) -> None:
        row = add_model("qwen-talker-custom", "custom_voice")
        SpeechServer.objects.create(row=row, url="http://127.0.0.1:9")
        assert '<option value="ryan">' in admin.get(f"{PAGE}servers/{row.pk}/audition/").content.decode()

    def test_a_model_that_makes_voices(self, add_model: Any, admin: Client) -> None:
        row = add_model("qwen-talker-design", "voice_design")
        with stand_in(model_type="voice_design") as server:
            SpeechServer.objects.create(row=row, url=server.url)
            assert "from a description" in self.speak(admin, row).content.decode()
            assert self.speak(admin, row, instructions="an old man").status_code == 302

    def test_only_the_newest_are_kept(
        self, direct: StandIn, talker: Row, admin: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(voice_jobs, "MAX_AUDITIONS", 2)
        for _ in range(3):
            self.speak(admin, talker)
        assert Audition.objects.count() == 2

    @pytest.mark.parametrize("audio", ["", "no base64", 5, "A" * 20_000_000, "UklGRg=="])
    def test_sound_of_a_dishonest_worker(self, talker: Row, audio: Any) -> None:
        from quartermaster_site.jobs.untrusted import ReportRefused

        job = Job.objects.create(kind="audition", host=talker.host, object_id=f"{talker.pk} x", token="t")
        Audition.objects.create(row=talker, job=job)
        with pytest.raises(ReportRefused):
            voice_jobs.VoiceReceiver().batch(job, {"audio": audio})
        assert not Audition.objects.get().audio


class TestBehindTheRouter:
    @pytest.fixture
    def look(self, routed: StandIn, django_capture_on_commit_callbacks: Any) -> Callable[..., None]:
        """The next look of the host's worker at its router."""

        def seen(state: str = "ready") -> None:
            routed.running = {"qwen-talker-base": state}
            with django_capture_on_commit_callbacks(execute=True):
                routers.ask(Router.objects.select_related("host").get())
            assert Router.objects.get().problem == ""

        return seen

    def test_requests_go_through_it(self, routed: StandIn, admin: Client) -> None:
        keep(admin)
        assert "anna" in routed.voices
        assert any(path.startswith("/upstream/qwen-talker-base/v1/audio/voices") for _, path, _ in routed.asked)

    def test_a_kept_voice_comes_back_with_its_model(self, look: Any, routed: StandIn, admin: Client) -> None:
        keep(admin)
        look()
        routed.restart()
        look()
        assert routed.voices == {}, "the same process was given its voices already"
        look("")
        assert "waits for the model" in text_of(admin)
        look()
        assert "anna" in routed.voices
        assert "live" in text_of(admin)
        assert Job.objects.filter(kind="restore_voice", state="succeeded").count() >= 1

    def test_without_voices_it_is_asked_what_it_has(self, look: Any, routed: StandIn, talker: Row) -> None:
        routed.speakers = ("ryan",)
        look()
        assert SpeechServer.objects.get().listed == [{"name": "ryan", "kind": "speaker"}]

    def test_a_voice_waits_for_its_model(self, routed: StandIn, admin: Client) -> None:
        Router.objects.update(listed=[])
        assert keep(admin).status_code == 302
        assert routed.asked == []
        shown = text_of(admin)
        assert "as soon as a model that takes it is loaded" in shown
        assert "waits for the model" in shown
        assert "the router starts it when the model is asked for" in shown

    def test_the_key_of_the_router_stays_out_of_rows(self, routed: StandIn, admin: Client) -> None:
        Router.objects.update(key="sesame")
        routed.key = "sesame"
        keep(admin)
        assert "anna" in routed.voices
        assert "sesame" not in str(list(Job.objects.values()))

    def test_a_router_that_runs_no_speech(self, routed: StandIn, talker: Row, admin: Client) -> None:
        Host.objects.update(publish_dialect="llama-server")
        assert "runs no speech servers" in text_of(admin)
        assert admin.post(f"{PAGE}servers/{talker.pk}/ask/").status_code == 422


def test_no_speech_model(host: Host, viewer: Client) -> None:
    shown = text_of(viewer)
    assert "No speech model of this kind" in shown
    assert "No voice is kept" in shown
    assert viewer.get("/voices/")["Location"] == PAGE


def test_a_model_leads_to_its_audition(talker: Row, viewer: Client) -> None:
    assert (
        f'href="{PAGE}servers/{talker.pk}/audition/">Audition<' in viewer.get(f"/models/{talker.pk}/").content.decode()
    )


def test_nobody_knows_where_the_server_is(talker: Row, admin: Client) -> None:
    assert "Nobody knows where its server is" in text_of(admin)
    assert "Nobody knows" in text_of(admin, f"{PAGE}servers/{talker.pk}/audition/")


def test_the_address_of_a_server(talker: Row, admin: Client, server: StandIn) -> None:
    url = f"{PAGE}servers/{talker.pk}/address/"
    assert admin.post(url, {"url": "file:///etc/passwd"}).status_code == 422
    assert admin.post(url, {"url": f"{server.url}/"}).status_code == 302
    assert SpeechServer.objects.get().url == server.url
    assert AuditEntry.objects.get(action="speech-server.address").changes["speech server"] == ["", server.url]
    admin.post(f"{PAGE}servers/{talker.pk}/ask/")
    assert SpeechServer.objects.get().seen_at is not None
    admin.post(url, {"url": ""})
    assert SpeechServer.objects.get().seen_at is None


def test_another_engine_has_no_such_page(host: Host, add_model: Any, admin: Client) -> None:
    row = add_model("kokoro")
    Row.objects.filter(pk=row.pk).update(architecture="kokoro")
    assert admin.get(f"{PAGE}servers/{row.pk}/audition/").status_code == 404
    assert "kokoro" not in text_of(admin)


@pytest.mark.parametrize(
    ("role", "new", "ask", "send", "speak", "delete", "address"),
    [
        ("viewer", 403, 403, 403, 403, 403, 403),
        ("operator", 403, 302, 302, 302, 403, 403),
        ("editor", 302, 302, 302, 302, 302, 403),
        ("admin", 302, 302, 302, 302, 302, 302),
    ],
)
def test_roles(
    direct: StandIn,
    talker: Row,
    as_role: Callable[[str], Client],
    role: str,
    new: int,
    ask: int,
    send: int,
    speak: int,
    delete: int,
    address: int,
) -> None:
    client = as_role(role)
    kept = Voice.objects.create(host=talker.host, name="k", form="wav", wav=wav(), size_bytes=1, seconds=1)
    assert keep(client).status_code == new
    assert client.post(f"{PAGE}servers/{talker.pk}/ask/").status_code == ask
    assert client.post(f"{PAGE}{kept.pk}/send/", {"model": talker.pk}).status_code == send
    assert client.post(f"{PAGE}servers/{talker.pk}/audition/", {"input": "a"}).status_code == speak
    assert client.get(f"{PAGE}{kept.pk}/delete/").status_code == (200 if delete == 302 else 403)
    assert client.post(f"{PAGE}{kept.pk}/delete/").status_code == delete
    html = client.get(PAGE).content.decode()
    assert ("Register a voice" in html) == (new == 302)
    assert ("/ask/" in html) == (ask == 302)
    assert client.post(f"{PAGE}servers/{talker.pk}/address/", {"url": ""}).status_code == address


def test_queries_do_not_grow(host: Host, add_model: Any, viewer: Client) -> None:
    def count() -> int:
        with CaptureQueriesContext(connection) as context:
            assert viewer.get(PAGE).status_code == 200
        return len(context)

    row = add_model()
    viewer.get(PAGE)
    few = count()
    for number in range(5):
        add_model(f"qwen-talker-{number}")
        Voice.objects.create(host=host, name=f"v{number}", form="wav", wav=wav(), size_bytes=1, seconds=1)
    SpeechServer.objects.create(row=row, listed=[{"name": f"n{n}", "kind": "speaker"} for n in range(50)])
    viewer.get(PAGE)
    assert count() == few <= 12
    with CaptureQueriesContext(connection) as context:
        viewer.get(PAGE)
    assert not [query["sql"] for query in context if '"wav"' in query["sql"]], "files are not read for a list"


def test_recordings_change_plans(talker: Row, admin: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Host] = []
    monkeypatch.setattr("models_app.services.voices.request_plan", lambda host, actor: asked.append(host))
    keep(admin)
    assert len(asked) == 1, "the first one takes memory in every server"
    keep(admin, "b")
    assert len(asked) == 1
    spk, rvq = latents()
    keep(admin, "c", wav="", spk=upload("a", spk), rvq=upload("b", rvq))
    for name, changed in (("c", 1), ("b", 1), ("anna", 2)):
        admin.post(f"{PAGE}{Voice.objects.get(name=name).pk}/delete/")
        assert len(asked) == changed
