"""Every address of the product: its method, the least role, and the object that policies are asked about.

A reviewer reads it line by line; `test_url_table.py` walks it for every role, whole and as a fragment, with the object
visible, hidden, granted and limited by policies, and fails where an address has no line.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.speech_files import wav

VIEWER, OPERATOR, EDITOR, ADMIN = ROLES = ("viewer", "operator", "editor", "admin")
NOTHING, HOST, MODEL = "nothing", "host", "model"
"""NOTHING: the role decides alone; what the page lists is filtered (test_policy_models.py, test_policy_config.py)."""


class Again(io.BytesIO):
    """A file that can be uploaded again and again."""

    def __init__(self, name: str, data: bytes) -> None:
        super().__init__(data)
        self.name = name

    def read(self, size: int | None = -1) -> bytes:
        return self.getvalue()


WAV = Again("new.wav", wav())
CONFIG = Again("config.yaml", b"models: {}")


@dataclass(frozen=True)
class Line:
    method: str
    path: str
    role: str
    """The least that may."""
    about: str
    data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_api(self) -> bool:
        return self.path.startswith("/api/")

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


def GET(path: str, role: str, about: str, data: Mapping[str, Any] | None = None) -> Line:  # noqa: N802 - as HTTP has it
    return Line("GET", path, role, about, data or {})


def POST(path: str, role: str, about: str, data: Mapping[str, Any] | None = None) -> Line:  # noqa: N802 - as HTTP has it
    return Line("POST", path, role, about, data or {})


TABLE: list[Line] = [
    GET("/", VIEWER, NOTHING),
    GET("/models/", VIEWER, NOTHING),
    GET("/models/{model}/", VIEWER, MODEL),
    GET("/models/{model}/row/", VIEWER, MODEL),
    GET("/models/{model}/edit/", VIEWER, MODEL),
    GET("/models/{model}/launch/", VIEWER, MODEL),
    GET("/models/{model}/variants/", VIEWER, MODEL),
    GET("/models/{model}/variants/{variant}/", VIEWER, MODEL),
    GET("/models/{model}/history/", VIEWER, MODEL),
    GET("/models/{model}/files/", VIEWER, MODEL),
    GET("/models/{model}/test/", VIEWER, MODEL),
    GET("/models/{model}/compare/", VIEWER, MODEL),
    GET("/models/{model}/check/", VIEWER, MODEL),
    GET("/models/{model}/forget/", EDITOR, MODEL),
    GET("/models/bulk/", EDITOR, NOTHING),
    GET("/models/{model}/reset/", EDITOR, MODEL),
    GET("/models/{model}/variants/{variant}/delete/", EDITOR, MODEL),
    POST("/models/{model}/preview/", VIEWER, MODEL),
    POST("/models/{model}/edit/", EDITOR, MODEL, {"version": "1", "threads": "3"}),
    POST("/models/{model}/edit/preview/", VIEWER, MODEL),
    POST("/models/bulk/", EDITOR, NOTHING, {"rows": "0:0", "key-1": "threads", "value-1": "3", "intent": "apply"}),
    POST("/models/{model}/reset/", EDITOR, MODEL, {"version": "1"}),
    POST("/models/{model}/adopt/", EDITOR, MODEL, {"version": "1", "ub": "1024"}),
    POST("/models/{model}/launch/", ADMIN, MODEL, {"version": "1", "customArgs": "-t 3", "apply": "1"}),
    POST("/models/{model}/launch/preview/", VIEWER, MODEL),
    POST("/models/{model}/variants/", EDITOR, MODEL, {"name": "new"}),
    POST("/models/{model}/variants/{variant}/", EDITOR, MODEL, {"version": "1", "threads": "3"}),
    POST("/models/{model}/variants/{variant}/preview/", VIEWER, MODEL),
    POST("/models/{model}/variants/{variant}/rename/", EDITOR, MODEL, {"name": "new"}),
    POST("/models/{model}/variants/{variant}/delete/", EDITOR, MODEL, {"version": "1"}),
    POST("/models/{model}/history/{change}/restore/", EDITOR, MODEL, {"version": "1"}),
    POST("/models/{model}/files/read/", OPERATOR, MODEL),
    POST("/models/{model}/test/", OPERATOR, MODEL),
    POST("/models/{model}/check/", OPERATOR, MODEL),
    POST("/models/{model}/check/look/", OPERATOR, MODEL),
    POST("/models/{model}/forget/", EDITOR, MODEL),
    GET("/fleet-variants/local/", VIEWER, HOST),
    GET("/fleet-variants/local/all/", VIEWER, HOST),
    GET("/fleet-variants/local/all/delete/", EDITOR, HOST),
    POST("/fleet-variants/local/", EDITOR, HOST, {"name": "new"}),
    POST("/fleet-variants/local/all/", EDITOR, HOST, {"version": "1", "threads": "3"}),
    POST("/fleet-variants/local/all/delete/", EDITOR, HOST, {"version": "1"}),
    GET("/about/", VIEWER, NOTHING),
    GET("/about/docs/users/", VIEWER, NOTHING),
    GET("/components/", VIEWER, NOTHING),
    POST("/components/{component}/pin/", EDITOR, HOST, {"version": "0"}),
    GET("/issues/", VIEWER, NOTHING),
    GET("/issues/export/", VIEWER, NOTHING),
    POST("/issues/{finding}/acknowledge/", OPERATOR, MODEL),
    GET("/hosts/", VIEWER, NOTHING),
    GET("/hosts/local/", VIEWER, HOST),
    GET("/hosts/local/rules/", VIEWER, HOST),
    GET("/hosts/local/rules/{rule}/", VIEWER, HOST),
    GET("/hosts/local/history/", VIEWER, HOST),
    GET("/hosts/local/fits/", VIEWER, HOST),
    GET("/hosts/local/live/", VIEWER, HOST),
    GET("/machines/add/", ADMIN, NOTHING),
    POST("/machines/add/", ADMIN, NOTHING, {"name": "Second box", "slug": "second"}),
    GET("/hosts/local/machine/", VIEWER, HOST),
    GET("/hosts/local/strip/", VIEWER, HOST),
    GET("/hosts/local/machine/code/", ADMIN, HOST),
    POST("/hosts/local/machine/code/", ADMIN, HOST),
    GET("/hosts/local/machine/name/", ADMIN, HOST),
    POST("/hosts/local/machine/name/", ADMIN, HOST, {"name": "The big one"}),
    POST("/hosts/local/machine/pause/", ADMIN, HOST, {"paused": "1"}),
    GET("/hosts/local/machine/remove/", ADMIN, HOST),
    POST("/hosts/local/machine/remove/", ADMIN, HOST, {"slug": "local"}),
    GET("/hosts/local/card/", VIEWER, HOST),
    GET("/hosts/local/settings/memory/", VIEWER, HOST),
    GET("/hosts/local/settings/gpu/", VIEWER, HOST),
    GET("/hosts/local/settings/checks/", VIEWER, HOST),
    GET("/hosts/local/settings/kv/", VIEWER, HOST),
    GET("/hosts/local/settings/sampling/", VIEWER, HOST),
    GET("/hosts/local/settings/advanced/", VIEWER, HOST),
    GET("/hosts/local/settings/guards/", VIEWER, HOST),
    GET("/hosts/local/settings/groups/", VIEWER, HOST),
    GET("/hosts/local/folders/", VIEWER, HOST),
    GET("/hosts/local/backends/", VIEWER, HOST),
    GET("/hosts/local/by-hand/", VIEWER, HOST),
    GET("/hosts/local/folders/browse/?for=folder&back=/hosts/", ADMIN, HOST),
    GET("/hosts/local/rules/{rule}/delete/", EDITOR, HOST),
    GET("/hosts/local/folders/{root}/remove/", ADMIN, HOST),
    GET("/hosts/local/backends/{backend}/", ADMIN, HOST),
    GET("/hosts/local/backends/{backend}/remove/", ADMIN, HOST),
    GET("/hosts/local/by-hand/enhancer/", EDITOR, HOST),
    GET("/hosts/local/by-hand/enhancer/remove/?of=pe", EDITOR, HOST),
    POST("/hosts/local/rules/", EDITOR, HOST, {"match": "*new*"}),
    POST("/hosts/local/rules/{rule}/", EDITOR, HOST, {"version": "1", "match": "*model-3*", "threads": "3"}),
    POST("/hosts/local/rules/{rule}/move/", EDITOR, HOST, {"beside": "700001"}),
    POST("/hosts/local/rules/{rule}/delete/", EDITOR, HOST, {"version": "1"}),
    POST("/hosts/local/history/{shared}/restore/", EDITOR, HOST, {"version": "1"}),
    POST("/hosts/local/scan/", OPERATOR, HOST),
    POST("/hosts/local/probe/", OPERATOR, HOST),
    POST("/hosts/local/plan/", OPERATOR, HOST),
    POST("/hosts/local/settings/memory/", EDITOR, HOST, {"version": "0", "ttlSec": "60"}),
    POST("/hosts/local/settings/gpu/", EDITOR, HOST, {"version": "0", "minGpuVramGB": "1"}),
    POST("/hosts/local/settings/checks/", EDITOR, HOST, {"version": "0"}),
    POST("/hosts/local/settings/kv/", EDITOR, HOST, {"version": "0", "kvQuant": "q8_0"}),
    POST("/hosts/local/settings/sampling/", EDITOR, HOST, {"version": "0", "dryDefault": "on"}),
    POST("/hosts/local/settings/advanced/", EDITOR, HOST, {"version": "0", "threads": "3"}),
    POST("/hosts/local/settings/groups/", ADMIN, HOST, {"version": "0", "name-1": "small", "match-1": "*4b*"}),
    POST("/hosts/local/settings/guards/", ADMIN, HOST, {"version": "0", "oomGuardGraceSec": "60"}),
    POST("/hosts/local/folders/add/", ADMIN, HOST, {"path": "/more"}),
    POST(
        "/hosts/local/folders/browse/?for=folder&back=/hosts/",
        ADMIN,
        HOST,
        {"for": "folder", "back": "/hosts/", "path": "/"},
    ),
    POST("/hosts/local/folders/watching/", ADMIN, HOST, {"version": "0", "pollSec": "60"}),
    POST("/hosts/local/folders/{root}/remove/", ADMIN, HOST, {"confirm": "1"}),
    POST("/hosts/local/backends/", ADMIN, HOST, {"kind": "llama", "path": "/opt/more/llama-server"}),
    POST("/hosts/local/backends/probe/", ADMIN, HOST),
    POST("/hosts/local/backends/search/", ADMIN, HOST),
    POST(
        "/hosts/local/backends/{backend}/",
        ADMIN,
        HOST,
        {"kind": "llama", "path": "/opt/b/llama-server", "edition": "1"},
    ),
    POST("/hosts/local/backends/{backend}/star/", ADMIN, HOST),
    POST("/hosts/local/backends/{backend}/remove/", ADMIN, HOST),
    POST("/hosts/local/by-hand/", EDITOR, HOST, {"version": "0", "loraDir": "/models/loras"}),
    POST("/hosts/local/by-hand/enhancer/", EDITOR, HOST, {"version": "1", "model": "new"}),
    POST("/hosts/local/by-hand/enhancer/remove/?of=pe", EDITOR, HOST, {"version": "1"}),
    GET("/config/", VIEWER, NOTHING),
    GET("/config/local/", VIEWER, HOST),
    GET("/config/local/review/", VIEWER, HOST),
    GET("/config/local/revisions/", VIEWER, HOST),
    GET("/config/local/drift/", VIEWER, HOST),
    GET("/config/local/drift/{found}/", VIEWER, HOST),
    GET("/config/local/{revision}/diff/{revision}/", VIEWER, HOST),
    GET("/config/local/{revision}/download/", VIEWER, HOST),
    GET("/config/local/{revision}/write/", OPERATOR, HOST),
    GET("/config/local/{revision}/rollback/", OPERATOR, HOST),
    POST("/config/local/render/", OPERATOR, HOST),
    POST("/config/local/target/", ADMIN, HOST, {"path": "/srv/other.yaml", "dialect": "llama-swap"}),
    POST("/config/local/{revision}/write/", OPERATOR, HOST),
    POST("/config/local/{revision}/submit/", OPERATOR, HOST),
    POST("/config/local/{revision}/refuse/", OPERATOR, HOST),
    POST("/config/local/{revision}/rollback/", OPERATOR, HOST),
    POST("/config/local/{revision}/settings/", EDITOR, HOST),
    POST("/config/local/unpin/", OPERATOR, HOST),
    POST("/config/local/look/", OPERATOR, HOST),
    POST(
        "/config/local/adopt/",
        OPERATOR,
        HOST,
        {"sha256": "0000000000000000000000000000000000000000000000000000000000000000"},
    ),
    POST("/config/local/drift/choose/", OPERATOR, HOST, {"choice": "hand"}),
    POST("/config/local/keeping/", ADMIN, HOST, {"revisions": "50", "backups": "3"}),
    POST("/config/local/policy/", ADMIN, HOST, {"policy": "auto"}),
    GET("/router/", VIEWER, NOTHING),
    GET("/router/local/", VIEWER, HOST),
    POST("/router/local/", ADMIN, HOST, {"version": "0", "url": "http://127.0.0.1:8080"}),
    POST("/router/local/action/", OPERATOR, HOST, {"action": "unload", "model": "*"}),
    GET("/voices/", VIEWER, NOTHING),
    GET("/voices/local/", VIEWER, HOST),
    GET("/voices/local/servers/{talker}/audition/", VIEWER, HOST),
    GET("/voices/local/auditions/{audition}/audio/", VIEWER, HOST),
    GET("/voices/local/new/", EDITOR, HOST),
    GET("/voices/local/{voice}/delete/", EDITOR, HOST),
    GET("/voices/local/servers/{talker}/address/", ADMIN, HOST),
    POST("/voices/local/new/", EDITOR, HOST, {"name": "new", "wav": WAV}),
    POST("/voices/local/{voice}/delete/", EDITOR, HOST),
    POST("/voices/local/{voice}/send/", OPERATOR, HOST, {"model": "{talker}"}),
    POST("/voices/local/servers/{talker}/ask/", OPERATOR, HOST),
    POST("/voices/local/servers/{talker}/drop/", EDITOR, HOST, {"name": "guest"}),
    POST("/voices/local/servers/{talker}/audition/", OPERATOR, HOST, {"input": "Hello."}),
    POST("/voices/local/servers/{talker}/address/", ADMIN, HOST, {"url": "http://127.0.0.1:8081"}),
    GET("/export/local/", VIEWER, HOST),
    GET("/export/local/overrides.csv", VIEWER, HOST),
    GET("/jobs/", VIEWER, NOTHING),
    GET("/jobs/{job}/", VIEWER, HOST),
    GET("/jobs/{job}/panel/", VIEWER, HOST),
    POST("/jobs/{job}/retry/", OPERATOR, HOST),
    POST("/jobs/{job}/cancel/", OPERATOR, HOST),
    GET("/account/", VIEWER, NOTHING),
    POST("/account/", VIEWER, NOTHING, {"theme": "dark", "density": "compact"}),
    POST("/account/sessions/end/", VIEWER, NOTHING, {"session": "others"}),
    POST("/account/tokens/", VIEWER, NOTHING, {"name": "backup", "days": "30"}),
    GET("/import/", EDITOR, NOTHING),
    GET("/import/on/local/", EDITOR, HOST),
    GET("/import/{batch}/", EDITOR, HOST),
    GET("/import/{applied}/undo/", EDITOR, HOST),
    POST("/import/on/local/", EDITOR, HOST, {"kind": "auto", "file": CONFIG}),
    POST("/import/{batch}/apply/", EDITOR, HOST, {"section": "top", "item": "0"}),
    POST("/import/{applied}/undo/", EDITOR, HOST),
    GET("/keys/", ADMIN, NOTHING),
    GET("/keys/new/", ADMIN, NOTHING),
    GET("/keys/{key}/", ADMIN, NOTHING),
    GET("/keys/{key}/revoke/", ADMIN, NOTHING),
    POST("/keys/new/", ADMIN, NOTHING, {"name": "new", "hosts": "local", "scope": "all", "expires": "never"}),
    POST(
        "/keys/{key}/",
        ADMIN,
        NOTHING,
        {"name": "new", "hosts": "local", "scope": "all", "expires": "never", "version": "1"},
    ),
    POST("/keys/{key}/rotate/", ADMIN, NOTHING, {"days": "0"}),
    POST("/keys/{key}/revoke/", ADMIN, NOTHING),
    POST("/keys/hosts/local/", ADMIN, HOST, {"required": "1"}),
    POST("/keys/hosts/local/own/", ADMIN, HOST, {"allowed": "0"}),
    GET("/account/keys/", OPERATOR, NOTHING),
    GET("/account/keys/new/", OPERATOR, NOTHING),
    POST("/account/keys/new/", OPERATOR, NOTHING, {"name": "new", "scope": "only", "expires": "30"}),
    GET("/keys/hosts/local/environment/", ADMIN, HOST),
    POST("/keys/hosts/local/environment/", ADMIN, HOST, {"intent": "inline"}),
    POST("/keys/hosts/local/environment/file/", ADMIN, HOST),
    GET("/access/users/", ADMIN, NOTHING),
    GET("/access/groups/", ADMIN, NOTHING),
    GET("/access/groups/{group}/", ADMIN, NOTHING),
    GET("/access/groups/{group}/delete/", ADMIN, NOTHING),
    GET("/access/policies/", ADMIN, NOTHING),
    GET("/access/policies/count/", ADMIN, NOTHING),
    GET("/access/policies/{policy}/", ADMIN, NOTHING),
    GET("/access/policies/{policy}/delete/", ADMIN, NOTHING),
    GET("/access/explain/", ADMIN, NOTHING),
    GET("/access/network/", ADMIN, NOTHING),
    POST("/access/network/", ADMIN, NOTHING, {"version": "0", "network-1": "192.0.2.7", "who-1": "everyone"}),
    GET("/access/users/{person}/", ADMIN, NOTHING),
    GET("/access/users/{person}/password/", ADMIN, NOTHING),
    POST("/access/groups/", ADMIN, NOTHING, {"name": "new"}),
    POST("/access/groups/{group}/", ADMIN, NOTHING, {"name": "renamed"}),
    POST("/access/groups/{group}/delete/", ADMIN, NOTHING),
    POST("/access/policies/", ADMIN, NOTHING, {"subject": "everyone", "model": "*new*", "level": "1"}),
    POST(
        "/access/policies/{policy}/",
        ADMIN,
        NOTHING,
        {"subject": "everyone", "model": "*new*", "level": "1", "version": "1"},
    ),
    POST("/access/policies/{policy}/delete/", ADMIN, NOTHING, {"version": "1"}),
    POST("/access/users/", ADMIN, NOTHING, {"username": "new", "role": "viewer"}),
    POST("/access/users/{person}/", ADMIN, NOTHING, {"role": "editor", "active": "on"}),
    POST("/access/users/{person}/password/", ADMIN, NOTHING),
    POST("/access/users/{person}/sessions/{session}/end/", ADMIN, NOTHING),
    GET("/audit/", ADMIN, NOTHING),
    GET("/audit/export/", ADMIN, NOTHING),
    GET("/api/v1/openapi.json", VIEWER, NOTHING),
    GET("/api/v1/hosts/", VIEWER, NOTHING),
    GET("/api/v1/hosts/local/", VIEWER, HOST),
    GET("/api/v1/hosts/local/revisions/", VIEWER, HOST),
    GET("/api/v1/hosts/local/revisions/{revision}/", VIEWER, HOST),
    GET("/api/v1/models/", VIEWER, NOTHING),
    GET("/api/v1/models/{model}/", VIEWER, MODEL),
    GET("/api/v1/models/{model}/plans/", VIEWER, MODEL),
    GET("/api/v1/jobs/", VIEWER, NOTHING),
    GET("/api/v1/jobs/{job}/", VIEWER, HOST),
    POST("/api/v1/models/{model}/preview/", VIEWER, MODEL, {"values": {"ub": 256}}),
    POST("/api/v1/hosts/local/scan/", OPERATOR, HOST),
    POST("/api/v1/hosts/local/plan/", OPERATOR, HOST),
    POST("/api/v1/hosts/local/publish/", OPERATOR, HOST, {"revision": 1}),
]

OWN = [
    "/account/tokens/{token}/revoke/",
    "/account/keys/{key}/rotate/",
    "/account/keys/{key}/revoke/",
    "/import/on/local/fetch/{job}/",
]
"""What belongs to one person, whatever their role: tests/access/test_api.py, tests/models/test_policy_own_keys.py; to
one job: tests/views/test_import.py.
"""
BY_CODE = ["/api/v1/agents/enrol/", "/api/v1/agents/check/"]
"""For machines, which have a code or a key of their own: tests/gpus/test_agents.py."""
PREVIEWS = {
    "POST /fleet-variants/local/all/",
    "POST /hosts/local/rules/{rule}/",
}
"""As fragments they only say what would change, to everyone who sees the host."""
HINDERED = {
    "POST /machines/add/",
    "POST /hosts/local/machine/code/",
    "POST /hosts/local/machine/remove/",
    "POST /keys/hosts/local/environment/file/",
    "POST /account/keys/new/",
}
"""Whoever may is told that there is no Redis here, that its own machine stays, that no variable is to be set, that
no host lets people make keys.
"""

HTMX = {"HX-Request": "true", "HX-Current-URL": "http://testserver/models/"}
_PAGES = [line for line in TABLE if not line.is_api]
READ = [line.path for line in _PAGES if line.method == "GET" and line.role == VIEWER]
ASK = {line.path: line.role for line in _PAGES if line.method == "GET" and line.role != VIEWER}
"""Pages that ask before they change something."""
CHANGE = {line.path: (line.role, line.data) for line in _PAGES if line.method == "POST"}
