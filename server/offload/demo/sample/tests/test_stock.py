import unittest

from shop.stock import Stock


class StockTest(unittest.TestCase):
    def test_put_adds_to_what_is_there(self):
        stock = Stock()
        stock.put("tea", 2)
        stock.put("tea", 3)
        self.assertEqual(stock.counts, {"tea": 5})


if __name__ == "__main__":
    unittest.main()
