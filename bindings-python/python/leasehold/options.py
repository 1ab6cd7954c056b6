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

    retry_timeout: float | None
    """The `timeout` of the handle's pools, whose `ttl` is 5: 1 by default. Its locks have their own defaults."""

    redis: RedisConfig | None


class OpenOptions(TypedDict, total=False):
    """How a store is used."""

    namespace: str | None
    """Keeps apart what must not meet: put the chain's id into it, as in "eth:1". "leasehold" by default: then programs of two chains
    share accounts and nonces."""

    response_timeout: float | None
    """How long one reply of the store may take: 2 by default."""

    lock_ttl: float | None
    """The longest time to live of this handle's locks, and their default: 60 by default. The same in every process: it is how long a
    store that lost its memory, or was started a moment ago, grants no lock."""

    lock_ageing: float | None
    """The time of waiting that outweighs one step of a lock's `priority`; 0 by default: none does. The same in every process. A
    quorum of several servers has no line, and takes none."""


class QuorumLockOptions(TypedDict, total=False):
    """How a lock of a quorum is held."""

    ttl: float | None
    """Time to live without a renewal: by default `lock_ttl`, and at most that."""

    keepalive: bool | float | None
    """Whether the lock is renewed while it is held: True (at a third of `ttl`), the default, an interval, or False. Needs a `ttl`
    that is longer than the interval and `response_timeout` together."""

    max_hold: float | None
    """How long renewals may prolong the lock in all: 0 by default, for no bound. Then a body that never ends keeps it for as long as
    its process lives and reaches the store, as renewals need nothing of the body: until somebody ends it by `Lock.break_lease`."""

    timeout: float | None
    """How long an acquisition waits: 5 by default, 0 for one attempt."""

    reentrant: bool | None
    """Whether who acquires it while it is held through the same `Lock` shares in that, as it is held, and at once: False by default.
    The last who gives it back frees it. One that was lost is not joined, nor one that did not ask to be."""


class LockOptions(QuorumLockOptions, total=False):
    """How a lock is held."""

    priority: int | None
    """Of those who wait, the higher go before the lower, and equal ones in the order in which they came, in whatever
    process they are: 0 by default, in the middle of -32,767 to 32,767. With `lock_ageing` who waits long goes before them. Those
    who wait for a quorum have none."""

    steal: bool | None
    """Whether holders of lower priority are told to yield while it waits, see `Locked.claimed`: False by default."""

    stolen_consistency_factor: float | None
    """The part of `lock_ttl` for which they are waited for, from 0 to 1: 1 by default, to the end of their leases. With less two may
    think that they hold the lock, and only a resource that checks the fence tells them apart."""


class RunOptions(LockOptions, total=False):
    """How a body is run under a lock, where that differs from the lock's options."""

    if_: bool | None
    """False: the body runs without the lock, and gets None."""

    unless: bool | None
    """True: the body runs without the lock, and gets None."""


class _PoolOptions(TypedDict, total=False):
    slots: Sequence[Slot] | None
    """The slots of this process; without them it takes whatever the pool has."""

    ttl: float | None
    """Time to live of a lease: 30 by default, 0.001 to 7 days. The same in every process."""

    cooldown: float | None
    """How long a slot rests after a lease that is given back: 0 by default. After one that ends at its deadline, or is broken, it rests
    not."""

    strategy: Literal["random", "least_recent", "weighted"] | None
    """How to choose among the slots that are ready: "random" by default."""

    keepalive: bool | float | None
    """Whether leases are renewed while they are held: True (at a third of `ttl`), an interval, or False, the default. Needs a `ttl`
    that is longer than the interval and `response_timeout` together."""

    max_hold: float | None
    """How long renewals may prolong a lease in all, and the most that it lasts: by default 600, or `ttl` if that is longer; 0 for
    no bound."""

    doubt_rest: float | None
    """How long a slot whose nonce is in doubt rests before it is handed out again: 0 by default. The longest of all processes
    counts."""

    settle: float | None
    """How long the record outweighs a chain that names a lower nonce: 60 by default. The same in every process: the shortest counts."""

    timeout: float | None
    """How long an acquisition waits, where it does not say: 10 by default."""

    ageing: float | None
    """The time of waiting that outweighs one step of `priority`; 0 by default: none does. The same in every process that
    shares the pool."""


