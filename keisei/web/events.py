"""What pages send with events: their scripts are in the hands of visitors and may send anything."""

from nicegui.events import GenericEventArguments


def event_number(event: GenericEventArguments) -> int:
    """Return the number that a page sends, which may send anything; -1 instead of other things."""
    return event.args if isinstance(event.args, int) else -1


def number_within(value: object, most: float, *, otherwise: float = 0) -> float:
    """Return the value of a slider from 0 to `most`; a page may have set it to anything.

    >>> number_within(3, 5), number_within(9, 5), number_within(None, 5)
    (3, 5, 0)
    """
    return min(max(0, value), most) if isinstance(value, int | float) else otherwise
