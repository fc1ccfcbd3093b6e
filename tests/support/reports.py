"""Reports as text."""

import gzip
import re
from base64 import b64decode


def unpacked_page(page: str) -> str:
    """Return a report with its data as the text that they are."""
    packed = re.search(r'<script type="application/gzip" id="payload">([A-Za-z0-9+/=]+)</script>', page)
    assert packed
    return page.replace(packed[1], gzip.decompress(b64decode(packed[1])).decode())
