"""Locks of names."""

from __future__ import annotations

import builtins
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar, overload

from .. import _leasehold
from .._bodies import check
from .._settle import call, granted
from ..errors import Claimed, Lost
from ..options import Contention, LockOptions, RunOptions
from ..views import LockState
from ._face import Acquiring, Face, Held, ended, under

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["Lock", "Locked"]

T = TypeVar("T")


class Lock(Face[_leasehold.Lock]):
    """One name, or several that are held together or not at all. Nothing of them stays behind in the store."""

    __slots__ = ()

    @property
    def handshake(self) -> float:
        """For how many seconds holders of this handle's locks took to yield of late to those who steal, at the longest; 0.0 if nobody
        stole. What `recommended_ttl` goes by."""
        return self._core.handshake

    def recommended_ttl(self, **options: Unpack[Contention]) -> float | None:
        """The time to live, in seconds, that outlasts a chain of thieves with this confidence, by the longest `handshake` and the
        shortest time in which the store answered of late; None if nobody stole."""
        return self._core.recommended_ttl(**options)

    async def inspect(self) -> builtins.list[LockState]:
        """Looks at each of its names, in their order: whether somebody holds it, in whatever process. Of a quorum's lock each server is
        asked through a handle of its own."""
        return await call(self._core.inspect)

    async def break_lease(self) -> None:
        """Ends by force what is held of its names, for a holder that is known to be dead: one that lives believes in its lock until its
        next renewal, or to its deadline. A quorum's ends at all servers, of which a majority must answer."""
        await call(self._core.break_lease)

    def acquire(self, **options: Unpack[LockOptions]) -> Acquiring[Locked]:
        """Locks all of its names; waits for them until the timeout. For `async with`, or to be awaited. Keep what it gives until it is
        given back: a lock that is forgotten is renewed no more, and ends at its deadline."""

        async def acquire() -> Locked:
            (locked,) = await granted(self._core.acquire(**options))
            return Locked(locked)

        return Acquiring(acquire())

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
        context; but what is no `Exception`, such as a cancellation, comes through with a note of that."""
        check(body, True)
        held = await granted(self._core._enter(**options))
        return await (under(Locked(held.pop()), body) if held else ended(body(None)))


class Locked(Held[_leasehold.Locked]):
    """A lock that is held. Use it with `async with`: at the end of the block it is given back, and `Lost` is raised if it did not
    last as long, as with a lease. One that is forgotten, of which the program has the object no more, is not given back: it is renewed
    no more, and ends at its deadline, with a `ResourceWarning`."""

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
        Gives None if it ends first, or if `timeout` seconds have passed. Without `keepalive` the first call only begins to look: with a
        `timeout` of 0 it gives None."""
        return await call(self._core.claimed, timeout)

    async def renew(self, ttl: float | None = None) -> None:
        """Prolongs the lock to `ttl` seconds from now, the handle's `lock_ttl` if not given, within its `max_hold`. All of its
        names, of a quorum's at a majority of the servers: raises `Lost` if one of them is."""
        await call(self._core.renew, ttl)

    async def release(self) -> None:
        """Gives the lock back. A second call does nothing."""
        await call(self._core.release)
