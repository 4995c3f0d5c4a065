"""The parts of Google's XML API and of Azure's Blob service that a client of objects uses, on loopback.

Written after cloud.google.com/storage/docs/xml-api and learn.microsoft.com/rest/api/storageservices. Listings come in
pages of two, so that each job asks for several.
"""

from __future__ import annotations

import base64
import re
from http.server import BaseHTTPRequestHandler
from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from tests.objects.object_server import CHANGED, ObjectServer, Request

_BUCKET = "/bucket/"
_PAGE = 2


class Call(NamedTuple):
    """A request: its method, the object's key, what its query says, and the condition it comes with."""

    method: str
    key: str
    query: dict[str, str]
    condition: str | None


class CloudServer(ObjectServer):
    """One bucket, whose objects are named by their keys alone.

    Attributes:
        calls: what was asked for.
    """

    condition = ""
    """Header of the condition that there is no object of a name."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Call] = []
        self.parts: dict[tuple[str, str], bytes] = {}

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers["Content-Length"] or 0))
        said = urlsplit(handler.path)
        query = {name: values[0] for name, values in parse_qs(said.query, keep_blank_values=True).items()}
        condition = handler.headers["If-Match"] or handler.headers[self.condition]
        call = Call(handler.command, unquote(said.path).removeprefix(_BUCKET), query, condition)
        self.calls.append(call)
        authorization = handler.headers["Authorization"]
        fault = self.fault(Request(call.method, handler.path, handler.headers["Range"], condition, authorization))
        if fault is not None:
            return self._say(handler, int(fault), b"<Error>very-secret, as a server may echo</Error>")
        if call.method in ("GET", "HEAD") and call.key not in ("", "/bucket"):
            return self._read(handler, call)
        return self.change(handler, call, body)

    def _read(self, handler: BaseHTTPRequestHandler, call: Call) -> None:
        data = self.objects.get(call.key)
        if data is None:
            return self._say(handler, 404)
        if call.condition not in (None, self.etag(data)):
            return self._say(handler, 412)
        known = {"ETag": self.etag(data), "Last-Modified": CHANGED}
        asked = handler.headers["Range"]
        if asked is None:
            return self._give(handler, 200, data, None, known)
        first, last = map(int, asked.removeprefix("bytes=").split("-"))
        last = min(last, len(data) - 1)
        known["Content-Range"] = f"bytes {first}-{last}/{len(data)}"
        return self._give(handler, 206, data[first : last + 1], None, known)

    def change(self, handler: BaseHTTPRequestHandler, call: Call, body: bytes) -> None:
        """Answer a request that lists or changes objects."""
        raise NotImplementedError

    def page(self, call: Call, begin: str) -> tuple[list[str], list[str], str]:
        """Return keys and folders of a page of a listing, and where the next begins, "" where there is none."""
        prefix, delimiter = call.query.get("prefix", ""), call.query.get("delimiter")
        found = set()
        for key in self.objects:
            if key.startswith(prefix):
                below, slash, _ = key[len(prefix) :].partition(delimiter or "\0")
                found.add(prefix + below + slash)
        left = sorted(name for name in found if name >= begin)
        some = left[:_PAGE]
        folders = [name for name in some if delimiter and name.endswith(delimiter)]
        return [name for name in some if name not in folders], folders, "".join(left[_PAGE : _PAGE + 1])


class GoogleServer(CloudServer):
    """Google Cloud Storage by its XML API."""

    condition = "x-goog-if-generation-match"

    def change(self, handler: BaseHTTPRequestHandler, call: Call, body: bytes) -> None:
        if call.method == "DELETE":
            return self._say(handler, 404 if self.objects.pop(call.key, None) is None else 204)
        if call.method == "GET":
            keys, folders, following = self.page(call, call.query.get("continuation-token", ""))
            entries = "".join(
                f"<Contents><Key>{key}</Key><LastModified>2026-11-23T10:00:00.000Z</LastModified>"
                f"<ETag>{self.etag(self.objects[key])}</ETag><Size>{len(self.objects[key])}</Size></Contents>"
                for key in keys
            )
            entries += "".join(f"<CommonPrefixes><Prefix>{name}</Prefix></CommonPrefixes>" for name in folders)
            if following:
                entries += f"<NextContinuationToken>{following}</NextContinuationToken>"
            return self._say(handler, 200, f"<ListBucketResult>{entries}</ListBucketResult>".encode())
        if "uploads" in call.query:
            said = "<Bucket>bucket</Bucket><Key>key</Key><UploadId>upload</UploadId>"
            return self._say(
                handler, 200, f"<InitiateMultipartUploadResult>{said}</InitiateMultipartUploadResult>".encode()
            )
        if "partNumber" in call.query:
            self.parts[call.key, call.query["partNumber"]] = body
            return self._say(handler, 200, ETag=self.etag(body))
        if call.condition == "0" and call.key in self.objects:
            return self._say(handler, 412)
        if call.method == "POST":
            numbers = re.findall("<PartNumber>([0-9]+)</PartNumber>", body.decode())
            body = b"".join(self.parts.pop((call.key, number)) for number in numbers)
        self.objects[call.key] = body
        made = "<CompleteMultipartUploadResult><ETag>x</ETag></CompleteMultipartUploadResult>"
        known = {"ETag": self.etag(body), "x-goog-generation": str(len(self.calls))}
        return self._say(handler, 200, made.encode() if call.method == "POST" else b"", **known)


class AzureServer(CloudServer):
    """Azure's Blob service. Its listings leave the quotes of ETags out."""

    condition = "If-None-Match"

    def change(self, handler: BaseHTTPRequestHandler, call: Call, body: bytes) -> None:
        what = call.query.get("comp")
        if call.method == "POST" and what == "batch":
            return self._batch(handler, body)
        if call.method == "GET":
            keys, folders, following = self.page(call, call.query.get("marker", ""))
            entries = "".join(
                f"<Blob><Name>{key}</Name><Properties><Last-Modified>{CHANGED}</Last-Modified>"
                f"<Content-Length>{len(self.objects[key])}</Content-Length><Content-Type>a/b</Content-Type>"
                f"<Etag>{self.etag(self.objects[key])[1:-1]}</Etag></Properties></Blob>"
                for key in keys
            )
            entries += "".join(f"<BlobPrefix><Name>{name}</Name></BlobPrefix>" for name in folders)
            said = f"<EnumerationResults><Blobs>{entries}</Blobs><NextMarker>{following}</NextMarker>"
            return self._say(handler, 200, f"{said}</EnumerationResults>".encode())
        if what == "block":
            self.parts[call.key, base64.b64decode(call.query["blockid"]).decode()] = body
            return self._say(handler, 201)
        if what == "blocklist":
            blocks = re.findall("<Uncommitted>([^<]+)</Uncommitted>", body.decode())
            body = b"".join(self.parts.pop((call.key, base64.b64decode(block).decode())) for block in blocks)
        if call.condition == "*" and call.key in self.objects:
            return self._say(handler, 409)
        self.objects[call.key] = body
        return self._say(handler, 201, ETag=self.etag(body))

    def _batch(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        answers = ""
        for number, key in enumerate(re.findall(f"DELETE {_BUCKET}([^ ]+) HTTP", body.decode())):
            gone = self.objects.pop(unquote(key), None) is None
            status = "404 The specified blob does not exist." if gone else "202 Accepted"
            answers += f"--answer\r\nContent-Type: application/http\r\nContent-ID: {number}\r\n\r\n"
            answers += f"HTTP/1.1 {status}\r\n" + ("x-ms-error-code: BlobNotFound\r\n" if gone else "") + "\r\n\r\n"
        known = {"Content-Type": "multipart/mixed; boundary=answer"}
        self._say(handler, 202, f"{answers}--answer--\r\n".encode(), **known)
