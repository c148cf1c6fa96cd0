"""Prices, in cents."""


def price(cents: int) -> str:
    """An amount as it stands on a price tag.

    >>> price(1250)
    '12.50'
    >>> price(5)
    '0.05'
    """
    sign = "-" if cents < 0 else ""
    return f"{sign}{abs(cents) // 100}.{abs(cents) % 100:02d}"


def share(cents: int, people: int) -> list[int]:
    """An amount in fair parts: none differs from another by more than one cent, and nothing is lost.

    >>> share(1000, 4)
    [250, 250, 250, 250]
    >>> share(100, 3)
    [34, 33, 33]
    """
    if people < 1:
        raise ValueError("somebody has to pay")
    part, left_over = divmod(cents, people)
    return [part + 1] * left_over + [part] * (people - left_over)
