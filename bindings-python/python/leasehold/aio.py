"""leasehold with asyncio: the same names, and what takes time is awaited.

    async with leasehold.aio.open("redis://127.0.0.1:6379", namespace="eth:1") as lh:
        pool = await lh.pool("relayers", slots=addresses)
        async with pool.acquire(timeout=1.0) as lease:
            ...

A task that is cancelled while it acquires or selects leaves nothing held; one that waits for a limit gives that up.
"""

from __future__ import annotations

import builtins
import inspect
import sys
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, overload

from . import _leasehold
from ._settle import call, granted, outlived
from .errors import Claimed, LeaseholdError, Lost
from .options import (
    AcquireManyOptions,
    AcquireOptions,
    AsyncPoolOptions,
    AsyncTokensOptions,
    LimitOptions,
    LockConfig,
    LockOptions,
    OpenOptions,
    QuorumLockOptions,
    RunOptions,
    SelectOptions,
    Slot,
    TryAcquireOptions,
    WaitOptions,
)
from .sources import TokenChange
from .views import Census, LimitAnswer, LockedToken, Statistics, Token, TokenCounts

if TYPE_CHECKING:
    if sys.version_info >= (3, 11):
        from typing import Self, Unpack
    else:
        from typing_extensions import Self, Unpack

__all__ = [
    "Acquiring",
    "Lease",
    "Leasehold",
    "Limit",
    "Lock",
    "Locked",
    "Pool",
    "Quorum",
    "Reservation",
    "Selection",
    "Tokens",
    "open",
    "open_quorum",
]

T = TypeVar("T")
C = TypeVar("C")
O = TypeVar("O", bound="_Open")
G = TypeVar("G", bound="_Granted")
H = TypeVar("H", bound="_Held[Any]")


class _Open(Protocol):
    def close(self) -> None: ...


class _Granted(Protocol):
    def __exit__(self, *exception: object) -> None: ...


def open(url: str | LockConfig | None = None, **options: Unpack[OpenOptions]) -> Leasehold:
    """Opens a store: a URL ("memory:", the default; "memory:name"; "redis://…"), or the lock block of a paymaster's
    configuration. Does not connect yet."""
    return Leasehold(_leasehold.open_aio(url, **options))


def open_quorum(servers: Sequence[str], **options: Unpack[OpenOptions]) -> Quorum:
    """Opens independent servers, 1 to 9, of which a majority must grant each lock. Does not connect yet. The options, `lock_ttl`
    among them, are the same in every process."""
    return Quorum(_leasehold.open_quorum_aio(servers, **options))


class _Face(Generic[C]):
    """An object here: the face of one of the core."""

    __slots__ = ("_core",)

    def __init__(self, core: C) -> None:
        self._core = core

    def __repr__(self) -> str:
        return repr(self._core)


class _Opened(_Face[O]):
    """What is closed at the end of a block."""

    __slots__ = ()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._core.close()


class _Held(_Face[G]):
    """What is given back at the end of a block."""

    __slots__ = ()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            await call(self._core.__exit__, kind, error, traceback)
        except LeaseholdError:
            # The error of the block is the one to be seen.
            if kind is None:
                raise


