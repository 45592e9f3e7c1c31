"""A generate file and a sidecar through the product: what is exported changes nothing, elsewhere it sets the same."""

from __future__ import annotations

import io
import zipfile

import pytest

from gpus_app.models import Backend, HostSetting
from gpus_app.selectors import get_host
from models_app.core.imports.report import Status
from models_app.core.imports.settings_source import joined
from models_app.models import ApiKey, Change, Fragment, ImportBatch, Override, Root, Row, Variant
from models_app.selectors.host_files import export_archive, export_texts
from models_app.services import import_settings, save_override
from models_app.services.import_applying import Choice, items_of_batch, start_apply
from models_app.services.import_undoing import changed_since, undo_import
from models_app.services.importing import SETTINGS, start_import
from quartermaster_site.access.audit import Actor
from quartermaster_site.errors import Refused
from tests.models.test_host_files import GENERATE, SIDECAR, all_that_is_set, do, settled  # noqa: F401


@pytest.fixture
def read(host, actor, do):  # noqa: F811
    """Bring in a generate file, a sidecar or both; the batch as it was read."""

    def run(file="", sidecar="", name=GENERATE, by=actor, of=None):
        text = joined(file, sidecar) if file and sidecar else file or sidecar
        name = name if file else SIDECAR
        batch = do(start_import, host=of or host, name=name, data=text.encode(), source=SETTINGS, actor=by)
        return ImportBatch.objects.select_related("host").get(pk=batch.pk)

    return run


@pytest.fixture
def take(actor, do):  # noqa: F811
    """Take over everything that is new; `also` are statuses that are ticked beside."""

    def run(batch, also=(), by=actor):
        items = items_of_batch(batch)
        numbers = {n for n, item in enumerate(items) if item.status in (Status.NEW, *also)}
        do(start_apply, batch=batch, choice=Choice(frozenset(item.section for item in items), {}, numbers), actor=by)
        batch.refresh_from_db()
        assert batch.state == "applied", batch.problem
        return batch

    return run


def found(batch, status):
    return [(item.source, item.note) for item in items_of_batch(batch) if item.status == status]


def test_what_was_exported_changes_nothing_when_it_is_imported(settled, read):  # noqa: F811
    for with_secrets in (True, False):
        texts = export_texts(settled, with_secrets=with_secrets)
        batch = read(texts[GENERATE], texts[SIDECAR])
        assert (found(batch, Status.NEW), found(batch, Status.CONFLICT)) == ([], [])
        assert len(found(batch, Status.SAME)) > 20
        assert len(found(batch, Status.LOST)) == (0 if with_secrets else 1)
        assert "abcdefgh1234" not in str(batch.report) or with_secrets
    assert not Change.objects.filter(action="import").exists()


def test_another_host_is_set_the_same_and_back(settled, read, take, actor, do, scan):  # noqa: F811
    """The same models on a host where nothing is set: the export of the one makes the export of the other."""
    texts = export_texts(settled, with_secrets=True)
    root = settled.roots.get()
    for model in (HostSetting, Override, Backend, Fragment):
        model.objects.filter(host=settled).delete()
    bare = export_texts(get_host(settled.slug), with_secrets=True)
    assert bare[SIDECAR] != texts[SIDECAR]
    batch = take(read(texts[GENERATE], texts[SIDECAR]))
    assert export_texts(get_host(settled.slug), with_secrets=True) | {"config.yaml": ""} == texts | {"config.yaml": ""}
    assert Root.objects.get(host=settled).pk == root.pk
    assert changed_since(batch) == []
    do(undo_import, batch=batch, actor=actor)
    after = export_texts(get_host(settled.slug), with_secrets=True)
    assert after | {"config.yaml": ""} == bare | {"config.yaml": ""}


def test_a_folder_that_an_import_added_goes_again(host, folder, read, take, actor, do):  # noqa: F811
    batch = take(read(f"settings: {{modelsRoot: {folder}}}\n"))
    assert Root.objects.get(host=host).path == str(folder)
    do(undo_import, batch=batch, actor=actor)
    assert not Root.objects.exists()


def test_what_is_set_here_to_something_else_is_a_conflict_and_stays(settled, read, take):  # noqa: F811
    beta = Row.objects.get(file_name="beta-2b-Q4_0.gguf")
    file = "settings: {threads: 9, kvQuant: q4_0, defaultVariants: [{name: game, temp: 1}]}\n"
    sidecar = f'overrides:\n  - match: "{beta.path}"\n    ctx: 2048\n    temp: 0.5\n'
    batch = read(file, sidecar)
    assert {source for source, _ in found(batch, Status.CONFLICT)} == {
        "settings.threads",
        "settings.kvQuant",
        "settings.defaultVariants[0].temp",
        "sidecar overrides[0].ctx",
    }
    take(batch)
    assert Override.objects.get(match=beta.path).fields["ctx"] == 1024
    assert Override.objects.get(match=beta.path).fields["temp"] == 0.5
    again = read(file, sidecar)
    take(again, also=(Status.CONFLICT,))
    assert Override.objects.get(match=beta.path).fields["ctx"] == 2048
    assert HostSetting.objects.get(section="advanced").values == {"threads": 9, "healthCheckTimeout": 77}


