"""Limits, and what is reserved of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _leasehold
from .._settle import call, granted
from ..options import WaitOptions
from ..views import LimitAnswer
from ._face import Acquiring, Face, Held

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["Limit", "Reservation"]


class Limit(Face[_leasehold.Limit]):
    """A limit, or several that are charged as one: all of them or none. A cost is a whole number from 0 to 2^256 - 1, or its decimal
    digits. `StoreUnavailable` says that a limit cannot be asked, which allows nothing unless its `outage` is open."""

    __slots__ = ()

    async def take(self, cost: int | str = 1) -> LimitAnswer:
        """Charges a cost, if all limits allow it, and says so: the answer of a refusal is false. A refused attempt is not charged. A cost of
        0 is allowed, and brings the limit up to this time before its options change. Of what is in flight is taken by `reserve`. One that
        is cancelled, as by a timeout, may have been charged by a store that is asked over the network: where that matters, `reserve`,
        which then is given back."""
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
        """What is used of the limit of which least remains: its `max` at the most, also where more was used before that was lowered."""
        return await call(self._core.used)

    async def refund(self, cost: int | str = 1) -> LimitAnswer:
        """Gives back what was taken a moment ago: what has been refilled since is there already. To give back later, and once,
        reserve it. Of money nothing is given back where this process has not heard of it yet that the store lost its memory or was
        replaced: that may have been done before. The answer says how the limit stands."""
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
            (reservation,) = await granted(self._core.reserve(cost, ttl=ttl))
            return Reservation(reservation)

        return Acquiring(reserve())

    async def wait(self, cost: int | str = 1, **options: Unpack[WaitOptions]) -> LimitAnswer:
        """Waits until a cost is allowed, and charges it. `TimedOut` if that did not come about in time, `Limited` if it never will,
        `Cancelled` if the handle is closed. Who asks as the time runs out is told what came of that, which may take two
        `response_timeout`s. While the store cannot be used it does what the limit's `outage` says: it raises
        `StoreUnavailable`, or waits as this process alone. One that is cancelled, as by a timeout of asyncio, may have been charged by
        a store that is asked over the network: where that matters, `wait_to_reserve`, which then is given back."""
        return await call(self._core.wait, cost, **options)

    def wait_to_reserve(self, cost: int | str = 1, *, ttl: float, **options: Unpack[WaitOptions]) -> Acquiring[Reservation]:
        """Waits as `wait` does until a cost can be reserved for `ttl` seconds; an outage is `StoreUnavailable`, at once.
        For `async with`, or to be awaited."""

        async def wait_to_reserve() -> Reservation:
            (reservation,) = await granted(self._core.wait_to_reserve(cost, ttl=ttl, **options))
            return Reservation(reservation)

        return Acquiring(wait_to_reserve())

    async def commit_reservation(self, id: str, cost: int | str | None = None) -> None:
        """Ends a reservation that was made elsewhere, by its `id`: what it charged stays charged; what it has in flight lands. Any
        process does so, of any language, by the same limits in the same order; a second time it changes nothing, for two
        minutes. Fails as `Reservation.commit`, with `Lost` if its time has passed before, when what it charged stays charged and is not
        to be reserved anew, and with `InvalidArgument` for what is no id, or one of other limits. With a `cost` only so much stays
        charged, as with `commit`."""
        await call(self._core.commit_reservation, id, cost)

    async def refund_reservation(self, id: str) -> None:
        """The same, where what it charged is given back, as far as it still counts; a second time it changes nothing, until its time
        has passed. Fails as `Reservation.refund`."""
        await call(self._core.refund_reservation, id)

    async def renew_reservation(self, id: str, ttl: float) -> None:
        """Prolongs a reservation that was made elsewhere, by its `id`, to `ttl` seconds from now, never to less than it has. Any
        process does so, of any language, by the same limits in the same order. Fails as `Reservation.renew`, and with `InvalidArgument`
        for what is no id, or one of other limits."""
        await call(self._core.renew_reservation, id, ttl)

    def at_cost(self, cost: int | str) -> Limit:
        """The same, of which every take charges so much, whatever the cost that is said: in a group, a request counts one and costs
        its gas."""
        return Limit(self._core.at_cost(cost))


class Reservation(Held[_leasehold.Reservation]):
    """What was taken of limits and can be given back once, until its time has passed. Use it with `async with`: what was not given
    back in the block stays charged at its end, and what is in flight lands; `Lost` is raised, as with a lease, where `commit` raises it
    for a time that has passed. Where nobody has it any more, it stays charged, and what is in flight lands as its time is over."""

    __slots__ = ()

    @property
    def answer(self) -> LimitAnswer:
        """What the limits said."""
        return self._core.answer

    @property
    def remaining(self) -> float:
        """For how many seconds it can still be relied on: that it can be given back, and that what it has in flight counts. 0.0 when
        its time has passed, it has ended, or a renewal was told that."""
        return self._core.remaining

    @property
    def id(self) -> str:
        """By which any process can end it, by `commit_reservation` or `refund_reservation` of the same limits in the same order, also
        after this one has crashed, and prolong it, by `renew_reservation`. 40 digits."""
        return self._core.id

    def hand_over(self) -> str:
        """Lets go of it without an end, for another process to end it by this id. If none does, it stays charged, and what it has in
        flight lands when its time has passed. `Lost` if it has ended already."""
        return self._core.hand_over()

    async def renew(self, ttl: float | None = None) -> None:
        """Prolongs it to `ttl` seconds from now, what it was reserved for if not given, never to less than it has: what it has in
        flight counts, and what it charged can be given back, for so long. That needs no room. `Lost` if it has ended, its time has
        passed, or something it has in flight is counted no more, as after a reset or since the store lost its memory: then more may be
        in flight than is allowed. `StoreUnavailable`: it lasts as before, at least, and can be renewed again."""
        await call(self._core.renew, ttl)

    async def commit(self, cost: int | str | None = None) -> None:
        """Ends it: what it charged stays charged; what it has in flight lands. `Lost` if it has ended already, or has something in
        flight and its time has passed: that counted as landed before it did, and more may have been in flight than is allowed. With
        `StoreUnavailable` it is tried on for half a minute, and stays charged in any case.

        With a `cost` only so much stays charged, and the rest is given back, once, as far as it still counts: for what cost less than
        was reserved. Of limits `at_cost` stays what is theirs, and never more than was reserved. After `StoreUnavailable` all of it may
        stay charged; where the store lost its memory meanwhile all of it does, and that is no error."""
        await call(self._core.commit, cost)

    async def refund(self) -> None:
        """Ends it: what it charged is given back, as far as it still counts. `Lost` if it has ended already, its time has passed, or the
        store was restarted or replaced, or has lost its memory: then, unless it was given back before, it stays charged. With
        `StoreUnavailable` it is tried on for half a minute."""
        await call(self._core.refund)
