"""Reports as text."""

import gzip
import json
import re
from base64 import b64decode
from typing import Any

_PAYLOAD = re.compile(r'<script type="application/gzip" id="payload">([A-Za-z0-9+/=]+)</script>')


def payload_of(page: str) -> dict[str, Any]:
    """Return the data of a report."""
    result: dict[str, Any] = json.loads(_data_of(page)[1])
    return result


def unpacked_page(page: str) -> str:
    """Return a report with its data as the text that they are."""
    return page.replace(*_data_of(page))


def _data_of(page: str) -> tuple[str, str]:
    packed = _PAYLOAD.search(page)
    assert packed
    return packed[1], gzip.decompress(b64decode(packed[1])).decode()
