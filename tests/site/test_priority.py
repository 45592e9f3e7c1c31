"""Workers step back: in their process, and on Linux as a session; never forward."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from quartermaster_site import env

ROOT = Path(__file__).resolve().parent.parent.parent
GROUP = Path("/proc/self/autogroup")
_STEP = """
import os, sys
from quartermaster_site.priority import step_back
step_back(int(sys.argv[1]))
group = open("/proc/self/autogroup").read() if os.path.exists("/proc/self/autogroup") else ""
print(os.getpriority(os.PRIO_PROCESS, 0), group.rpartition(" ")[2].strip())
"""


def after(nice, *, session=True, before=0):
    """(nice of the process, nice of its session) of one that stepped back."""
    done = subprocess.run(
        [sys.executable, "-c", f"import os; os.nice({before})\n{_STEP}", str(nice)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        start_new_session=session,
    )
    return done.stdout.split()


def test_a_worker_steps_back_with_its_session():
    assert after(10)[0] == "10"
    assert after(10)[1:] in (["10"], [])  # a kernel may be without groups


def test_a_session_of_others_stays_as_it_is():
    own = GROUP.read_text().split()[-1:] if GROUP.exists() else []
    assert after(10, session=False) == ["10", *own]


def test_one_that_stands_further_back_stays_there():
    assert after(5, before=12)[0] == "12"


@pytest.mark.parametrize("value", ["-1", "20", "many", "1.5", ""])
def test_a_wrong_number_is_refused(monkeypatch, value):
    monkeypatch.setenv("QM_WORKER_NICE", value)
    if not value:  # unset is the default
        assert env.worker_nice() == 10
        return
    with pytest.raises(env.ConfigurationError, match="QM_WORKER_NICE"):
        env.worker_nice()


@pytest.mark.skipif(os.name != "posix", reason="no nice")
def test_a_worker_asks_when_celery_starts_it(monkeypatch):
    from celery.signals import celeryd_init

    from quartermaster_site import priority

    asked = []
    monkeypatch.setattr(priority, "step_back", asked.append)
    monkeypatch.setenv("QM_WORKER_NICE", "7")
    celeryd_init.send(sender="x", instance=None, conf=None, options={})
    assert asked == [7]
