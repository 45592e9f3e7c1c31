"""Random kills of everything while machines scan and files are written: what must hold at every look, and at the end.

SIGKILL for host workers, whole agents, the control worker, the web server and the broker, whose memory is lost each
time. Looked at every two seconds: each router's file is, to the byte, the text of one of its host's revisions with its
keys, and no job is silent for three minutes. At the end everything works again by itself and nothing has been deleted.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from bench.installation import Installation, Machine, answers, installation, wait_for

MINUTES = 10.0
MACHINES, MODELS = 2, 60
STUCK_SECONDS = 180.0
_PAUSES_SECONDS = (8.0, 20.0)
_LOOK_SECONDS = 2.0
_WORK_SECONDS = 4.0
_QUIET_SECONDS = 420.0
"""A job whose worker died is known to be dead after two minutes; what it had to do is then done again."""
PAGES = ("/", "/models/", "/jobs/", "/issues/", "/config/gpu-00/", "/hosts/gpu-00/")


def run(quick: bool = False, *, minutes: float | None = None, seed: int | None = None) -> list[dict[str, Any]]:
    """Rows for `quartermaster bench`."""
    seconds = 60 * (minutes or (0.5 if quick else MINUTES))
    seed = seed if seed is not None else random.randrange(10_000)
    with installation() as found:
        for number in range(MACHINES):
            found.add_machine(f"gpu-{number:02d}", MODELS)
        chaos = Chaos(found, random.Random(seed))
        chaos.prepare()
        chaos.go_on_for(seconds)
        calm = chaos.come_to_rest()
        chaos.check_end()
    return [
        {"name": f"kills in {seconds / 60:.1f} minutes (seed {seed})", "value": chaos.kills.total(), "unit": ""},
        *({"name": f"of these: {name}", "value": number, "unit": ""} for name, number in sorted(chaos.kills.items())),
        {"name": "scans and writes asked for", "value": chaos.asked.total(), "unit": ""},
        {"name": "refused meanwhile", "value": chaos.refused.total(), "unit": ""},
        *({"name": f"jobs {key}", "value": number, "unit": ""} for key, number in sorted(_jobs().items())),
        {"name": "looks at routers' files", "value": chaos.looks, "unit": ""},
        {"name": "of these wrong", "value": len(chaos.wrong), "unit": "", "limit_value": 0},
        {"name": "longest silence of a job", "value": chaos.silence.longest, "unit": "s", "limit_value": STUCK_SECONDS},
        {"name": "until all was done, after the last kill", "value": calm, "unit": "s"},
        {"name": "files, rows or backups lost", "value": 0, "unit": "", "limit_value": 0},
    ]


class Chaos:
    """One run, and what was seen in it."""

    def __init__(self, found: Installation, chance: random.Random) -> None:
        self.found, self.chance = found, chance
        self.kills: Counter[str] = Counter()
        self.asked: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.looks, self.silence, self._edits = 0, Silence(), 0
        self._texts: dict[str, set[bytes]] = {}
        self._models: dict[Path, bytes] = {}

    def prepare(self) -> None:
        """Everything scanned, planned and written once, with a key in the file."""
        from gpus_app.models import Host
        from models_app.services.api_keys import KeyValues, create_key

        self._models = {path: path.read_bytes() for machine in self.found.machines for path in machine.models.iterdir()}
        wait_for(lambda: all(host.is_reachable for host in self._hosts()), 120, "the agents")
        for machine in self.found.machines:
            self._scan(machine)
        wait_for(lambda: self._unfinished() == 0 and self._has_texts(), 240, "the first scans")
        hosts = list(Host.objects.filter(slug__in=[machine.slug for machine in self.found.machines]))
        create_key(values=KeyValues("bench", hosts, everything=True), actor=self.found.actor)
        wait_for(lambda: self._unfinished() == 0, 60, "the key")
        for machine in self.found.machines:
            self._write(machine)
        wait_for(self._all_written, 60, "the first writes")

    def go_on_for(self, seconds: float) -> None:
        now = time.monotonic()
        end, kill_at, work_at = now + seconds, now + 3, now
        revive: list[tuple[float, Callable[[], object]]] = []
        while (now := time.monotonic()) < end:
            if now >= work_at:
                self._work()
                work_at = now + _WORK_SECONDS
            if now >= kill_at:
                revive.append((now + self.chance.uniform(1, 4), self._kill()))
                kill_at = now + self.chance.uniform(*_PAUSES_SECONDS)
            for due in [item for item in revive if item[0] <= now]:
                due[1]()
                revive.remove(due)
            self.look()
            time.sleep(_LOOK_SECONDS)
        for _, again in revive:
            again()

    def _kill(self) -> Callable[[], object]:
        """End one of them at once; returns what starts it again."""
        machine = self.chance.choice(self.found.machines)
        name = self.chance.choice(["host worker", "host worker", "agent", "control worker", "web", "broker"])
        self.kills[name] += 1
        if name == "broker":
            self.found.broker.stop()
            return self.found.broker.start
        if name in ("control worker", "web"):
            child = self.found.control if name == "control worker" else self.found.web
            child.kill_group()
            return child.restart
        if worker := machine.worker():
            _end(worker)
        if name == "host worker":
            return lambda: None
        machine.agent.kill_group()
        return machine.agent.restart

    def _work(self) -> None:
        """Something that a person might do now; with half of the server away it may be refused."""
        machine = self.chance.choice(self.found.machines)
        name = self.chance.choice(["scan", "edit", "write", "write"])
        self.asked[name] += 1
        with self._refusals(name):
            {"scan": self._scan, "edit": self._edit, "write": self._write}[name](machine)

    @contextmanager
    def _refusals(self, name: str) -> Iterator[None]:
        from redis import RedisError

        from gpus_app.core.errors import QuartermasterError

        try:
            yield
        except (QuartermasterError, RedisError, OSError):
            self.refused[name] += 1

    def _scan(self, machine: Machine) -> None:
        """Of everything, with each header read again."""
        from models_app.services import start_scan

        fresh = [str(path) for path in machine.models.iterdir()]
        start_scan(host=self._host(machine), actor=self.found.actor, fresh=fresh)

    def _edit(self, machine: Machine) -> None:
        """A setting that changes every entry of the file."""
        from gpus_app.models import HostSetting
        from gpus_app.services import request_plan

        self._edits += 1
        changed = {"values": {"ttlSec": 60 + self._edits}, "version": self._edits}
        host = self._host(machine)
        HostSetting.objects.update_or_create(host=host, section="memory", defaults=changed)
        request_plan(host=host, actor=self.found.actor)

    def _write(self, machine: Machine) -> None:
        from models_app.selectors.fleet import latest_candidate
        from models_app.services.writing import start_write

        if newest := latest_candidate(self._host(machine)):
            start_write(revision=newest, actor=self.found.actor)

    def look(self) -> None:
        """At the files of all machines and the jobs."""
        for machine in self.found.machines:
            for path in (machine.target, *machine.target.parent.glob("config.yaml.bak-*")):
                self.looks += 1
                if not self._is_ours(machine, path):
                    self.wrong.append(f"{path} is no text of {machine.slug}")
        self.silence.look()

    def _is_ours(self, machine: Machine, path: Path) -> bool:
        try:
            there = path.read_bytes()
        except FileNotFoundError:  # a backup beyond those that are kept
            return path != machine.target
        if there not in self._texts.get(machine.slug, ()):
            self._texts[machine.slug] = set(_texts_of(machine))
        return there in self._texts[machine.slug]

    def come_to_rest(self) -> float:
        """Seconds until nothing is left to do; then one more scan and write of each."""
        rest = wait_for(self._is_calm, _QUIET_SECONDS, "the end of all jobs", every=_LOOK_SECONDS)
        for act in (self._scan, self._edit, self._write):
            for machine in self.found.machines:
                act(machine)
            wait_for(self._is_calm, 120, "the last scans and writes", every=_LOOK_SECONDS)
        return rest

    def _is_calm(self) -> bool:
        self.look()
        return self._unfinished() == 0 and all(host.is_reachable for host in self._hosts())

    def check_end(self) -> None:
        """Nothing was deleted, everything is as it should be, all pages answer."""
        from models_app.models import Row

        assert not self.wrong, self.wrong[:5]
        assert {path: path.read_bytes() for path in self._models} == self._models, "a model file was changed"
        for machine in self.found.machines:
            rows = Row.objects.filter(host_id=machine.host_id, state=Row.State.PRESENT)
            assert set(rows.values_list("path", flat=True)) == {str(path) for path in machine.models.iterdir()}
            assert len(list(machine.target.parent.glob("config.yaml.bak-*"))) >= 1, "no backup"
        assert self._all_written(), "a machine has another text than the page says"
        assert answers(self.found)
        for page in PAGES:
            assert self.found.get(page)[0] == 200, page

    def _all_written(self) -> bool:
        """Whether each file is the text that the server takes for the live one."""
        from models_app.selectors.comparing import live_revision

        return all(
            (live := live_revision(self._host(machine))) is not None
            and machine.target.exists()
            and machine.target.read_bytes() == _bytes_of(live)
            for machine in self.found.machines
        )

    def _host(self, machine: Machine) -> Any:
        from gpus_app.models import Host

        return Host.objects.get(pk=machine.host_id)

    def _hosts(self) -> list[Any]:
        return [self._host(machine) for machine in self.found.machines]

    def _has_texts(self) -> bool:
        from models_app.selectors.fleet import latest_candidate

        return all(latest_candidate(host) for host in self._hosts())

    @staticmethod
    def _unfinished() -> int:
        from quartermaster_site.jobs.models import UNFINISHED, Job

        return Job.objects.filter(state__in=UNFINISHED).count()


def _end(process: psutil.Process) -> None:
    try:
        process.kill()
    except psutil.NoSuchProcess:
        return


def _texts_of(machine: Machine) -> Iterator[bytes]:
    from models_app.models import Revision

    for revision in Revision.objects.filter(host_id=machine.host_id):
        yield _bytes_of(revision)


def _bytes_of(revision: Any) -> bytes:
    """What its host writes: the text with the secrets of its keys."""
    from models_app.core.export.keys import resolved
    from models_app.services.key_export import secrets_of

    return resolved(revision.text, secrets_of([revision.text])).encode()


class Silence:
    """How long unfinished jobs give no sign of life, by this program's clock: the product may set its times anew."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._seen: dict[int, tuple[object, float]] = {}

    def look(self) -> None:
        """A new state, a beginning or a heartbeat is a sign."""
        from quartermaster_site.jobs.models import UNFINISHED, Job

        now, before, self._seen = time.monotonic(), self._seen, {}
        for pk, *signs in Job.objects.filter(state__in=UNFINISHED).values_list("pk", "state", "heartbeat_at"):
            known, since = before.get(pk, (signs, now))
            self._seen[pk] = (signs, since if known == signs else now)
            self.longest = max(self.longest, now - self._seen[pk][1])


def _jobs() -> dict[str, int]:
    from quartermaster_site.jobs.models import Job

    return dict(Counter(Job.objects.values_list("state", flat=True)))