class Leasehold(_Opened[_leasehold.Leasehold]):
    """An open store. Opens pools, locks, limits and wallets; use it with `async with`, or call `close()`."""

    __slots__ = ()

    async def pool(self, name: str, **options: Unpack[AsyncPoolOptions]) -> Pool:
        """Opens a pool of slots; makes it if it is not there yet. A coroutine function as `read_nonce` runs on this loop."""
        return Pool(await call(self._core.pool, name, **options))  # type: ignore[arg-type]  # may be a coroutine function

    def lock(self, names: str | Sequence[str], **options: Unpack[LockOptions]) -> Lock:
        """A lock of one name, or of several that are held together or not at all. Asks nothing of the store yet."""
        return Lock(self._core.lock(names, **options))

    def limit(self, name: str, **options: Unpack[LimitOptions]) -> Limit:
        """A limit of this name: a rate, a budget, or what may be in flight. Asks nothing of the store yet. Limits of one name and
        kind share what was used, in whatever process they are, and whatever their options."""
        return Limit(self._core.limit(name, **options))

    def group(self, limits: Sequence[Limit | None]) -> Limit:
        """Limits of this handle and of one scope that are charged as one, all of them or none. None is left out, a group can be a
        member, and what is there twice is charged once."""
        cores: Any = limits
        if isinstance(limits, Sequence):
            # What is no limit is refused, and named, by the compiled half.
            cores = [it._core if isinstance(it, Limit) else it for it in limits]
        return Limit(self._core.group(cores))

    def tokens(self, wallet: str, **options: Unpack[AsyncTokensOptions]) -> Tokens:
        """The tokens of a wallet, which a source lists. Asks nothing of the store nor of the source yet. Any number of processes select
        from one wallet, by the same options; a token is in one wallet, under one name. Names have up to 256 bytes. Coroutine functions
        of the source run on this loop."""
        return Tokens(self._core.tokens(wallet, **options))  # type: ignore[arg-type]  # there may be coroutine functions

    async def close(self) -> None:
        """Opens no more pools and limits, and ends calls that wait for them with `Cancelled`. Leases that are held stay held until
        they are given back."""
        self._core.close()


class Quorum(_Opened[_leasehold.Quorum]):
    """Independent servers that grant locks by majority; see `leasehold.Quorum`. Use it with `async with`, or call `close()`."""

    __slots__ = ()

    def lock(self, names: str | Sequence[str], **options: Unpack[QuorumLockOptions]) -> Lock:
        """A lock of one name, or of several that are held together or not at all. Asks nothing of the servers yet."""
        return Lock(self._core.lock(names, **options))

    async def close(self) -> None:
        """Ends acquisitions that wait with `Cancelled`. Locks that are held stay held until they are given back."""
        self._core.close()


class Pool(_Face[_leasehold.Pool]):
    """Slots that are leased one holder at a time."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """The pool's name."""
        return self._core.name

    def acquire(self, **options: Unpack[AcquireOptions]) -> Acquiring[Lease]:
        """Leases one slot; waits for it until the timeout. For `async with`, or to be awaited."""

        async def acquire() -> Lease:
            (lease,) = await granted(self._core.acquire(**options))
            return Lease(lease)

        return Acquiring(acquire)

    async def acquire_many(self, **options: Unpack[AcquireManyOptions]) -> builtins.list[Lease]:
        """Leases `count` slots at once: all of them or none."""
        return [Lease(lease) for lease in await granted(self._core.acquire_many(**options))]

    def try_acquire(self, **options: Unpack[TryAcquireOptions]) -> Lease | None:
        """Leases one slot at once, or gives None. For stores in memory; `read_nonce` is not asked."""
        lease = self._core.try_acquire(**options)
        return None if lease is None else Lease(lease)

    def statistics(self) -> Statistics:
        """What this handle of the pool has done so far."""
        return self._core.statistics()

    async def add(self, slots: Sequence[Slot]) -> int:
        """Adds slots. Gives the number of those that are new."""
        return await call(self._core.add, slots)

    async def remove(self, slot: str) -> None:
        """Forgets a slot, after its lease if it has one."""
        await call(self._core.remove, slot)

    async def enable(self, slot: str) -> None:
        """Hands a slot out again. Ends a quarantine, not a cooldown."""
        await call(self._core.enable, slot)

    async def disable(self, slot: str) -> None:
        """Hands a slot out no more; a lease that it has is not renewed."""
        await call(self._core.disable, slot)

    async def drain(self, slot: str) -> None:
        """Hands a slot out no more; a lease that it has may be renewed until it is given back."""
        await call(self._core.drain, slot)

    async def quarantine(self, slot: str, time: float) -> None:
        """Hands a slot out no more for so many seconds; its nonce is in doubt afterwards."""
        await call(self._core.quarantine, slot, time)

    async def break_lease(self, slot: str) -> None:
        """Ends the lease of a slot by force; its nonce is in doubt."""
        await call(self._core.break_lease, slot)

    async def inspect(self, slots: Sequence[str] | None = None) -> Census:
        """Counts the slots, and looks at those that are named."""
        return await call(self._core.inspect, slots)

    async def list(self) -> builtins.list[str]:
        """The ids of all slots, in order."""
        return await call(self._core.list)


