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

__all__ = ["Hedge", "RequestFailed", "find_status", "repeat"]

T = TypeVar("T")

_REFUSAL_TYPES = (
    FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError, NotImplementedError, ImportError,
    ValueError, TypeError,
)  # fmt: skip
_TEMPORARY_STATUSES = (408, 425, 429)  # the HTTP statuses from 400 to 499 after which a repetition may succeed
_search_expiry = re.compile(r"\b(ExpiredToken\w*|RequestExpired|TokenRefreshRequired|RequestTimeTooSkewed)\b").search
_search_status = re.compile(r"status code: (\d{3})\b").search  # how obstore's messages state the HTTP status
_FIRST_ESTIMATE = 0.1  # estimated seconds per request, before the first request
_SLOW_FACTOR = 3  # a request is slow if it takes this many times as long as the mean
_FIRST_PAUSE = 0.05  # seconds before the first repetition
_RANDOM = random.Random()  # separate, so that the user's random state doesn't change


class RequestFailed(Exception):
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
    request: Callable[[], T], deadline: float, retries: int | None, max_pause: float, renew: Callable[[], None]
) -> T:
    """Send a request until it succeeds.

    Args:
        deadline: Number of seconds after which a failed request is not sent again.
        retries: Maximum number of repetitions; None for any number.
        max_pause: Maximum number of seconds between two attempts, unless the server requests more.
        renew: Function that is called if the credentials have expired.

    Raises:
        RequestFailed: The store refuses the request, or the deadline or the number of repetitions is reached.
    """
    end = time.monotonic() + deadline
    for attempt in itertools.count(1):
        try:
            return request()
        except Exception as error:
            status, expired = find_status(error), _search_expiry(_describe_error(error)) is not None
            if not expired and _is_refused(error, status):
                raise RequestFailed(error, 0, status) from None
            pause = _choose_pause(error, attempt, max_pause)
            if is_ending() or attempt - 1 == retries or time.monotonic() + pause > end:
                raise RequestFailed(error, attempt, status) from None
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
        self._mean_seconds = _FIRST_ESTIMATE

    def send(self, request: Callable[[], T]) -> T:
        """Send a request. If the request is slow, send it a second time. Raise an error only if both attempts fail."""
        start = time.monotonic()
        futures = [self._pool.submit(request)]
        if not wait(futures, _SLOW_FACTOR * self._mean_seconds).done:
            futures.append(self._pool.submit(request))
        pending = set(futures)
        while pending:
            done, pending = wait(pending, return_when=FIRST_COMPLETED)
            succeeded = [each for each in done if each.exception() is None]
            if succeeded or not pending:
                break
        self._mean_seconds += (time.monotonic() - start - self._mean_seconds) / 16
        return (succeeded or futures)[0].result()


def find_status(error: BaseException) -> int | None:
    """Return the HTTP status of an error; None if the error has no status.

    The status may be an attribute of the error or of its cause, or be contained in the error's response or message.
    """
    for each in (error, error.__cause__):
        status = getattr(each, "status", None) or _response(each).get("HTTPStatusCode")
        if isinstance(status, int) and status:
            return status
    match = _search_status(str(error))
    return int(match[1]) if match else None


def _response(error: Any) -> Mapping[str, Any]:
    response = getattr(error, "response", None)
    return response.get("ResponseMetadata", {}) if isinstance(response, dict) else {}


def _describe_error(error: BaseException) -> str:
    return f"{error} {error.__cause__ or ''}"


def _is_refused(error: Exception, status: int | None) -> bool:
    if status is not None:
        return 400 <= status < 500 and status not in _TEMPORARY_STATUSES
    cause = error.__cause__
    if isinstance(error, FileNotFoundError) and (isinstance(cause, OSError) or _is_client_error(cause)):
        return isinstance(cause, _REFUSAL_TYPES)  # fsspec raises FileNotFoundError for every failed HEAD request
    return isinstance(error, _REFUSAL_TYPES)


def _is_client_error(error: BaseException | None) -> bool:
    return type(error).__module__.partition(".")[0] == "aiohttp" or isinstance(error, TimeoutError)


def _choose_pause(error: Exception, attempt: int, max_pause: float) -> float:
    """Return the number of seconds until the next attempt.

    A Retry-After header of the response determines this number. Without the header, each number is about
    twice the previous number.
    """
    for each in (error, error.__cause__):
        headers = getattr(each, "headers", None) or _response(each).get("HTTPHeaders") or {}
        retry_after = next((value for name, value in dict(headers).items() if name.lower() == "retry-after"), "")
        if retry_after.isdigit():
            return float(retry_after)
        with contextlib.suppress(ValueError):
            return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time.time())
    return min(_FIRST_PAUSE * 2.0 ** min(attempt - 1, 20), max_pause) * _RANDOM.uniform(0.5, 1.5)


def _wait(seconds: float) -> None:
    end = time.monotonic() + seconds
    while not is_ending() and (remaining := end - time.monotonic()) > 0:
        time.sleep(min(remaining, 0.25))
