"""One writer a process: what many threads want to write goes into one transaction at a time."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import sqlalchemy as sa

from trueup.exceptions import StorageError

Result = TypeVar("Result")
Job = Callable[[sa.Connection], Any]

_MOST_AT_ONCE = 256  # jobs in one transaction


class Writer:
    """A thread that drains a queue of jobs into transactions, and answers each after the commit.

    A job that fails leaves nothing behind and takes no other with it.

    Parameters
    ----------
    engine : Engine
        Its connections begin a transaction with the right to write.
    turn : context manager
        Is entered for each transaction.
    """

    def __init__(self, engine: sa.Engine, turn: AbstractContextManager[None]) -> None:
        self._engine, self._turn = engine, turn
        self._jobs: queue.SimpleQueue[tuple[Job, Future[Any]] | None] = queue.SimpleQueue()
        self._closing = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="trueup-storage-writer", daemon=True)
        self._thread.start()

    def run(self, job: Callable[[sa.Connection], Result]) -> Result:
        """What the job returned, after its transaction was committed."""
        answer: Future[Result] = Future()
        with self._closing:
            if self._closed:
                raise StorageError("the storage is closed, got something to write; open it again")
            self._jobs.put((job, answer))
        return answer.result()

    def close(self) -> None:
        """Finish what is in the queue."""
        with self._closing:
            if not self._closed:
                self._closed = True
                self._jobs.put(None)
        if threading.current_thread() is not self._thread:  # where the last who knew it was a job
            self._thread.join()

    def _work(self) -> None:
        going_on = True
        while going_on:
            batch = [self._jobs.get()]
            while len(batch) < _MOST_AT_ONCE and batch[-1] is not None:
                try:
                    batch.append(self._jobs.get_nowait())
                except queue.Empty:
                    break
            going_on = batch[-1] is not None
            self._write([pair for pair in batch if pair is not None])
            del batch  # what a job knows is not kept until the next one comes

    def _write(self, batch: list[tuple[Job, Future[Any]]]) -> None:
        if not batch:
            return
        done: list[tuple[Future[Any], Any, BaseException | None]] = []
        try:
            with self._turn, self._engine.connect() as connection, connection.begin():
                for job, answer in batch:
                    done.append((answer, *_attempt(job, connection)))
        except BaseException as error:  # nothing of the batch was committed, and everyone who waits must hear of it
            for _, answer in batch:
                answer.set_exception(error)
            return
        for answer, result, problem in done:
            if problem is None:
                answer.set_result(result)
            else:
                answer.set_exception(problem)


def _attempt(job: Job, connection: sa.Connection) -> tuple[Any, BaseException | None]:
    """What a job returns or raises; where it raises, nothing of it stays."""
    try:
        with connection.begin_nested():
            return job(connection), None
    except Exception as error:
        return None, error
