"""What a customer wants to buy."""
from shop.price import without_tax


def total(prices):
    return sum(without_tax(price) for price in prices)