class PoolOptions(_PoolOptions, total=False):
    """What a pool is."""

    read_nonce: Callable[[Any], int] | None
    """Reads the next nonce of a slot's account from the chain, pending transactions counted."""


class AsyncPoolOptions(_PoolOptions, total=False):
    """What a pool is, with asyncio."""

    read_nonce: Callable[[Any], int | Awaitable[int]] | None
    """Reads the next nonce of a slot's account from the chain, pending transactions counted. A coroutine function runs on the loop that
    opened the pool, a plain one on a thread."""


class TryAcquireOptions(TypedDict, total=False):
    """What an acquisition wants that does not wait."""

    ttl: float | None
    """Time to live of the lease."""

    keepalive: bool | float | None
    """Whether the lease is renewed while it is held."""

    slots: Sequence[Slot] | None
    """Only these slots will do: those that are ready, in this order, and those in doubt last."""

    strategy: Literal["random", "least_recent", "weighted"] | None
    """How to choose among the slots that are ready. Not together with `slots`."""


class AcquireOptions(TryAcquireOptions, total=False):
    """What an acquisition wants, where it differs from the pool's options."""

    timeout: float | None
    """How long to wait; 0 for one attempt."""

    priority: int | None
    """Of those who wait, the higher go before the lower, and equal ones in the order in which they came, in whatever
    process they are: 0 by default, in the middle of -32,767 to 32,767."""

    steal: bool | None
    """Whether holders of lower priority are told to yield while it waits, see `Lease.claimed`: False by default."""

    stolen_consistency_factor: float | None
    """The part of the pool's `ttl` for which they are waited for: see `LockOptions`."""


class _Count(TypedDict):
    count: int
    """How many, all or none: 1 to 1,000."""


class AcquireManyOptions(_Count, AcquireOptions, total=False):
    """What an acquisition of several slots wants."""


class _Selecting(TypedDict, total=False):
    currency: str | None
    """Which currency is selected: the empty text by default. Up to 256 bytes."""

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
    """"first_fit_random", the default: the first that cover the target, in an order of this process's own. "fewest_inputs": the largest
    first. "exact": no change, or nothing. "smallest_sufficient": the smallest single token that covers the target. "best_fit": the
    fewest tokens, and none of them where a smaller one would do. "random_improve": at random until it is covered, then nearer to
    twice the target, so that change is as large as payments. "boltzmann": at random, the larger the likelier. "consolidate": the
    largest first, and some of the smallest besides. "oldest_first": by `since`."""

    ttl: float | None
    """Time to live without a renewal: 60 by default, 0.001 to 7 days; of a selection at most the wallet's."""

    keepalive: bool | float | None
    """Whether selections are renewed while they are held: True (at a third of `ttl`), the default, an interval, or False. Needs a
    `ttl` that is longer than the interval and `response_timeout` together."""

    timeout: float | None
    """How long a selection waits for what others have: 5 by default, 0 for one attempt."""

    max_inputs: int | None
    """The most tokens of a selection: 1,000 by default, 10,000 at most."""


class SelectOptions(_Selecting, total=False):
    """What one selection wants, where it differs from the wallet's options."""

    spender: str | None
    """Who spends, as listings show it: 32 hexadecimal digits are themselves, of any other text (a transaction's id) the first half of its
    SHA-256; a name of nobody else's by default. Whoever selects again under a name is not refused what that name holds
    by another handle of the wallet, as by another process, and takes it from that, which is told that it lost it; within one handle it
    is kept until that selection ends. It chooses anew: it may get other tokens."""


