"""What can go wrong: one class per stable code, under one base."""

from __future__ import annotations

from typing import ClassVar

__all__ = [
    "Busy",
    "Cancelled",
    "Claimed",
    "Contended",
    "Exhausted",
    "Insufficient",
    "Internal",
    "InvalidArgument",
    "LeaseholdError",
    "Limited",
    "LockedUntil",
    "Lost",
    "NoFit",
    "NonceUnavailable",
    "SourceUnavailable",
    "Stalled",
    "StoreUnavailable",
    "TimedOut",
]


class LeaseholdError(Exception):
    """Any error of leasehold. Its `code` is the same in every language; `field` names the argument that was refused;
    `retry_after` says when trying again can help, in seconds from then, where it is known: with `Limited`, `Exhausted`,
    `TimedOut`, `LockedUntil` and `Stalled`. What is held may be renewed until then, or given back before."""

    code: ClassVar[str] = "internal"
    field: str | None = None
    retry_after: float | None = None


class TimedOut(LeaseholdError, TimeoutError):
    """Not granted within the timeout. Nothing is held and nobody waits: try again, or wait longer."""

    code: ClassVar[str] = "timed_out"


class Cancelled(LeaseholdError):
    """The handle was closed. Nothing is held. (A task that is cancelled has `asyncio.CancelledError`, as always.)"""

    code: ClassVar[str] = "cancelled"


class Lost(LeaseholdError):
    """The lease is no longer held. Stop at once: someone else may hold the slot. What was sent under it may have arrived: look for that
    before you acquire anew and do it again. Where a body outlived its lock or lease, `result` is what it gave."""

    code: ClassVar[str] = "lost"
    result: object = None


class Claimed(LeaseholdError):
    """Somebody of higher priority waits for what is held. Finish early and give it back: it is not renewed meanwhile."""

    code: ClassVar[str] = "claimed"


class StoreUnavailable(LeaseholdError):
    """The store did not answer. Nothing is held by a call that was to get something; anything else may have been done or not, as a limit's
    `take` charged: `reserve` what must not be charged twice."""

    code: ClassVar[str] = "store_unavailable"


class Exhausted(LeaseholdError):
    """Nothing can be had now, and no waiting was wanted; or the pool has no slot that could ever come: add slots."""

    code: ClassVar[str] = "exhausted"


class Busy(LeaseholdError):
    """Too many are waiting, or have been for so long that there was no answer in time: come back later, with fewer at once. Where the
    message says that it may have been done, look first, as after `StoreUnavailable`."""

    code: ClassVar[str] = "busy"


class Insufficient(LeaseholdError):
    """The tokens do not reach the target: nothing was locked."""

    code: ClassVar[str] = "insufficient"


class LockedUntil(LeaseholdError):
    """Enough tokens are there, but locked by others: try again when they are released."""

    code: ClassVar[str] = "locked_until"


class Contended(LeaseholdError):
    """Enough tokens are there, but others were faster each time: nothing is locked, try again."""

    code: ClassVar[str] = "contended"


class NoFit(LeaseholdError):
    """Enough tokens are there, but no choice of them keeps to what the call allows: allow more tokens, or change."""

    code: ClassVar[str] = "no_fit"


class SourceUnavailable(LeaseholdError):
    """The source of tokens failed; `__cause__` says why. Nothing is locked."""

    code: ClassVar[str] = "source_unavailable"


class Limited(LeaseholdError):
    """Over the limit: nothing was taken, try again later."""

    code: ClassVar[str] = "limited"


class InvalidArgument(LeaseholdError, ValueError):
    """The call itself is wrong: correct it, trying again does not help."""

    code: ClassVar[str] = "invalid_argument"


class Stalled(LeaseholdError):
    """What a lease's `resync` and `read_nonce` found, of which an acquisition says `TimedOut` or `Exhausted`: the chain names a lower nonce
    than the record. Look at it, then resync."""

    code: ClassVar[str] = "stalled"


class NonceUnavailable(LeaseholdError):
    """The chain's nonce could not be read; `__cause__` says why."""

    code: ClassVar[str] = "nonce_unavailable"


class Internal(LeaseholdError):
    """A defect in leasehold: please report it. The library goes on working."""

    code: ClassVar[str] = "internal"


def _invalid(field: str, why: str) -> LeaseholdError:
    """For this half: an argument that is refused."""
    error = InvalidArgument(f"{field}: {why}")
    error.field = field
    return error


# For the compiled half, which makes errors where no code of Python may run: none of these has an `__init__` of its own.
_CLASSES = {it.code: it for it in LeaseholdError.__subclasses__()}
