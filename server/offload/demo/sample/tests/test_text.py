import unittest

from shop.text import initials


class InitialsTest(unittest.TestCase):
    def test_takes_the_first_letter_of_every_word(self):
        self.assertEqual(initials("grace brewster hopper"), "GBH")

    def test_of_nothing_are_nothing(self):
        self.assertEqual(initials(""), "")


if __name__ == "__main__":
    unittest.main()
