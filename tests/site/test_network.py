from __future__ import annotations

import pytest

from gpus_app.core.errors import UsageError
from quartermaster_site.network import check_port, served_names


@pytest.mark.parametrize(
    ("host", "first"),
    [("127.0.0.1", "127.0.0.1"), ("::1", "[::1]"), ("localhost", "localhost"), ("10.1.2.3", "10.1.2.3")],
)
def test_the_first_name_is_where_it_listens(host, first):
    names = served_names(host)
    assert names[0] == first
    assert {"localhost", "127.0.0.1", "[::1]"} <= set(names)
    assert len(set(names)) == len(names)


def test_everywhere_means_every_name_of_this_machine():
    names = served_names("0.0.0.0")
    assert "127.0.0.1" in names
    assert "0.0.0.0" not in names
    assert "*" not in names


def test_loopback_is_the_only_default():
    assert not [name for name in served_names("127.0.0.1") if name not in ("localhost", "127.0.0.1", "[::1]")]


@pytest.mark.parametrize("port", [0, -1, 65536])
def test_ports_have_a_range(port):
    with pytest.raises(UsageError, match="from 1 to 65535"):
        check_port("127.0.0.1", port)