class Acquiring(AbstractAsyncContextManager[H, None], Generic[H]):
    """An acquisition that begins when it is awaited, or entered with `async with`."""

    __slots__ = ("_acquire", "_held")

    def __init__(self, acquire: Callable[[], Coroutine[Any, Any, H]]) -> None:
        self._acquire = acquire
        self._held: H | None = None

    def __await__(self) -> Generator[Any, Any, H]:
        return self._acquire().__await__()

    async def __aenter__(self) -> H:
        self._held = await self._acquire()
        return self._held

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._held is not None:
            await self._held.__aexit__(kind, error, traceback)


class Lease(_Held[_leasehold.Lease]):
    """A slot that is this holder's alone until the deadline. Use it with `async with`: at the end of the block it is given back
    with the outcome that was said; a nonce of which nothing was said is in doubt from then on."""

    __slots__ = ()

    @property
    def slot(self) -> str:
        """The slot's id, as this process spelled it."""
        return self._core.slot

    @property
    def fence(self) -> int:
        """Larger than that of any lease of this slot before: what a resource checks to refuse a late holder."""
        return self._core.fence

    @property
    def nonce(self) -> int | None:
        """The nonce to sign with; None where it is not known or in doubt, and the chain must be asked."""
        return self._core.nonce

    @property
    def in_doubt(self) -> bool:
        """Whether an earlier holder may have used a nonce and did not say so: ask the chain, then resync."""
        return self._core.in_doubt

    @property
    def remaining(self) -> float:
        """For how many seconds the lease can still be relied on; 0.0 when it cannot."""
        return self._core.remaining

    @property
    def held(self) -> bool:
        """Whether the lease can still be relied on."""
        return self._core.held

    def used(self, next: int | None = None) -> None:
        """Says that the nonce was used. `next` is the next free one, the lease's own plus one if not given."""
        self._core.used(next)

    def unused(self) -> None:
        """Says that the nonce was not used and cannot be any more."""
        self._core.unused()

    def rejected(self, expected: int | None = None) -> None:
        """Says that the chain refused the nonce, and which one it expects if it said so."""
        self._core.rejected(expected)

    def unknown(self) -> None:
        """Says that nobody knows whether the nonce was used: the next holder asks the chain."""
        self._core.unknown()

    async def renew(self, ttl: float | None = None) -> None:
        """Prolongs the lease to `ttl` seconds from now, the pool's if not given, within its `max_hold`."""
        await call(self._core.renew, ttl)

    async def resync(self, nonce: int, rewind: bool = False) -> int:
        """Records the next nonce that the chain names, and makes it the lease's."""
        return await call(self._core.resync, nonce, rewind)

    async def read_nonce(self) -> int:
        """Reads the nonce from the chain through the pool's `read_nonce`, and records it."""
        return await call(self._core.read_nonce)

    async def lost(self, timeout: float | None = None) -> Lost | None:
        """Waits until the lease can no longer be relied on, and gives the error that says why. Gives None if it was given back in
        time, or if `timeout` seconds have passed."""
        return await call(self._core.lost, timeout)

    async def claimed(self, timeout: float | None = None) -> Claimed | None:
        """Waits until somebody of higher priority claims the slot, and gives the error that says so: finish early and give it back.
        Gives None if it ends first, or if `timeout` seconds have passed."""
        return await call(self._core.claimed, timeout)

    async def release(self, cooldown: float | None = None) -> None:
        """Gives the slot back. A second call does nothing."""
        await call(self._core.release, cooldown)


