from __future__ import annotations

import pytest

from quartermaster_site.access.redaction import redact


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("llama-server --api-key sk-1234567890", "1234567890"),
        ("llama-server --api-key=sk-1234567890", "1234567890"),
        ('{"password": "hunter2hunter2"}', "hunter2hunter2"),
        ("Authorization: Bearer abcdefghijkl", "abcdefghijkl"),
        ("key qm-0123456789abcdef0123 in a log", "0123456789abcdef0123"),
        ("GET https://user:pass@example.org/x", "user:pass"),
        ("HF_TOKEN=hf_abcdefgh", "hf_abcdefgh"),
    ],
)
def test_secrets_are_masked(text, hidden):
    assert hidden not in redact(text)


@pytest.mark.parametrize(
    "text", ["llama-server -m /models/keyboard.gguf --port 8080", "model_key: qwen3-8b", "tokens: 152,064", ""]
)
def test_everything_else_stays(text):
    assert redact(text) == text


def test_structures_are_walked():
    assert redact({"apiKeys": [None, ["secret-one", "other"]]}) == {"apiKeys": [None, ["secr…", "othe…"]]}
    assert redact({"apiKeys": ["qm-abcdefgh1234"], "ctx": [1, None]}) == {"apiKeys": ["qm-a…"], "ctx": [1, None]}
