"""The page for an address that leads nowhere."""

from fastapi import Request, Response
from nicegui import Client, app, ui

from keisei.web.languages import tr
from keisei.web.theme import frame


def add_not_found_page() -> None:
    """Answer requests for unknown pages with a page of ours; those for files stay as they are."""

    async def answer(request: Request, _: Exception) -> Response:
        with Client(ui.page(""), request=request) as client:
            not_found(tr("There is no page at this address."))
        return client.build_response(request, 404)

    app.exception_handler(404)(answer)


def not_found(reason: str) -> None:
    """Build a page that says what is not there; the caller sets the status 404."""
    with frame(tr("Not found")), ui.element("div").classes("k-card"):
        ui.label(reason).props("role=alert")
        ui.link(tr("To the first page"), "/").classes("k-soft")