class Lock(_Face[_leasehold.Lock]):
    """One name, or several that are held together or not at all. Nothing of them stays behind in the store."""

    __slots__ = ()

    @property
    def handshake(self) -> float:
        """For how many seconds holders of this handle's locks took to yield of late to those who steal, at the longest; 0.0 if nobody
        stole. What `recommended_ttl` asks for."""
        return self._core.handshake

    def acquire(self, **options: Unpack[LockOptions]) -> Acquiring[Locked]:
        """Locks all of its names; waits for them until the timeout. For `async with`, or to be awaited."""

        async def acquire() -> Locked:
            return Locked(await call(self._core.acquire, **options))

        return Acquiring(acquire)

    @overload
    async def run(self, body: Callable[[Locked], Awaitable[T]], **options: Unpack[LockOptions]) -> T: ...
    @overload
    async def run(self, body: Callable[[Locked | None], Awaitable[T]], **options: Unpack[RunOptions]) -> T: ...
    @overload
    async def run(self, body: Callable[[Locked], T], **options: Unpack[LockOptions]) -> T: ...
    @overload
    async def run(self, body: Callable[[Locked | None], T], **options: Unpack[RunOptions]) -> T: ...
    async def run(self, body: Callable[[Any], Any], **options: Unpack[RunOptions]) -> Any:
        """Runs the body, a coroutine function or a plain one, under the lock, and gives what it gives. If the lock did not last as
        long, others may have run beside it: that is `Lost`, with what the body gave as its `result`, or what it raised as its
        context."""
        core = await call(self._core._enter, body, **options)
        if core is None:
            return await _ended(body(None))
        with outlived() as gave:
            async with Locked(core) as locked:
                gave.append(await _ended(body(locked)))
        return gave[0]


class Locked(_Held[_leasehold.Locked]):
    """A lock that is held. Use it with `async with`: at the end of the block it is given back, and `Lost` is raised if it did not
    last as long."""

    __slots__ = ()

    @property
    def names(self) -> builtins.list[str]:
        """Its names, as the caller spelled them."""
        return self._core.names

    @property
    def fence(self) -> int:
        """Larger than that of any lock before: what a resource checks to refuse a late holder."""
        return self._core.fence

    @property
    def remaining(self) -> float:
        """For how many seconds the lock can still be relied on; 0.0 when it cannot."""
        return self._core.remaining

    @property
    def held(self) -> bool:
        """Whether the lock can still be relied on."""
        return self._core.held

    async def lost(self, timeout: float | None = None) -> Lost | None:
        """Waits until the lock can no longer be relied on, and gives the error that says why. Gives None if it was given back in
        time, or if `timeout` seconds have passed."""
        return await call(self._core.lost, timeout)

    async def claimed(self, timeout: float | None = None) -> Claimed | None:
        """Waits until somebody of higher priority claims the lock, and gives the error that says so: finish early and give it back.
        Gives None if it ends first, or if `timeout` seconds have passed."""
        return await call(self._core.claimed, timeout)

    async def release(self) -> None:
        """Gives the lock back. A second call does nothing."""
        await call(self._core.release)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # One that did not last as long is told in any case, with the error of the block as its context.
        await call(self._core.__exit__, kind, error, traceback)