def test_a_row_for_one_file_stands_alone(scanned, host, read, take):
    """A rule of the host does not shine through a row that says less."""
    beta = Row.objects.get(file_name="beta-2b-Q4_0.gguf")
    Override.objects.create(host=host, match="*beta*", fields={"unlisted": True, "ctx": 512}, version=1)
    batch = read(sidecar=f'overrides: [{{match: "{beta.path}", ctx: 1024}}]\n')
    statuses = {item.target.field: item.status for item in items_of_batch(batch)}
    assert statuses == {"ctx": Status.CONFLICT, "unlisted": Status.NEW}
    take(batch, also=(Status.CONFLICT,))
    assert Override.objects.get(match=beta.path).fields == {"ctx": 1024}


REFUSED = {
    "settings: {targetVramGB: -1}": "more than 0",
    "settings: {kvQuant: q9}": "choose one of",
    "settings: {groups: [{name: a, listen: nowhere}]}": "host:port",
    "settings: {modelsRoot: models}": "whole path",
    "settings: {app: {watchModelsIntervalSec: 3}}": "Between 10",
    "settings: {apiKeys: [{name: a, key: short}]}": "8 to 512",
    "settings: {apiKeys: [{name: a, key: with a blank}]}": "8 to 512",
    "settings: {apiKeys: [{name: '', key: long-enough-key}]}": "needs a name",
    "settings: {serverExe: bin/llama-server}": "whole path",
    "settings: {defaultVariants: [{name: 'a b'}]}": "1 to 40 letters",
    'settings: {encoders: {t5: "a\\nb"}}': "usable path",
    "overrides: [{match: '*beta*', ctx: -1}]": "Context",
    "overrides: [{match: '*beta*', customArgs: '--port 1'}]": "port",
    "overrides: [{match: '*beta*', variants: [{name: a, flashAttn: maybe}]}]": "Flash",
    "overrides: [{match: PATH, backend: none-such}]": "no backend of this host",
    "overrides: [{match: PATH, customArgs: '--port 1'}]": "port",
    "overrides: [{match: PATH, variants: [{name: vision, ctx: 1}]}]": "projector",
    "overrides: [{match: PATH, variants: [{name: 'a/b', ctx: 1}]}]": "1 to 40 letters",
}


def test_what_a_form_would_refuse_goes_nowhere_in_its_words(scanned, read):
    path = Row.objects.get(file_name="beta-2b-Q4_0.gguf").path
    for text, words in REFUSED.items():
        batch = read(text.replace("PATH", f'"{path}"'))
        (lost,) = found(batch, Status.LOST)
        assert words in lost[1], text
        assert len(items_of_batch(batch)) == 1


def test_an_editor_takes_over_only_what_editors_may(scanned, host, read, take, make_user):
    editor = Actor(user=make_user("editor"), name="editor")
    beta = Row.objects.get(file_name="beta-2b-Q4_0.gguf")
    batch = read(
        "settings: {modelsRoot: /other, threads: 3, serverExe: /opt/x, groups: [{name: g}], app: {watchModels: false},"
        " oomGuardGraceSec: 9}\n",
        f'overrides: [{{match: "{beta.path}", ctx: 1024, customArgs: --verbose}}]\n',
        by=editor,
    )
    take(batch, by=editor)
    assert Override.objects.get(match=beta.path).fields == {"ctx": 1024}
    assert {row.section: row.values for row in HostSetting.objects.all()} == {"advanced": {"threads": 3}}
    assert not Backend.objects.exists()
    assert not Root.objects.filter(path="/other").exists()


def test_backends_keep_their_ids_and_take_no_star_away(scanned, host, read, take):
    Backend.objects.create(host=host, slug="mine", kind="llama", path="/opt/mine", starred=True)
    vulkan = "{id: vk, kind: llama, path: /opt/vk, name: Vulkan, variant: vulkan, default: true}"
    take(read(f"settings: {{backends: [{vulkan}, {{id: sd, kind: sd, path: /opt/sd, default: true}}]}}\n"))
    kept = {row.slug: (row.path, row.name, row.variant, row.starred) for row in Backend.objects.all()}
    assert kept == {
        "mine": ("/opt/mine", "", "", True),
        "vk": ("/opt/vk", "Vulkan", "vulkan", False),
        "sd": ("/opt/sd", "", "", True),
    }


