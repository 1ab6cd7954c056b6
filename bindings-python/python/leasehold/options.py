"""The options of calls. Durations are in seconds, up to 365 days where nothing else is said; None is the same as not given. The
compiled half checks them all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal, TypedDict

from ._leasehold import TokensInMemory
from .sources import AsyncReadPage, AsyncTokenSource, ReadPage, TokenSource

__all__ = [
    "AcquireManyOptions",
    "AcquireOptions",
    "AsyncPoolOptions",
    "AsyncTokensOptions",
    "Contention",
    "Handshakes",
    "LimitOptions",
    "LockConfig",
    "LockOptions",
    "OpenOptions",
    "PoolOptions",
    "QuorumLockOptions",
    "RedisConfig",
    "RunOptions",
    "SelectOptions",
    "Slot",
    "SlotSpec",
    "TokensOptions",
    "TryAcquireOptions",
    "WaitOptions",
]


class _Id(TypedDict):
    id: str


class SlotSpec(_Id, total=False):
    """A slot and its weight, which the strategy "weighted" goes by: 1 to 255, 1 by default."""

    weight: int


Slot = str | SlotSpec


class RedisConfig(TypedDict):
    """Where Redis is."""

    endpoint: str


class _Mode(TypedDict):
    mode: Literal["segregated", "seggregated", "shared"]


class LockConfig(_Mode, total=False):
    """The lock block of a paymaster's configuration, as it stands."""

    # The `timeout` of the handle's pools, whose `ttl` is 5: 1 by default. Its locks have their own defaults.
    retry_timeout: float | None
    redis: RedisConfig | None


class OpenOptions(TypedDict, total=False):
    """How a store is used."""

    # Keeps apart what must not meet: put the chain's id into it, as in "eth:1".
    namespace: str | None
    # How long one reply of the store may take: 2 by default.
    response_timeout: float | None
    # The longest time to live of this handle's locks, and their default: 60 by default. The same in every process: it is how long a
    # store that lost its memory, or was started a moment ago, grants no lock.
    lock_ttl: float | None
    # The time of waiting that outweighs one step of a lock's `priority`; 0 by default: none does. The same in every process. A
    # quorum of several servers has no line, and takes none.
    lock_ageing: float | None


class QuorumLockOptions(TypedDict, total=False):
    """How a lock of a quorum is held."""

    # Time to live without a renewal: by default `lock_ttl`, and at most that.
    ttl: float | None
    # Whether the lock is renewed while it is held: True (at a third of `ttl`), the default, an interval, or False. Needs a `ttl`
    # that is longer than the interval and `response_timeout` together.
    keepalive: bool | float | None
    # How long an acquisition waits: 5 by default, 0 for one attempt.
    timeout: float | None
    # Whether who acquires it while it is held through the same `Lock` shares in that, as it is held, and at once: False by default.
    # The last who gives it back frees it. One that was lost is not joined, nor one that did not ask to be.
    reentrant: bool | None


class LockOptions(QuorumLockOptions, total=False):
    """How a lock is held."""

    # Of those who wait, the higher go before the lower, and equal ones in the order in which they came, in whatever
    # process they are: 0 by default, in the middle of -32,767 to 32,767. With `lock_ageing` who waits long goes before them. Those
    # who wait for a quorum have none.
    priority: int | None
    # Whether holders of lower priority are told to yield while it waits, see `Locked.claimed`: False by default.
    steal: bool | None
    # The part of `lock_ttl` for which they are waited for, from 0 to 1: 1 by default, to the end of their leases. With less two may
    # think that they hold the lock, and only a resource that checks the fence tells them apart.
    stolen_consistency_factor: float | None


class RunOptions(LockOptions, total=False):
    """How a body is run under a lock, where that differs from the lock's options."""

    # False: the body runs without the lock, and gets None.
    if_: bool | None
    # True: the same.
    unless: bool | None


