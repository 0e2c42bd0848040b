"""Functions that take turns with their caller."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable


class Closed(BaseException):
    """Raised inside a function by :meth:`Turns.pause` to end it. Not an ``Exception``, so that it is not handled."""


class Turns:
    """Runs a function in a thread of its own that takes turns with the caller: the two never run at the same time.

    Args:
        function: Called with this object. It calls :meth:`pause` where it can be interrupted.

    Example:
        >>> def count(turns):
        ...     for number in range(2):
        ...         print(number)
        ...         turns.pause()
        >>> turns = Turns(count)
        >>> turns.advance(), turns.advance()
        0
        1
        (True, True)
        >>> turns.advance()
        False
    """

    def __init__(self, function: Callable[[Turns], object]) -> None:
        self._function = function
        self._may_run = threading.Semaphore(0)
        self._has_paused = threading.Semaphore(0)
        self._error: BaseException | None = None
        self._is_over = False
        self._is_closing = False
        context = contextvars.copy_context()
        # A daemon, so that a function that does not end cannot keep the program from ending.
        self._thread = threading.Thread(target=lambda: context.run(self._run), daemon=True)

    def advance(self) -> bool:
        """Lets the function run until it pauses. Returns False once it has ended, and raises what it raises."""
        if self._is_over:
            return False
        if self._thread.ident is None:
            self._thread.start()
        else:
            self._may_run.release()
        try:
            self._has_paused.acquire()
        except BaseException:  # Ctrl-C. The function ends at its next pause.
            self._is_closing = True
            self._may_run.release()
            self._thread.join()
            raise
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        return not self._is_over

    def pause(self) -> None:
        """Called by the function: lets the caller run until it calls :meth:`advance`."""
        if not self._is_closing:
            self._has_paused.release()
            self._may_run.acquire()
        if self._is_closing:
            raise Closed

    def close(self) -> None:
        """Ends the function where it has paused."""
        if self._thread.ident is None or self._is_over:
            self._is_over = True
            return
        self._is_closing = True
        self._may_run.release()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._function(self)
        except Closed:
            pass
        except BaseException as error:
            self._error = error
        finally:
            self._is_over = True
            self._has_paused.release()
