"""What is chosen for each call or request: its limit, by who asks, and its cost, by what is asked."""

from __future__ import annotations

from typing import Any, TypeVar

from ._bodies import kind
from .errors import _invalid
from .views import LimitAnswer

__all__ = ["TOO_MANY", "check", "checked", "chosen", "refusal"]

T = TypeVar("T")

TOO_MANY = 429

# The most that a number in a header may be, by RFC 9651.
_MOST = 10**15 - 1


def check(choice: Any, name: str) -> None:
    """Refuses a function that would choose later than the call."""
    found = kind(choice) if callable(choice) else None
    if found is not None:
        raise _invalid(name, f"is {found}; choose it by a plain function")


def chosen(choice: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """What is for all calls, or what a function gives for this one."""
    return choice(*arguments, **options) if callable(choice) else choice


def checked(limit: Any, kind: type[T], what: str) -> T:
    """The limit, which must be of this kind: also what a function gives may be none."""
    if not isinstance(limit, kind):
        raise _invalid("limit", f"must be {what}")
    return limit


def refusal(answer: LimitAnswer) -> tuple[bytes, list[tuple[str, str]]]:
    """What is answered to whom a limit refused, and its headers; no name of a limit is told."""
    text, retry_after, reset_after = "too much was asked for; ask for less", answer["retry_after"], answer["reset_after"]
    headers = [("Content-Type", "text/plain; charset=utf-8")]
    state = f'"default";r={min(answer["remaining"], _MOST)}'
    headers.append(("RateLimit", state if reset_after is None else f"{state};t={_seconds(reset_after)}"))
    if retry_after is not None:
        seconds = max(1, _seconds(retry_after))
        text = f"too many requests; try again in {seconds} s"
        headers.append(("Retry-After", str(seconds)))
    body = text.encode()
    return body, [*headers, ("Content-Length", str(len(body)))]


def _seconds(time: float) -> int:
    # To the microsecond, in which times are counted: a fraction that only the float has is not another second.
    return -(-round(time * 1_000_000) // 1_000_000)