class _PoolOptions(TypedDict, total=False):
    # The slots of this process; without them it takes whatever the pool has.
    slots: Sequence[Slot] | None
    # Time to live of a lease: 30 by default, 0.001 to 7 days. The same in every process.
    ttl: float | None
    # How long a slot rests after a lease: 0 by default.
    cooldown: float | None
    # How to choose among the slots that are ready: "random" by default.
    strategy: Literal["random", "least_recent", "weighted"] | None
    # Whether leases are renewed while they are held: True (at a third of `ttl`), an interval, or False, the default. Needs a `ttl`
    # that is longer than the interval and `response_timeout` together.
    keepalive: bool | float | None
    # How long renewals may prolong a lease in all: 600 by default, 0 for no bound.
    max_hold: float | None
    # How long a slot whose nonce is in doubt rests before it is handed out again: 0 by default.
    doubt_rest: float | None
    # How long the record outweighs a chain that names a lower nonce: 60 by default.
    settle: float | None
    # How long an acquisition waits, where it does not say: 10 by default.
    timeout: float | None
    # The time of waiting that outweighs one step of `priority`; 0 by default: none does. The same in every process that
    # shares the pool.
    ageing: float | None


class PoolOptions(_PoolOptions, total=False):
    """What a pool is."""

    # Reads the next nonce of a slot's account from the chain, pending transactions counted.
    read_nonce: Callable[[Any], int] | None


class AsyncPoolOptions(_PoolOptions, total=False):
    """What a pool is, with asyncio."""

    # As above; a coroutine function runs on the loop that opened the pool, a plain one on a thread.
    read_nonce: Callable[[Any], int | Awaitable[int]] | None


class TryAcquireOptions(TypedDict, total=False):
    """What an acquisition wants that does not wait."""

    # Time to live of the lease.
    ttl: float | None
    # Whether the lease is renewed while it is held.
    keepalive: bool | float | None
    # Only these slots will do: those that are ready, in this order, and those in doubt last.
    slots: Sequence[Slot] | None
    # Not together with `slots`.
    strategy: Literal["random", "least_recent", "weighted"] | None


class AcquireOptions(TryAcquireOptions, total=False):
    """What an acquisition wants, where it differs from the pool's options."""

    # How long to wait; 0 for one attempt.
    timeout: float | None
    # Of those who wait, the higher go before the lower, and equal ones in the order in which they came, in whatever
    # process they are: 0 by default, in the middle of -32,767 to 32,767.
    priority: int | None
    # Whether holders of lower priority are told to yield while it waits, see `Lease.claimed`: False by default.
    steal: bool | None
    # The part of the pool's `ttl` for which they are waited for: see `LockOptions`.
    stolen_consistency_factor: float | None


class AcquireManyOptions(AcquireOptions, total=False):
    """What an acquisition of several slots wants."""

    # How many, all or none: 1 by default, at most 1,000.
    count: int | None


class _Selecting(TypedDict, total=False):
    # Which currency is selected: the empty text by default. Up to 256 bytes.
    currency: str | None
    # "first_fit_random", the default: the first that cover the target, in an order of this process's own. "fewest_inputs": the largest
    # first. "exact": no change, or nothing. "smallest_sufficient": the smallest single token that covers the target. "best_fit": the
    # fewest tokens, and none of them where a smaller one would do. "random_improve": at random until it is covered, then nearer to
    # twice the target, so that change is as large as payments. "boltzmann": at random, the larger the likelier. "consolidate": the
    # largest first, and some of the smallest besides. "oldest_first": by `since`.
    strategy: (
        Literal[
            "first_fit_random",
            "fewest_inputs",
            "exact",
            "smallest_sufficient",
            "best_fit",
            "random_improve",
            "boltzmann",
            "consolidate",
            "oldest_first",
        ]
        | None
    )
    # Time to live without a renewal: 60 by default, 0.001 to 7 days; of a selection at most the wallet's.
    ttl: float | None
    # Whether selections are renewed while they are held: True (at a third of `ttl`), the default, an interval, or False. Needs a
    # `ttl` that is longer than the interval and `response_timeout` together.
    keepalive: bool | float | None
    # How long a selection waits for what others have: 5 by default, 0 for one attempt.
    timeout: float | None
    # The most tokens of a selection: 1,000 by default, 10,000 at most.
    max_inputs: int | None


