import unittest

from pace import pace


class Pace(unittest.TestCase):
    def test_ten_kilometres_in_fifty_minutes(self):
        self.assertEqual(pace(3000, 10_000), "5:00")

    def test_seconds_have_two_digits(self):
        self.assertEqual(pace(305, 1000), "5:05")