class Tokens(_Face[_leasehold.Tokens]):
    """The tokens of one wallet."""

    __slots__ = ()

    @property
    def wallet(self) -> str:
        """The wallet's name."""
        return self._core.wallet

    def select(self, target: int | str, **options: Unpack[SelectOptions]) -> Acquiring[Selection]:
        """Selects tokens that are worth at least `target`, and locks them; a target of 0 selects none. For `async with`, or to be awaited.
        Nothing is locked where it is cancelled, or raises: `Insufficient` (counted without any lock, after a look at the source),
        `LockedUntil`, `Contended`, `NoFit`, `TimedOut`, `SourceUnavailable` (with what the source raised as its cause),
        `StoreUnavailable`, `Cancelled` if the handle is closed."""

        async def select() -> Selection:
            return Selection(await call(self._core.select, target, **options))

        return Acquiring(select)

    def hear(self, change: TokenChange, currency: str | None = None) -> None:
        """Hears what the source tells, of a currency or of the wallet's own: that a token was added, or spent; that every change is told
        of from now on; that changes may have been missed."""
        self._core.hear(change, currency)

    async def locks(self, ids: Sequence[str]) -> builtins.list[LockedToken]:
        """Who has which of these tokens locked, since when and until when: at most 1,000, of whatever currency."""
        return await call(self._core.locks, ids)

    async def count_locked(self) -> int:
        """How many tokens of the wallet are locked, by anybody."""
        return await call(self._core.count_locked)

    def counts(self) -> TokenCounts:
        """What the selections of this handle asked for so far."""
        return self._core.counts()

    def statistics(self) -> Statistics:
        """What this handle has done so far."""
        return self._core.statistics()


class Selection(_Held[_leasehold.Selection]):
    """Tokens that are this caller's alone, and worth at least what was asked for. Say that they are `spent`. Use it with `async with`: at
    the end of the block they are given back, unless they were spent; so are those that nobody has any more."""

    __slots__ = ()

    @property
    def tokens(self) -> builtins.list[Token]:
        """The tokens, each with its fence."""
        return self._core.tokens

    @property
    def sum(self) -> int:
        """What the tokens are worth."""
        return self._core.sum

    @property
    def change(self) -> int:
        """What they are worth above the target."""
        return self._core.change

    @property
    def fence(self) -> int:
        """The largest of the tokens' fences; 0 if there is none."""
        return self._core.fence

    @property
    def remaining(self) -> float:
        """For how many seconds all of them can still be relied on; 0.0 when one cannot, infinite if there is no token."""
        return self._core.remaining

    @property
    def held(self) -> bool:
        """Whether all of them can still be relied on."""
        return self._core.held

    async def lost(self, timeout: float | None = None) -> Lost | None:
        """Waits until one of them can no longer be relied on, and gives the error that says why. Gives None if they were given back or
        spent in time, or if `timeout` seconds have passed."""
        return await call(self._core.lost, timeout)

    async def renew(self) -> None:
        """Prolongs all of them to their time to live from now. `Lost` if one of them is."""
        await call(self._core.renew)

    async def release(self) -> None:
        """Gives all of them back. A second call does nothing. `Lost` if one of them had been lost before."""
        await call(self._core.release)

    async def spent(self) -> None:
        """Says that they are spent: they stay locked for the wallet's `settle`, until the spend is visible to all. A second call does
        nothing. `Lost` if one of them was lost before, and others may have spent it; with `StoreUnavailable` they stay locked for what
        is left of their time to live."""
        await call(self._core.spent)