class _WalletOptions(_Selecting, total=False):
    max_age: float | None
    """How long after the source listed it a token is offered: 30 by default, 1 at least."""

    settle: float | None
    """How long tokens stay locked after they were spent: 60 by default, at most 7 days. `max_age`, for which what was listed is
    offered, and besides as long as the source may be late to hear of a spend."""

    max_attempts: int | None
    """The most tokens that a selection asks the store for before it begins anew: 50,000 by default."""

    max_rounds: int | None
    """How often a selection gives up what it has, pauses and begins anew: 10,000 times by default. A pause that is cut short because
    something came free does not count."""

    page: int | None
    """How many tokens the source is asked for at a time: 10,000 by default."""

    verify: bool | None
    """Whether the source is asked of what was had whether it is unspent: False by default."""


class _Source(TypedDict):
    source: TokenSource | ReadPage | TokensInMemory
    """Lists the unspent tokens."""


class TokensOptions(_Source, _WalletOptions, total=False):
    """How tokens of a wallet are selected: the same in every process that does."""


class _AsyncSource(TypedDict):
    source: AsyncTokenSource | AsyncReadPage | TokensInMemory
    """Lists the unspent tokens. Coroutine functions run on the loop that named the wallet, plain ones on a thread."""


class AsyncTokensOptions(_AsyncSource, _WalletOptions, total=False):
    """The same with asyncio."""


class _Max(TypedDict):
    max: int | str
    """The most at once and in a period: up to 10^15 of what refills, 1,000 of what is in flight, 2^256 - 1 of the others. A whole
    number, or its decimal digits."""


class LimitOptions(_Max, total=False):
    """What a limit allows, and how."""

    period: float | None
    """How long a full refill takes, or a window or a budget lasts: 1 µs to 366 days; 0 limits each request by itself. Only "lifetime"
    and "in_flight" do without, and take none."""

    kind: Literal["refill", "gcra", "rolling", "lifetime", "budget", "in_flight"] | None
    """"refill", the default: continuous, remaining = floor(min(max, max - used + max * elapsed / period)). "gcra": one every
    `period / max`, and a burst ahead of that. "rolling": at most `max` in any window of a period's length. "budget": so much in
    each period of the calendar, such as a day. "lifetime": so much, ever. "in_flight": so much at a time, by reservations."""

    burst: int | None
    """Of "gcra", the most at once: `max` by default."""

    offset: float | None
    """Of a budget, when its periods begin, counted from the Unix epoch: 0 by default. Seven days begin on a Thursday then."""

    outage: Literal["closed", "open"] | None
    """What is allowed while the store cannot be used, which a wrong password and a database that it refuses are too: "closed", nothing,
    the default; or "open", what this process would be allowed if it were alone. The store is not told of that: what is allowed may
    be up to one `max` more for each process."""

    scope: str | None
    """Limits of one scope can be charged as one, and are on one server of a cluster: one for all by default."""


class WaitOptions(TypedDict, total=False):
    """How a limit is waited for."""

    timeout: float | None
    """How long: 5 by default."""

    priority: int | None
    """Of those who wait in this process for the same limits, the higher go before the lower, and equal ones in the order in which they
    came: 0 by default, in the middle of -32,767 to 32,767."""


class Contention(TypedDict):
    """Who contends for a lock, or for the slots of a pool."""

    contenders: int
    """How many contend at once: 1 to 1,000,000,000."""

    levels: int
    """How many levels of priority they have: 1 to 65,536."""

    confidence: float
    """The part of all chains of thieves that shall end in time: above 0 and below 1."""


class Handshakes(Contention):
    """Who contends for a lock, and how long it takes to rob its holder."""

    handshake: float
    """How long one handshake takes, more than 0: a high quantile of what was measured, and not the mean."""

    round_trip: float
    """How long it takes to ask the store and have its answer."""

