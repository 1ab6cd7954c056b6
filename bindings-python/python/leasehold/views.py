"""What stores, pools, wallets and limits tell. Durations are in seconds."""

from __future__ import annotations

from typing import Literal, TypedDict

from ._leasehold import LimitAnswer

__all__ = ["Census", "Finding", "LimitAnswer", "LockState", "LockedToken", "SlotState", "Statistics", "Token", "TokenCounts"]


class _OfServer(TypedDict, total=False):
    server: int
    """Which of a quorum's servers it is about, from 0 on, in the order in which they were given; not there for one store."""


class Finding(_OfServer):
    """One thing that was found of a store."""

    check: Literal["store", "version", "policy", "persistence", "role", "clock", "rights", "push"]
    """What was looked at: `store` is one in memory, or a server of a quorum that does not answer."""

    verdict: Literal["ok", "warning", "error", "unknown"]
    """`unknown` where the server does not say, as some that are managed; with `warning` it works, and the message says what is lost."""

    message: str
    """What was found and what to do, in one or two sentences; never a password."""


class SlotState(TypedDict):
    """One slot."""

    slot: str
    mode: Literal["enabled", "draining", "disabled", "removing"]
    state: Literal["ready", "leased", "offered", "cooling", "out"]
    weight: int
    fence: int
    """Of the latest lease: its `Lease.fence`."""

    holder: str
    """Of the latest lease: random, another at each acquisition, and shown by no lease."""

    nonce: int | None
    """The lowest nonce that may be free, if one is known."""

    in_doubt: bool
    left: float
    """How long its lease or its rest still lasts."""


class Census(TypedDict):
    """How many slots a pool has, and where they are."""

    total: int
    ready: int
    """Those that can be claimed now."""

    in_doubt: int
    """Those of them whose nonce is in doubt."""

    busy: int
    """Those that are leased or rest."""

    quiet: float
    """How long nothing is granted because the store may have lost leases; 0.0 normally."""

    slots: list[SlotState]
    """Those that were asked for and are there."""


class Statistics(TypedDict):
    """What one handle of a pool, or of a wallet's selections, has done since it was opened."""

    leased: int
    """Leases that are held now."""

    waiting: int
    """Callers that wait now."""

    granted: int
    ended: int
    """Leases that were given back, in time or too late."""

    refused: int
    """Acquisitions that ended without a lease, time-outs among them."""

    expired: int
    """Those of `lost` that ran out."""

    lost: int
    """Leases that were found lost before they were given back, or as they were."""

    in_doubt: int
    """Leases that came with their nonce in doubt."""

    wait_p50: float
    """Half of those that were granted waited at most so long."""

    wait_p99: float
    """99 of 100 of those that were granted waited at most so long."""

    wait_max: float
    """Of those that were granted none waited longer."""

    handshake: float
    """The longest time of late from telling holders to yield until who steals had what it wanted."""


class Token(TypedDict):
    """A token of a selection."""

    id: str
    amount: int
    since: int
    """Its age, as the source says it."""

    fence: int
    """Larger than that of any lock of the token before: what a resource checks to refuse a late holder."""


class LockedToken(TypedDict):
    """A token that somebody has locked."""

    id: str
    holder: str
    """The spender, as 32 hexadecimal digits."""

    fence: int
    since: float
    """Since when, by the store's clock, in seconds since the Unix epoch."""

    left: float
    """How long the lock still lasts without a renewal."""


class LockState(TypedDict):
    """One name of a lock. Who holds it is None if nobody does."""

    name: str
    held: bool
    holder: str | None
    """Whoever holds it, as 32 hexadecimal digits: another at each acquisition."""

    fence: int | None
    since: float | None
    """Since when, by the store's clock, in seconds since the Unix epoch."""

    left: float
    """How long it is still held without a renewal; 0.0 if it is not."""


class TokenCounts(TypedDict):
    """What the selections of a handle asked for so far."""

    pages: int
    """Pages of the source."""

    claims: int
    """Claims: requests to the store."""

    asked: int
    """The tokens of all claims."""

    missed: int
    """Those of them that others had."""
