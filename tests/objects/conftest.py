"""Servers on loopback, and limits of requests that a busy machine does not pass."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from flowcompute.objects import _obstore
from tests.objects.object_server import ObjectServer, serving

SECRET = "very-secret"
PATIENT = _obstore.RequestLimits(retries=2, backoff_s=0.1, silence_s=20, request_s=60)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectServer]:
    """A server that s3:// goes to, and that http:// can name."""
    monkeypatch.setattr(_obstore, "LIMITS", PATIENT)
    with serving() as server:
        for name, value in {
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
            "AWS_ENDPOINT_URL": server.url,
            "NO_PROXY": "127.0.0.1",
        }.items():
            monkeypatch.setenv(name, value)
        yield server
