"""What a customer wants to buy."""
from shop.price import net


def total(prices):
    return sum(net(price) for price in prices)