class Limit(_Face[_leasehold.Limit]):
    """A limit, or several that are charged as one: all of them or none. A cost is a whole number from 0 to 2^256 - 1, or its decimal
    digits. `StoreUnavailable` says that a limit cannot be asked, which allows nothing unless its `outage` is open."""

    __slots__ = ()

    async def take(self, cost: int | str = 1) -> LimitAnswer:
        """Charges a cost, if all limits allow it, and says so. A refused attempt is not charged. A cost of 0 is allowed, and brings
        the limit up to this time before its options change. Of what is in flight is taken by `reserve`."""
        return await call(self._core.take, cost)

    async def increment(self, cost: int | str = 1) -> bool:
        """The same as a truth value."""
        return await call(self._core.increment, cost)

    async def increment_or_fail(self, cost: int | str = 1) -> LimitAnswer:
        """The same, where a refusal is `Limited`."""
        return await call(self._core.increment_or_fail, cost)

    async def peek(self, cost: int | str = 1) -> LimitAnswer:
        """Whether a cost would be allowed, when, and what remains. Nothing is charged."""
        return await call(self._core.peek, cost)

    async def exceeded(self, cost: int | str = 1) -> bool:
        """Whether a cost would be refused."""
        return await call(self._core.exceeded, cost)

    async def limit_exceeded(self, cost: int | str = 1) -> str | None:
        """The name of the limit that refuses a cost; None if none does."""
        return await call(self._core.limit_exceeded, cost)

    async def remaining(self) -> int:
        """What can still be taken; of several limits, of that of which least remains."""
        return await call(self._core.remaining)

    async def used(self) -> int:
        """What is used of the limit of which least remains."""
        return await call(self._core.used)

    async def refund(self, cost: int | str = 1) -> LimitAnswer:
        """Gives back what was taken a moment ago: what has been refilled since is there already. To give back later, and once,
        reserve it."""
        return await call(self._core.refund, cost)

    async def decrement(self, cost: int | str = 1) -> LimitAnswer:
        """The same under the name that other libraries have for it."""
        return await call(self._core.decrement, cost)

    async def reset(self) -> None:
        """Makes the limit as if it was never used."""
        await call(self._core.reset)

    def reserve(self, cost: int | str = 1, *, ttl: float) -> Acquiring[Reservation]:
        """Takes a cost for `ttl` seconds at most, 0.001 to 7 days, in which it can be given back, once; if nobody does so, it stays
        charged. What is in flight is so until the reservation ends. A refusal is `Limited`, an outage always `StoreUnavailable`. For
        `async with`, or to be awaited."""

        async def reserve() -> Reservation:
            return Reservation(await call(self._core.reserve, cost, ttl=ttl))

        return Acquiring(reserve)

    async def wait(self, cost: int | str = 1, **options: Unpack[WaitOptions]) -> LimitAnswer:
        """Waits until a cost is allowed, and charges it. `TimedOut` if that did not come about in time, `Limited` if it never will,
        `Cancelled` if the handle is closed."""
        return await call(self._core.wait, cost, **options)

    def wait_to_reserve(self, cost: int | str = 1, *, ttl: float, **options: Unpack[WaitOptions]) -> Acquiring[Reservation]:
        """Waits as `wait` does until a cost can be reserved for `ttl` seconds. For `async with`, or to be awaited."""

        async def reserve() -> Reservation:
            return Reservation(await call(self._core.wait_to_reserve, cost, ttl=ttl, **options))

        return Acquiring(reserve)

    def at_cost(self, cost: int | str) -> Limit:
        """The same, of which every take charges so much, whatever the cost that is said: in a group, a request counts one and costs
        its gas."""
        return Limit(self._core.at_cost(cost))


class Reservation(_Held[_leasehold.Reservation]):
    """What was taken of limits and can be given back once, until its time has passed. Use it with `async with`: what was not given
    back in the block stays charged at its end, and what is in flight lands. So it does where nobody has it any more."""

    __slots__ = ()

    @property
    def answer(self) -> LimitAnswer:
        """What the limits said."""
        return self._core.answer

    async def commit(self) -> None:
        """Ends it: what it charged stays charged. `Lost` if it has ended already; with `StoreUnavailable` it is tried on for half a
        minute, and stays charged in any case."""
        await call(self._core.commit)

    async def refund(self) -> None:
        """Ends it: what it charged is given back, as far as it still counts. `Lost` if it has ended already or its time has passed:
        then it stays charged. With `StoreUnavailable` it is tried on for half a minute."""
        await call(self._core.refund)


async def _ended(given: Any) -> Any:
    """What a body gave: a coroutine is awaited."""
    return await given if inspect.isawaitable(given) else given
