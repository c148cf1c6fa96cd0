"""What is written on pages and labels."""

import re


def initials(name: str) -> str:
    """First letters of a name, for a label.

    >>> initials("Ada Lovelace")
    'AL'
    """
    return "".join(word[0].upper() for word in name.split())


def slug(title: str) -> str:
    """A title as the last part of a page's address.

    >>> slug("Fresh Bread, Daily!")
    'fresh-bread-daily'
    >>> slug("  2 for 1  ")
    '2-for-1'
    """
    return "-".join(re.findall(r"[a-z0-9]+", title.lower()))
