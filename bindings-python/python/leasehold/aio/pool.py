"""Pools of slots, and leases of them."""

from __future__ import annotations

import builtins
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

from .. import _leasehold
from .._bodies import check
from .._settle import call, granted
from ..errors import Claimed, Lost
from ..options import AcquireManyOptions, AcquireOptions, Contention, Slot, TryAcquireOptions
from ..views import Census, Statistics
from ._face import Acquiring, Face, Held, under

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["Lease", "Pool"]

T = TypeVar("T")


class Pool(Face[_leasehold.Pool]):
    """Slots that are leased one holder at a time."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """The pool's name."""
        return self._core.name

    def acquire(self, **options: Unpack[AcquireOptions]) -> Acquiring[Lease]:
        """Leases one slot; waits for it until the timeout. For `async with`, or to be awaited. Keep the lease until it is given back: one
        that is forgotten ends at its deadline, and is nobody else's until then."""

        async def acquire() -> Lease:
            (lease,) = await granted(self._core.acquire(**options))
            return Lease(lease)

        return Acquiring(acquire())

    @overload
    async def run(self, body: Callable[[Lease], Awaitable[T]], **options: Unpack[AcquireOptions]) -> T: ...
    @overload
    async def run(self, body: Callable[[Lease], T], **options: Unpack[AcquireOptions]) -> T: ...
    async def run(self, body: Callable[[Lease], Any], **options: Unpack[AcquireOptions]) -> Any:
        """Runs the body, a coroutine function or a plain one, with a lease, and gives what it gives. The lease is given back then, with
        what the body said of the nonce. If it did not last as long, its slot may have been another's: that is `Lost`, with what the
        body gave as its `result`, or what it raised as its context; but what is no `Exception`, such as a cancellation, comes through
        with a note of that."""
        check(body, True)
        return await under(await self.acquire(**options), body)

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

    def recommended_ttl(self, **options: Unpack[Contention]) -> float | None:
        """The time to live, in seconds, that outlasts a chain of thieves with this confidence, by `handshake` of the statistics and
        the shortest time in which the store answered of late; None if nobody stole."""
        return self._core.recommended_ttl(**options)

    async def add(self, slots: Sequence[Slot]) -> int:
        """Adds slots, and gives those that are there the new weight. Gives the number of those that are new. This handle leases them only
        if it was opened without slots of its own."""
        return await call(self._core.add, slots)

    async def remove(self, slot: str) -> None:
        """Forgets a slot, and with it what is known of its nonce, after its lease if it has one: for a rest, disable it. It comes
        back if a process that names it opens the pool, or the store loses its memory while one does: take what must stay away out
        of every list."""
        await call(self._core.remove, slot)

    async def enable(self, slot: str) -> None:
        """Hands a slot out again. Ends a quarantine, not a cooldown."""
        await call(self._core.enable, slot)

    async def disable(self, slot: str) -> None:
        """Hands a slot out no more, also by its name, until `enable`; a lease that it has is not renewed."""
        await call(self._core.disable, slot)

    async def drain(self, slot: str) -> None:
        """Hands a slot out no more; a lease that it has may be renewed until it is given back. Then it is disabled."""
        await call(self._core.drain, slot)

    async def quarantine(self, slot: str, time: float) -> None:
        """Hands a slot out no more for so many seconds; its nonce is in doubt afterwards."""
        await call(self._core.quarantine, slot, time)

    async def break_lease(self, slot: str) -> None:
        """Ends the lease of a slot by force, for a holder that is known to be dead: one that lives believes in its lease until its
        next renewal, or to its deadline. The nonce is in doubt."""
        await call(self._core.break_lease, slot)

    async def inspect(self, slots: Sequence[str] | None = None) -> Census:
        """Counts the slots, and looks at those that are named (at most 1,000), as by `list()`; without them at none."""
        return await call(self._core.inspect, slots)

    async def list(self) -> builtins.list[str]:
        """The ids of all slots, in order."""
        return await call(self._core.list)


class Lease(Held[_leasehold.Lease]):
    """A slot that is this holder's alone until the deadline. Use it with `async with`: at the end of the block it is given back
    with the outcome that was said; a nonce of which nothing was said is in doubt from then on. `Lost` is raised if it did not last as
    long, with what the block raised as its context; but what is no `Exception`, such as a cancellation, comes through with a note of
    that. One that is forgotten, of which the program has the object no more, is not given back: it is renewed no more, and ends at its
    deadline, with a `ResourceWarning`."""

    __slots__ = ()

    @property
    def slot(self) -> str:
        """The slot's id as the pool's `slots` of this process spell it; of others `0x…` is in lower case."""
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
        """Says that the nonce was used. `next` is the next free one, the lease's own plus one if not given. Raises `Lost`, as the other
        three words do, once the lease was given back."""
        self._core.used(next)

    def unused(self) -> None:
        """Says that the nonce was not used and cannot be any more."""
        self._core.unused()

    def rejected(self, expected: int | None = None) -> None:
        """Says that the chain refused the nonce, and which one it expects if it said so, for the next holder, who is given that without
        a question: one that counts no pending transactions, as geth's `next nonce`, is not to be said. To go on under this lease,
        `read_nonce` or `resync` then gives another nonce to sign with."""
        self._core.rejected(expected)

    def unknown(self) -> None:
        """Says that nobody knows whether the nonce was used: the next holder asks the chain. Who sends several payments under one lease
        says it before each, and `used(next)` after it: the one whose answer is lost is doubt then, and those before it count."""
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
        Gives None if it ends first, or if `timeout` seconds have passed. Without `keepalive` the first call only begins to look: with a
        `timeout` of 0 it gives None."""
        return await call(self._core.claimed, timeout)

    async def release(self, cooldown: float | None = None) -> None:
        """Gives the slot back. A second call does nothing."""
        await call(self._core.release, cooldown)
