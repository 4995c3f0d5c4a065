"""Elements and the functions that compose them."""

from flowcompute.elements.alignment import ALONG, broadcast, common_length
from flowcompute.elements.calls import of_operands, public
from flowcompute.elements.compute import CAST, PLACED, Compute, Constant, as_element, cast
from flowcompute.elements.destination import Destination, Writer
from flowcompute.elements.element import Element, VerbSlot
from flowcompute.elements.elementwise_functions import Function, elementwise
from flowcompute.elements.functions import HostFunction, host
from flowcompute.elements.items import ItemShape, Matrix, Number, Vector, item_dtype, parse_item_shape
from flowcompute.elements.keeping import GrowingFile, Promise, StagingArea, State
from flowcompute.elements.op import MOST, MOST_AXES, RECOMPUTE, Attrs, KeptAttrs, KeptOp, Kind, Op, by_ufunc
from flowcompute.elements.operators import FUNCTIONS, RECORDS
from flowcompute.elements.pin import Pin, plain_name
from flowcompute.elements.pinning import owner_of, pinned, share_block
from flowcompute.elements.site import UserCall, places_of, user_site, warn_at
from flowcompute.elements.source import AsyncReader, Reader, Source
from flowcompute.elements.streams import SPOOL, spool

__all__ = [
    "ALONG",
    "CAST",
    "FUNCTIONS",
    "MOST",
    "MOST_AXES",
    "PLACED",
    "RECOMPUTE",
    "RECORDS",
    "SPOOL",
    "AsyncReader",
    "Attrs",
    "Compute",
    "Constant",
    "Destination",
    "Element",
    "Function",
    "GrowingFile",
    "HostFunction",
    "ItemShape",
    "KeptAttrs",
    "KeptOp",
    "Kind",
    "Matrix",
    "Number",
    "Op",
    "Pin",
    "Promise",
    "Reader",
    "Source",
    "StagingArea",
    "State",
    "UserCall",
    "Vector",
    "VerbSlot",
    "Writer",
    "as_element",
    "broadcast",
    "by_ufunc",
    "cast",
    "common_length",
    "elementwise",
    "host",
    "item_dtype",
    "of_operands",
    "owner_of",
    "parse_item_shape",
    "pinned",
    "places_of",
    "plain_name",
    "public",
    "share_block",
    "spool",
    "user_site",
    "warn_at",
]
