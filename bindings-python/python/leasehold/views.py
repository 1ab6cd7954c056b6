"""What pools tell of themselves. Durations are in seconds."""

from __future__ import annotations

from typing import Literal, TypedDict

__all__ = ["Census", "SlotState", "Statistics"]


class SlotState(TypedDict):
    """One slot."""

    slot: str
    mode: Literal["enabled", "draining", "disabled", "removing"]
    state: Literal["ready", "leased", "cooling", "out"]
    weight: int
    # Of the latest lease.
    fence: int
    holder: str
    # The lowest nonce that may be free, if one is known.
    nonce: int | None
    in_doubt: bool
    # How long its lease or its rest still lasts.
    left: float


class Census(TypedDict):
    """How many slots a pool has, and where they are."""

    total: int
    # Those that can be claimed now, and how many of them have a nonce in doubt.
    ready: int
    in_doubt: int
    # Those that are leased or rest.
    busy: int
    # How long nothing is granted because the store may have lost leases; 0.0 normally.
    quiet: float
    # Those that were asked for and are there.
    slots: list[SlotState]


class Statistics(TypedDict):
    """What one handle of a pool has done so far."""

    # Leases that are held now, and callers that wait now.
    leased: int
    waiting: int
    granted: int
    # Leases that were given back, in time or too late.
    ended: int
    # Acquisitions that ended without a lease.
    refused: int
    # Leases that ran out before they were given back.
    expired: int
    # Leases that were found lost when they were renewed or given back.
    lost: int
    # Leases that came with their nonce in doubt.
    in_doubt: int
    # Half of the acquisitions, 99 of 100, and all of them waited at most so long.
    wait_p50: float
    wait_p99: float
    wait_max: float
    # The longest time of late from telling holders to yield until who steals had what it wanted.
    handshake: float
