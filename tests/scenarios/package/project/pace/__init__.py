"""Running paces."""


def pace(seconds: int, metres: int) -> str:
    """Returns minutes and seconds per kilometre."""
    minutes, rest = divmod(round(seconds * 1000 / metres), 60)
    return f"{minutes}:{rest:02}"
