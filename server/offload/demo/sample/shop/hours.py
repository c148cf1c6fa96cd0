"""Opening hours, as (first, last) pairs of whole hours."""


def merge(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Opening hours in order, with those that touch or overlap made one.

    >>> merge([(14, 18), (9, 12)])
    [(9, 12), (14, 18)]
    >>> merge([(9, 12), (11, 15), (15, 16)])
    [(9, 16)]
    """
    merged: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if last < first:
            raise ValueError("hours end before they begin")
        if merged and first <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return merged
