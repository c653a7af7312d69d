"""Prices of things."""

TAX = 0.2


def without_tax(price):
    return price / (1 + TAX)
