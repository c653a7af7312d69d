"""Prices of things."""

TAX = 0.2


def net(price):
    return price / (1 + TAX)
