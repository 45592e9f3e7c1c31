"""Checks against llama.cpp: what the host is asked, what is stored, and what plans make of it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from gpus_app.models import Backend, Device, HostSetting
from gpus_app.selectors import get_host
from gpus_app.services import request_plan
from models_app.check_settings import check_settings_of
from models_app.models import CheckProgram, Override, Root, Row, Verification
from models_app.selectors import get_row
from models_app.selectors.checks import plan_checks
from models_app.services import preview_plan, start_scan
from models_app.services.checks import look_for_programs, save_check_settings, start_check
from quartermaster_site.access.audit import Actor
from quartermaster_site.errors import EditConflict, NotAllowed, Refused
from quartermaster_site.jobs.models import Job
from quartermaster_site.jobs.services import retry_job
from quartermaster_site.jobs.sweeping import sweep
from tests.fit_params import CASES
from tests.llama_stand_in import BUILD, llama_folder
from tests.seer import seer
from tests.zoo import zoo

GIB, MIB = 1 << 30, 1 << 20
CASE = CASES[0]
"""One device: qwen3-8b with everything pinned."""


@pytest.fixture
def server(tmp_path):
    return llama_folder(tmp_path / "llama", CASE.recorded)


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("measured")
    zoo.write_model(CASE.model, str(folder))
    return folder


@pytest.fixture
def row(host, server, models, django_capture_on_commit_callbacks):
    """The model of the recorded answer on a host with one card, everything pinned as it was recorded."""
    Device.objects.create(host=host, index=0, name="A", vendor="nvidia", total_bytes=24 * GIB, free_bytes=23 * GIB)
    HostSetting.objects.create(host=host, section="memory", values={"targetVramGB": 22.0, "maxRamGB": 48.0}, version=1)
    Backend.objects.create(host=host, slug="llama", kind="llama", path=str(server), starred=True)
    Root.objects.create(host=host, path=str(models))
    with django_capture_on_commit_callbacks(execute=True):
        start_scan(host=host, actor=Actor())
    found = Row.objects.get()
    Override.objects.create(host=host, match=found.path, fields={"customArgs": CASE.text}, version=1)
    return get_row(found.pk, seer())


@pytest.fixture
def operator(make_user):
    user = make_user("operator")
    return Actor(user=user, name=user.username)


@pytest.fixture
def check(row, operator, django_capture_on_commit_callbacks):
    """Run a check to its end; returns its job."""

    def run(**arguments):
        with django_capture_on_commit_callbacks(execute=True):
            started = start_check(row=get_row(row.pk, seer()), actor=operator, **arguments)
        return Job.objects.get(pk=started.job.pk)

    return run


def _plan(row):
    fresh = get_row(row.pk, seer())
    return preview_plan(row=fresh).base


def _excess(server, megabytes):
    """Have llama.cpp hold more on its device than it does."""
    first, *rest = CASE.recorded.splitlines()
    *words, compute = first.split()
    line = " ".join([*words, str(int(compute) + megabytes)])
    (server.parent / "answer").write_text("\n".join([line, *rest]) + "\n", encoding="utf-8")


def test_the_figures_of_both_sides_are_stored(check, row, server, operator):
    job = check()
    assert job.state == "succeeded", job.error
    seen = Verification.objects.get()
    plan = _plan(row)
    assert (seen.build, seen.profile_id, seen.checked_by) == (BUILD, plan.profile_id, operator.user)
    assert seen.agreement_percent <= 0.2
    device, host = seen.figures
    assert device[1][:2] == device[2][:2]
    assert host[0] == "host"
    assert all(size % MIB == 0 for _, measured, ours in seen.figures for size in (*measured, *ours))
    assert plan_checks(get_row(row.pk, seer()), plan).current == seen
    asked = (server.parent / "asked").read_text().split("\n")
    assert asked[asked.index("-c") + 1] == "32768"
    assert "--port" not in asked
    assert asked[-4:-1] == ["--no-repack", "--fit-print", "on"]


def test_the_program_learns_nothing_of_ours(check, server, monkeypatch):
    monkeypatch.setenv("QM_SECRET_KEY", "kept-to-ourselves-kept-to-ourselves-kept")
    monkeypatch.setenv("LLAMA_ARG_CTX_SIZE", "512")
    check()
    environment = (server.parent / "environment").read_text()
    assert "kept-to-ourselves" not in environment
    assert "LLAMA_ARG_CTX_SIZE" not in environment
    assert "CUDA_DEVICE_ORDER=PCI_BUS_ID" in environment


def test_another_launch_makes_it_stale_and_the_same_launch_is_replaced(check, row):
    check()
    check()
    assert Verification.objects.count() == 1
    override = Override.objects.get()
    override.fields = {"customArgs": CASE.text.replace("32768", "16384")}
    override.save()
    checks = plan_checks(get_row(row.pk, seer()), _plan(row))
    assert checks.current is None
    assert checks.shown == Verification.objects.get()
    override.fields = {"customArgs": CASE.text + " --temp 0.2"}
    override.save()
    assert plan_checks(get_row(row.pk, seer()), _plan(row)).current is not None


class TestExcess:
    def test_a_positive_one_is_kept_free_by_later_plans(self, check, row, server):
        before = _plan(row)
        _excess(server, 214)
        jobs = Job.objects.filter(kind="plan_host").count()
        assert check().state == "succeeded"
        seen = Verification.objects.get()
        plan = _plan(row)
        term = next(term for term in plan.terms if term.key == "measured")
        assert term.device_bytes == (seen.device_excess_bytes,)
        assert 210 * MIB <= seen.device_excess_bytes <= 230 * MIB
        assert f"MiB (on a device) more than projected on build {BUILD}" in term.how
        assert plan.est_vram_bytes == before.est_vram_bytes + seen.device_excess_bytes + sum(term.device_bytes[1:])
        assert _plan(row) == plan
        assert Job.objects.filter(kind="plan_host").count() == jobs + 1
        assert row.plans.get(profile="base").est_vram_bytes == plan.est_vram_bytes

    def test_the_worst_of_all_launches_counts(self, check, row, server):
        _excess(server, 214)
        check()
        worst = Verification.objects.get().device_excess_bytes
        Verification.objects.update(launch="another launch")
        (server.parent / "answer").write_text(CASE.recorded, encoding="utf-8")
        check()
        assert Verification.objects.count() == 2
        assert next(term for term in _plan(row).terms if term.key == "measured").device_bytes == (worst,)

    def test_it_is_about_one_build(self, check, row, server, host, operator, django_capture_on_commit_callbacks):
        _excess(server, 214)
        check()
        (server.parent / "build").write_text("9999 (abcdef)", encoding="utf-8")
        with django_capture_on_commit_callbacks(execute=True):
            look_for_programs(host=get_host(host.slug), actor=operator)
        assert CheckProgram.objects.get(server=str(server)).build == "9999 (abcdef)"
        assert "measured" not in {term.key for term in _plan(row).terms}
        assert plan_checks(get_row(row.pk, seer()), _plan(row)).current is None

    def test_it_can_be_switched_off(self, check, row, server, host, make_user):
        _excess(server, 214)
        check()
        editor = make_user("editor")
        values = {"fitParams": "", "measuredExtra": False}
        save_check_settings(host=host, values=values, version=0, actor=Actor(user=editor, name="editor"))
        assert "measured" not in {term.key for term in _plan(row).terms}
        assert not plan_checks(get_row(row.pk, seer()), _plan(row)).keeps_extra_free

    def test_figures_of_an_older_product_do_not_count(self, check, row, server, monkeypatch):
        _excess(server, 214)
        check()
        assert "measured" in {term.key for term in _plan(row).terms}
        monkeypatch.setattr("models_app.services.check_facts.product_version", lambda: "99")
        assert "measured" not in {term.key for term in _plan(row).terms}


class TestFailures:
    def test_no_program(self, check, server):
        (server.parent / "llama-fit-params").unlink()
        job = check()
        assert (job.state, job.error_kind) == ("failed", "VerifyError")
        assert "there is no llama-fit-params beside" in job.error
        assert not Verification.objects.exists()

    def test_a_refusal_is_told_in_its_words(self, check, server):
        (server.parent / "error").write_text("0.00 E load_backend: x\nerror: invalid argument: -fa\n")
        assert check().error == "llama-fit-params refused the command: invalid argument: -fa"

    def test_other_devices(self, check, server):
        (server.parent / "answer").write_text("CUDA0 1 2 3\nCUDA1 1 2 3\nHost 1 2 3\n")
        assert check().error == "the plan is for 1 GPU(s), but llama.cpp sees 2 (CUDA0, CUDA1)"

    def test_an_answer_without_figures(self, check, server):
        (server.parent / "answer").write_text("hello\n")
        assert "holds no memory figures" in check().error

    def test_a_plan_of_another_engine_is_refused(self, row, operator):
        Row.objects.update(model_class="embedding")
        Row.objects.filter(pk=row.pk).update(found={**row.found, "model_class": "embedding"})
        with pytest.raises(Refused):
            start_check(row=get_row(row.pk, seer()), actor=operator)

    def test_viewers_may_not(self, row, make_user):
        with pytest.raises(NotAllowed):
            start_check(row=row, actor=Actor(user=make_user("viewer"), name="viewer"))


@pytest.fixture
def forged(row, operator, monkeypatch, django_capture_on_commit_callbacks):
    """A check whose host answers with this."""

    def run(**changes):
        use = {"name": "CUDA0", "model_bytes": MIB, "context_bytes": MIB, "compute_bytes": MIB}
        answer = {"path": "/opt/llama-fit-params", "build": "1", "devices": [use], "host": use, **changes}
        monkeypatch.setattr("models_app.checking.check", lambda report, inputs: answer)
        with django_capture_on_commit_callbacks(execute=True):
            started = start_check(row=row, actor=operator)
        return Job.objects.get(pk=started.job.pk)

    return run


USE = {"name": "CUDA0", "model_bytes": MIB, "context_bytes": MIB, "compute_bytes": MIB}


@pytest.mark.parametrize(
    "changes",
    [
        {"devices": None},
        {"devices": [{**USE, "model_bytes": -MIB}]},
        {"devices": [{**USE, "model_bytes": True}]},
        {"devices": [{**USE, "model_bytes": 1.5}]},
        {"devices": [{**USE, "model_bytes": MIB + 1}]},
        {"devices": [{**USE, "compute_bytes": 1 << 61}]},
        {"devices": [{**USE, "name": 7}]},
        {"devices": [USE] * 100},
        {"devices": [USE, USE]},
        {"devices": []},
        {"host": "x"},
        {"host": {}},
        {"build": ["1"]},
        {"path": "x" * 2000},
    ],
    ids=lambda changes: "-".join(changes),
)
def test_what_cannot_be_believed_is_not_stored(forged, changes):
    job = forged(**changes)
    assert (job.state, job.error_kind) == ("failed", "ReportRefused")
    assert not Verification.objects.exists()
    assert not CheckProgram.objects.exclude(build=BUILD).exists()


def test_what_can_be_believed_is_stored(forged):
    assert forged().state == "succeeded"
    assert Verification.objects.get().build == "1"


def test_again_asks_about_the_launch_of_now(check, row, server, operator, django_capture_on_commit_callbacks):
    (server.parent / "error").write_text("error: no\n")
    job = check()
    (server.parent / "error").unlink()
    Override.objects.update(fields={"customArgs": CASE.text.replace("-ub 512", "-ub 256")})
    with django_capture_on_commit_callbacks(execute=True):
        retry_job(job=job, actor=operator)
    assert plan_checks(get_row(row.pk, seer()), _plan(row)).current is not None
    assert "256" in (server.parent / "asked").read_text().split("\n")


def test_a_lost_check_of_a_model_that_cannot_be_checked_any_more(row, operator):
    job = start_check(row=row, actor=operator).job
    Row.objects.update(model_class="embedding", found={**row.found, "model_class": "embedding"})
    Job.objects.update(state="running", heartbeat_at=timezone.now() - timedelta(hours=1))
    sweep()
    job.refresh_from_db()
    assert job.state == "lost"
    assert job.retries.get().inputs == job.inputs


class TestPrograms:
    @pytest.fixture
    def planned(self, host, django_capture_on_commit_callbacks):
        def run():
            with django_capture_on_commit_callbacks(execute=True):
                request_plan(host=host, actor=Actor())
            return list(Job.objects.filter(kind="find_checker"))

        return run

    def test_planning_has_them_looked_for_once_a_day(self, row, server, planned):
        assert len(planned()) == 1
        program = CheckProgram.objects.get()
        assert (program.server, program.build, program.problem) == (str(server), BUILD, "")
        assert program.path == str(server.parent / "llama-fit-params")
        assert len(planned()) == 1
        CheckProgram.objects.update(asked_at=timezone.now() - timedelta(days=2))
        assert len(planned()) == 2

    def test_one_that_no_plan_names_any_more_is_forgotten(self, row, check, tmp_path, planned):
        check()
        for name in ("a", "b"):
            Backend.objects.update(path=str(llama_folder(tmp_path / name, CASE.recorded)))
            planned()
        servers = [program.server.split("/")[-2] for program in CheckProgram.objects.all()]
        assert servers == ["b", "llama"]

    def test_a_missing_one_says_so(self, row, server, planned):
        (server.parent / "llama-fit-params").unlink()
        CheckProgram.objects.all().delete()
        planned()
        assert "there is no llama-fit-params beside" in CheckProgram.objects.get().problem

    def test_one_that_is_named_is_taken(self, row, tmp_path, actor, django_capture_on_commit_callbacks):
        other = llama_folder(tmp_path / "other", CASE.recorded, "77").parent / "llama-fit-params"
        with django_capture_on_commit_callbacks(execute=True):
            save_check_settings(host=row.host, values={"fitParams": str(other)}, version=0, actor=actor)
        program = CheckProgram.objects.get()
        assert (program.path, program.build) == (str(other), "77")

    @pytest.mark.parametrize("path", ["llama-fit-params", "/bin/sh", "/opt/\tx/llama-fit-params", "/" + "x" * 1100])
    def test_a_name_that_cannot_be_used(self, host, actor, path):
        with pytest.raises(Refused) as refused:
            save_check_settings(host=host, values={"fitParams": path}, version=0, actor=actor)
        assert "fitParams" in refused.value.fields

    def test_naming_takes_an_administrator(self, host, make_user):
        editor = Actor(user=make_user("editor"), name="editor")
        with pytest.raises(NotAllowed):
            save_check_settings(host=host, values={"fitParams": "/opt/llama-fit-params"}, version=0, actor=editor)
        assert not check_settings_of(get_host(host.slug)).program

    def test_the_second_of_two_is_asked(self, host, actor):
        save_check_settings(host=host, values={"measuredExtra": False}, version=0, actor=actor)
        with pytest.raises(EditConflict):
            save_check_settings(host=host, values={"fitParams": "/opt/llama-fit-params"}, version=0, actor=actor)
