"""Connections: a request that is only half there has a few seconds, and gives way to others."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

AT_ONCE = 256
"""Connections and requests at a time; more requests are answered with 503."""

REQUEST_SECONDS = 10.0
"""The time for a request to arrive, from the first byte of its headers to the last one. A form has
`security.BODY_SECONDS` more.
"""


class HttpConnection(H11Protocol):
    """HTTP as uvicorn speaks it, with a limit on how long a connection may wait for a request.

    uvicorn itself waits for the rest of a request for as long as it takes, and counts that
    connection as one of those that it serves at a time.
    """

    _deadline: asyncio.TimerHandle | None = None
    _since: float = 0.0

    @property
    def is_waiting(self) -> bool:
        """Whether no request is being answered: none has arrived completely since the last one."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._since = self.loop.time()
        self._set_deadline()
        self._make_room()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._set_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_deadline()
        super().connection_lost(exc)

    def _set_deadline(self) -> None:
        """Count from the first byte: those that trickle in later do not prolong it."""
        if not self.is_waiting:
            self._cancel_deadline()
            self._since = self.loop.time()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(REQUEST_SECONDS, self.transport.abort)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _make_room(self) -> None:
        """Close the connections that wait longest, where there are too many."""
        others = [
            one for one in self.connections if isinstance(one, HttpConnection) and one != self
        ]
        waiting = sorted((one for one in others if one.is_waiting), key=lambda one: one._since)
        for one in waiting[: max(0, len(self.connections) - AT_ONCE + 1)]:
            one.transport.abort()
            self.connections.discard(one)  # now: it is told that it is lost a moment later
