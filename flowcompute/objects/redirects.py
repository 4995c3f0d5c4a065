"""The first look at a server: whether it sends readers on to another host.

obstore follows redirects and does not tell. So a server is asked once without it, before anything is read.
"""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urljoin, urlsplit

from flowcompute.files import StoreError

_MOST_HOPS = 5
_REDIRECTS = (301, 302, 303, 307, 308)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A handler that follows nothing."""

    def redirect_request(self, *_: Any) -> None:
        """Follow no redirect: urllib raises its status instead."""


def refuse_foreign_redirects(url: str, timeout_s: float) -> None:
    """Ask a server by HEAD, and refuse one that sends readers on to another host, or in circles.

    A server that cannot be asked is left to whoever reads: its errors are told there, after retries.

    Args:
        url: of the object, "http://..." or "https://...".
        timeout_s: seconds that the server may take.

    Raises:
        StoreError: if it does.
    """
    opener = urllib.request.build_opener(_NoRedirect)
    begun = urlsplit(url)
    for _ in range(_MOST_HOPS):
        target = None
        request = urllib.request.Request(url, method="HEAD")  # noqa: S310 - http and https alone come here
        try:
            opener.open(request, timeout=timeout_s).close()
        except urllib.error.HTTPError as answer:
            answer.close()
            target = answer.headers.get("Location") if answer.code in _REDIRECTS else None
        except (OSError, ValueError, http.client.HTTPException):
            return
        if target is None:
            return
        url = urljoin(url, target)
        there = urlsplit(url)
        if (there.scheme, there.netloc) != (begun.scheme, begun.netloc):
            raise StoreError(
                "the server sends readers on to another host", "name the host that has it, if you trust that one"
            )
    raise StoreError("the server sends readers on in circles", "name the place where it is")