def test_rules_come_in_the_order_of_the_file_and_go_again(scanned, host, read, take, actor, do):  # noqa: F811
    first = "{match: '*b*', ctx: 1024, variants: [{name: a, temp: 0}]}"
    text = f"overrides: [{first}, {{match: '*a*', quant: Q8_0, skip: true}}]\n"
    batch = take(read(text))
    assert list(Override.objects.order_by("position").values_list("match", "quant")) == [("*b*", ""), ("*a*", "Q8_0")]
    assert Variant.objects.get().fields == {"temp": 0.0}
    assert found(read(text), Status.NEW) == []
    do(undo_import, batch=batch, actor=actor)
    assert not Override.objects.exists()


def test_nothing_is_undone_after_somebody_changed_it(scanned, host, read, take, actor, do):  # noqa: F811
    beta = Row.objects.get(file_name="beta-2b-Q4_0.gguf")
    batch = take(read(sidecar=f'overrides: [{{match: "{beta.path}", ctx: 1024}}]\ndefaultVariants: [{{name: game}}]\n'))
    version = Override.objects.get(match=beta.path).version
    do(save_override, row=beta, values={"ctx": 2048}, version=version, actor=actor)
    with pytest.raises(Refused, match="Changed since"):
        do(undo_import, batch=batch, actor=actor)
    assert HostSetting.objects.get(section="variants").values == {"defaultVariants": [{"name": "game"}]}


@pytest.fixture
def own_data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("QM_DATA_DIR", str(tmp_path / "data"))


SECRET, OTHER = "qm-0123456789abcdef", "client-key-of-old"
KEYS = f"settings: {{apiKeys: [{{name: all, key: {SECRET}}}, {{name: one, key: {OTHER}, models: [beta-2b-q4_0]}}]}}\n"


def test_keys_come_sealed_and_go_again(own_data_folder, scanned, host, read, take, actor, do):  # noqa: F811
    batch = read(KEYS)
    assert SECRET not in str(batch.report)
    take(batch)
    kept = {key.name: (key.everything, key.ids) for key in ApiKey.objects.filter(is_service=False)}
    assert kept == {"all": (True, []), "one": (False, ["beta-2b-q4_0"])}
    assert SECRET not in str(ImportBatch.objects.get().report)
    assert found(read(KEYS), Status.NEW) == []
    with_secrets, masked = (export_texts(get_host("local"), with_secrets=asked) for asked in (True, False))
    assert SECRET in with_secrets[SIDECAR]
    assert SECRET in with_secrets["config.yaml"]
    assert SECRET not in "".join(masked.values())
    assert found(read(sidecar=with_secrets[SIDECAR]), Status.NEW) == []
    assert len(found(read(sidecar=masked[SIDECAR]), Status.LOST)) == 2
    do(undo_import, batch=batch, actor=actor)
    assert not ApiKey.objects.filter(is_service=False).exists()


def test_a_name_that_another_key_has_is_told(own_data_folder, scanned, host, read, take, actor):
    take(read(KEYS))
    ((_, note),) = found(read("settings: {apiKeys: [{name: ALL, key: another-secret}]}\n"), Status.LOST)
    assert "Another key of this host has this name" in note


def test_an_exported_archive_is_both_files(settled, actor, do):  # noqa: F811
    data = export_archive(settled, with_secrets=True)
    batch = do(start_import, host=settled, name="all.zip", data=data, source=SETTINGS, actor=actor)
    batch.refresh_from_db()
    assert {item.status for item in items_of_batch(batch)} == {Status.SAME}


def packed(*entries, method=zipfile.ZIP_DEFLATED):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, data in entries:
            archive.writestr(name, data)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (packed(("other.yaml", "a: 1")), "neither"),
        (packed((f"a/{GENERATE}", "{}"), (f"b/{GENERATE}", "{}")), "twice"),
        (packed((GENERATE, b"#" * (17 << 20))), "unpacks to more"),
        (packed((GENERATE, b"\xff")), "not UTF-8"),
        (packed((GENERATE, "{}"))[:40], "cannot be read"),
        (packed(*((f"{n}", "") for n in range(10_001)), method=zipfile.ZIP_STORED), "at most 10,000"),
    ],
    ids=["neither", "twice", "bomb", "binary", "cut", "many"],
)
def test_hostile_archives_are_refused(data, problem, host, actor):
    with pytest.raises(Refused, match=problem):
        start_import(host=host, name="all.zip", data=data, source=SETTINGS, actor=actor)


def test_more_than_anybody_looks_at_is_refused(host, read, monkeypatch):
    monkeypatch.setattr(import_settings, "MOST_ITEMS", 2)
    batch = read("settings: {threads: 1, visionCtx: 1, kvQuant: q8_0}\n")
    assert (batch.state, batch.problem) == (
        "failed",
        "The files say 3 things; at most 2 are looked at in one import.",
    )


def test_a_file_that_is_no_map_says_where(host, read):
    batch = read("settings: [\n")
    assert (batch.state, batch.problem[:7]) == ("failed", "line 2:")
