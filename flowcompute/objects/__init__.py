"""Object stores: objects behind URLs, read in ranges and put whole."""

from flowcompute.objects.object_files import REQUEST_BYTES, ObjectFiles, layer_of
from flowcompute.objects.object_prefix import ObjectPrefix
from flowcompute.objects.urls import READ_ONLY, ObjectUrl, UrlError, parse_url

__all__ = [
    "READ_ONLY",
    "REQUEST_BYTES",
    "ObjectFiles",
    "ObjectPrefix",
    "ObjectUrl",
    "UrlError",
    "layer_of",
    "parse_url",
]
