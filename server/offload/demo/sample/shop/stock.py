"""What is on the shelves."""


class Stock:
    """Counts of items by name."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def put(self, item: str, count: int) -> None:
        self.counts[item] = self.counts.get(item, 0) + count

    def take(self, item: str, count: int) -> int:
        """Takes up to `count` of an item off the shelf and says how many there were to take.

        >>> stock = Stock()
        >>> stock.put("tea", 3)
        >>> stock.take("tea", 2)
        2
        >>> stock.take("tea", 2)
        1
        """
        if count < 0:
            raise ValueError("use put to bring something back")
        taken = min(count, self.counts.get(item, 0))
        self.counts[item] = self.counts.get(item, 0) - taken
        return taken
