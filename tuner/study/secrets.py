"""Text without the passwords that URLs and connection strings in it may hold."""

from __future__ import annotations

import re

HIDDEN = "***"
_RULES = (
    (re.compile(r"(://[^\s/?#@:'\"]*):[^\s@'\"]*@"), rf"\1:{HIDDEN}@"),  # postgresql://user:password@host
    # A password may stand in the query of a URL and in a connection string, quoted or not.
    (
        re.compile(r"(?i)\b(\w*pass(?:word|wd|file)?|\w*token|\w*secret\w*)(\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s&'\",;)]+)"),
        rf"\1\2{HIDDEN}",
    ),
)


def without_secrets(text: str) -> str:
    """Return text with *** for what may be a password: before the @ of a URL, or the value of a key named like one.

    Examples
    --------
    >>> without_secrets("postgresql://h/db?user=me&password=abc&sslmode=require")
    'postgresql://h/db?user=me&password=***&sslmode=require'
    """
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text
