"""Spark: collations end where bytes begin, and what runs can be stopped."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from threading import Thread, current_thread, main_thread
from typing import Any

from privmax.sources.asking import ask, import_ibis, quietly
from privmax.sources.engines.base import Engine, as_text, call, new_name

_SETTINGS = ("spark.sql.session.timeZone", "spark.sql.mapKeyDedupPolicy")
"""The settings of Ibis in a session it is given."""


class Spark(Engine):
    name, title = "pyspark", "Spark"
    package, module, extra = "pyspark", "pyspark", "pyspark"
    keys_are_bytes = True
    has_grouping_sets = True

    @classmethod
    def owns(cls, data: object) -> bool:
        """Return whether it is a DataFrame, of a session in this process or of Spark Connect."""
        kind = type(data)
        return kind.__module__.startswith("pyspark.sql") and kind.__name__ == "DataFrame"

    @classmethod
    def open_object(cls, data: Any, needed: Sequence[str], stack: ExitStack) -> Any:
        """Return a DataFrame as a view of its own session, which is left as it was."""
        session = data.sparkSession
        for name in _SETTINGS:
            with suppress(
                Exception
            ):  # some services let nobody read their settings, and then nobody changes them
                stack.callback(quietly, session.conf.set, name, session.conf.get(name))
        connection = ask("opening the session", import_ibis().pyspark.connect, session)
        view = new_name("rows")
        stack.callback(quietly, session.catalog.dropTempView, view)
        ask("opening the frame", data.createTempView, view)
        return ask("opening the frame", connection.table, view)

    @classmethod
    def is_transient(cls, error: BaseException) -> bool:
        return type(error).__name__ == "Py4JNetworkError"

    @property
    def connection(self) -> Any:
        return self.backend._session

    def text_key(self, column: Any) -> Any:
        return as_text(column).cast("binary")

    def readable(self, key: Any, kind: Any) -> Any:
        if (
            kind.is_timestamp()
        ):  # Ibis has one type for moments, which it has Spark write in UTC, and for local times
            moment = call("typeof", "string", key) == "timestamp"
            return super().readable(key, kind).concat(moment.ifelse("Z", ""))
        return super().readable(key, kind)

    def row_at(
        self, ordered: Any, index: int, choose: Callable[[Any], dict[str, Any]]
    ) -> list[tuple[Any, ...]]:
        # Spark skips rows itself. Ibis 12 has it number them instead, in no order that Spark would
        # have to keep. What is wanted is made of every row here: to make text of a key never fails
        # in Spark.
        columns = choose(ordered)
        rows = self.backend.raw_sql(
            self.backend.compile(ordered.mutate(**columns).order_by(list(ordered.columns)))
        )
        return [tuple(row) for row in rows.offset(index).limit(1).select(*columns).collect()]

    def keep(self, counts: Any, stack: ExitStack) -> Any:
        # Ibis keeps one table for equal expressions, and whoever is first done takes it from the
        # others: the name, as one column more, makes this expression like no other.
        name = new_name("counts")
        cached = ask("the counting", counts.mutate(**{name: 0}).cache)
        stack.callback(quietly, cached.release)
        with suppress(
            Exception
        ):  # Spark Connect has no context; there Ctrl-C is the client's own affair
            stack.callback(quietly, _stoppable(self.backend._session.sparkContext, name))
        return cached

    def is_made(self, table: Any) -> bool:
        return False  # a cache is filled when it is first read, and again where room was short

    def table_of(self, columns: Mapping[str, Sequence[Any]], schema: Any, stack: ExitStack) -> Any:
        table = super().table_of(columns, schema, stack)
        # Ibis tells Spark of the labels where it makes a view of them, and not where it keeps the
        # counts.
        view = new_name("labels")
        stack.callback(quietly, self.forget, view)
        ask("the counting", self.backend.create_view, view, table)
        return table

    def forget(self, name: str) -> None:
        self.backend.drop_view(name, force=True)


def _stoppable(context: Any, tag: str) -> Callable[[], object]:
    """Mark what this thread asks of Spark; return what stops it.

    That stops all of it that still runs, and ends the marking.

    After Ctrl-C Spark would first finish, and answer no other question from the same
    thread. Its own way with Ctrl-C fails and says something else, so here it is noted, and raised
    when all is cleaned up.
    """
    context.addJobTag(tag)
    pressed: list[int] = []
    usual = signal.getsignal(signal.SIGINT)
    noting = callable(usual) and current_thread() is main_thread()  # only there may it be changed

    def note(number: int, frame: Any) -> None:
        pressed.append(number)
        if callable(usual):
            usual(number, frame)

    if noting:
        signal.signal(signal.SIGINT, note)

    def stop() -> None:
        if noting:
            signal.signal(signal.SIGINT, usual)
        other = Thread(target=context.cancelJobsWithTag, args=(tag,))
        other.start()
        other.join()
        context.removeJobTag(tag)
        if pressed:
            raise KeyboardInterrupt

    return stop


ENGINE = Spark
