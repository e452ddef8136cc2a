"""Repeat failed requests: decide which errors are temporary, how long to wait, and when to stop."""

from __future__ import annotations

import contextlib
import itertools
import random
import re
import time
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, wait
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

from torchdali.formats.daemon_pool import DaemonPool
from torchdali.threads import is_ending

__all__ = ["GaveUp", "Hedge", "repeat", "status_of"]

T = TypeVar("T")

_REFUSALS = (
    FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError, NotImplementedError, ImportError,
    ValueError, TypeError,
)  # fmt: skip
_PASSING = (408, 425, 429)  # the HTTP statuses from 400 to 499 after which a repetition may succeed
_EXPIRED = re.compile(r"\b(ExpiredToken\w*|RequestExpired|TokenRefreshRequired|RequestTimeTooSkewed)\b").search
_STATUS = re.compile(r"status code: (\d{3})\b").search  # how obstore's messages state the HTTP status
_FIRST_GUESS = 0.1  # estimated seconds per request, before the first request
_PATIENCE = 3  # a request is slow if it takes this many times as long as the mean
_PAUSE = 0.05  # seconds before the first repetition
_RANDOM = random.Random()  # separate, so that the user's random state doesn't change


class GaveUp(Exception):
    """A request failed and will not be repeated.

    Args:
        reason: The last error.
        attempts: Number of attempts; 0 if the store refused the request, so that a repetition would be useless.
        status: HTTP status; None if the store sent no status.
    """

    def __init__(self, reason: Exception, attempts: int, status: int | None) -> None:
        super().__init__(reason, attempts, status)
        self.reason, self.attempts, self.status = reason, attempts, status


def repeat(
    request: Callable[[], T], deadline: float, retries: int | None, longest: float, renew: Callable[[], None]
) -> T:
    """Send a request until it succeeds.

    Args:
        deadline: Number of seconds after which a failed request is not sent again.
        retries: Maximum number of repetitions; None for any number.
        longest: Maximum number of seconds between two attempts, unless the server requests more.
        renew: Function that is called if the credentials have expired.

    Raises:
        GaveUp: The store refuses the request, or the deadline or the number of repetitions is reached.
    """
    end = time.monotonic() + deadline
    for attempt in itertools.count(1):
        try:
            return request()
        except Exception as error:
            status, expired = status_of(error), _EXPIRED(_text(error)) is not None
            if not expired and _is_refused(error, status):
                raise GaveUp(error, 0, status) from None
            pause = _pause(error, attempt, longest)
            if is_ending() or attempt - 1 == retries or time.monotonic() + pause > end:
                raise GaveUp(error, attempt, status) from None
        if expired:
            renew()
        _wait(pause)
    raise AssertionError


class Hedge:
    """Sends a request again, over another connection, if the request takes much longer than usual.

    The first successful response is used.

    Args:
        threads: Maximum number of simultaneous requests.
    """

    def __init__(self, threads: int) -> None:
        self._pool = DaemonPool(2 * threads, "torchdali-hedge")
        self._usual = _FIRST_GUESS

    def send(self, request: Callable[[], T]) -> T:
        """Send a request. If the request is slow, send it a second time. Raise an error only if both attempts fail."""
        began = time.monotonic()
        sent = [self._pool.submit(request)]
        if not wait(sent, _PATIENCE * self._usual).done:
            sent.append(self._pool.submit(request))
        waiting = set(sent)
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            answers = [each for each in done if each.exception() is None]
            if answers or not waiting:
                break
        self._usual += (time.monotonic() - began - self._usual) / 16
        return (answers or sent)[0].result()


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status of an error; None if the error has no status.

    The status may be an attribute of the error or of its cause, or be contained in the error's response or message.
    """
    for each in (error, error.__cause__):
        status = getattr(each, "status", None) or _response(each).get("HTTPStatusCode")
        if isinstance(status, int) and status:
            return status
    found = _STATUS(str(error))
    return int(found[1]) if found else None


def _response(error: Any) -> Mapping[str, Any]:
    response = getattr(error, "response", None)
    return response.get("ResponseMetadata", {}) if isinstance(response, dict) else {}


def _text(error: BaseException) -> str:
    return f"{error} {error.__cause__ or ''}"


def _is_refused(error: Exception, status: int | None) -> bool:
    if status is not None:
        return 400 <= status < 500 and status not in _PASSING
    cause = error.__cause__
    if isinstance(error, FileNotFoundError) and (isinstance(cause, OSError) or _is_of_client(cause)):
        return isinstance(cause, _REFUSALS)  # fsspec raises FileNotFoundError for every failed HEAD request
    return isinstance(error, _REFUSALS)


def _is_of_client(error: BaseException | None) -> bool:
    return type(error).__module__.partition(".")[0] == "aiohttp" or isinstance(error, TimeoutError)


def _pause(error: Exception, attempt: int, longest: float) -> float:
    """Return the number of seconds until the next attempt.

    A Retry-After header of the response determines this number. Without the header, each number is about
    twice the previous number.
    """
    for each in (error, error.__cause__):
        headers = getattr(each, "headers", None) or _response(each).get("HTTPHeaders") or {}
        after = next((value for name, value in dict(headers).items() if name.lower() == "retry-after"), "")
        if after.isdigit():
            return float(after)
        with contextlib.suppress(ValueError):
            return max(0.0, parsedate_to_datetime(after).timestamp() - time.time())
    return min(_PAUSE * 2.0 ** min(attempt - 1, 20), longest) * _RANDOM.uniform(0.5, 1.5)


def _wait(seconds: float) -> None:
    end = time.monotonic() + seconds
    while not is_ending() and (left := end - time.monotonic()) > 0:
        time.sleep(min(left, 0.25))