class SelectOptions(_Selecting, total=False):
    """What one selection wants, where it differs from the wallet's options."""

    # Who spends, as listings show it: 32 hexadecimal digits are themselves, of any other text (a transaction's id) the first half of its
    # SHA-256; a name of nobody else's by default. Whoever selects again under a name takes the place of what it had before in another
    # process, which is told that it lost it.
    spender: str | None


class _WalletOptions(_Selecting, total=False):
    # How long after the source listed it a token is offered: 30 by default, 1 at least.
    max_age: float | None
    # How long tokens stay locked after they were spent: 60 by default, at most 7 days. `max_age`, for which what was listed is
    # offered, and besides as long as the source may be late to hear of a spend.
    settle: float | None
    # The most tokens that a selection asks the store for before it begins anew: 50,000 by default.
    max_attempts: int | None
    # How often a selection gives up what it has, pauses and begins anew: 10,000 times by default. A pause that is cut short because
    # something came free does not count.
    max_rounds: int | None
    # How many tokens the source is asked for at a time: 10,000 by default.
    page: int | None
    # Whether the source is asked of what was had whether it is unspent: False by default.
    verify: bool | None


class _Source(TypedDict):
    # Lists the unspent tokens.
    source: TokenSource | ReadPage | TokensInMemory


class TokensOptions(_Source, _WalletOptions, total=False):
    """How tokens of a wallet are selected: the same in every process that does."""


class _AsyncSource(TypedDict):
    # As above; coroutine functions run on the loop that named the wallet, plain ones on a thread.
    source: AsyncTokenSource | AsyncReadPage | TokensInMemory


class AsyncTokensOptions(_AsyncSource, _WalletOptions, total=False):
    """The same with asyncio."""


class _Max(TypedDict):
    # The most at once and in a period: up to 10^15 of what refills, 1,000 of what is in flight, 2^256 - 1 of the others. A whole
    # number, or its decimal digits.
    max: int | str


class LimitOptions(_Max, total=False):
    """What a limit allows, and how."""

    # How long a full refill takes, or a window or a budget lasts: 1 µs to 366 days; 0 limits each request by itself. Only "lifetime"
    # and "in_flight" do without, and take none.
    period: float | None
    # "refill", the default: continuous, remaining = floor(min(max, max - used + max * elapsed / period)). "gcra": one every
    # `period / max`, and a burst ahead of that. "rolling": at most `max` in any window of a period's length. "budget": so much in
    # each period of the calendar, such as a day. "lifetime": so much, ever. "in_flight": so much at a time, by reservations.
    kind: Literal["refill", "gcra", "rolling", "lifetime", "budget", "in_flight"] | None
    # Of "gcra", the most at once: `max` by default.
    burst: int | None
    # Of a budget, when its periods begin, after midnight UTC: 0 by default.
    offset: float | None
    # What is allowed while the store cannot be used, which a wrong password and a database that it refuses are too: "closed", nothing,
    # the default; or "open", what this process would be allowed if it were alone. The store is not told of that: what is allowed may
    # be up to one `max` more for each process.
    outage: Literal["closed", "open"] | None
    # Limits of one scope can be charged as one, and are on one server of a cluster: one for all by default.
    scope: str | None


class WaitOptions(TypedDict, total=False):
    """How a limit is waited for."""

    # How long: 5 by default.
    timeout: float | None
    # Of those who wait in this process for the same limits, the higher go before the lower, and equal ones in the order in which they
    # came: 0 by default, in the middle of -32,767 to 32,767.
    priority: int | None


class Contention(TypedDict):
    """Who contends for a lock, or for the slots of a pool."""

    # How many contend at once: 1 to 1,000,000,000.
    contenders: int
    # How many levels of priority they have: 1 to 65,536.
    levels: int
    # The part of all chains of thieves that shall end in time: above 0 and below 1.
    confidence: float


class Handshakes(Contention):
    """Who contends for a lock, and how long it takes to rob its holder."""

    # How long one handshake takes, more than 0: a high quantile of what was measured, and not the mean.
    handshake: float
    # How long it takes to ask the store and have its answer.
    round_trip: float
