"""The tokens of wallets, and selections of them."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import _leasehold
from .._settle import call, granted
from ..errors import Lost
from ..options import SelectOptions
from ..sources import TokenChange
from ..views import LockedToken, Statistics, Token, TokenCounts
from ._face import Acquiring, Face, Held

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["Selection", "Tokens"]


class Tokens(Face[_leasehold.Tokens]):
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
            (selection,) = await granted(self._core.select(target, **options))
            return Selection(selection)

        return Acquiring(select())

    def hear(self, change: TokenChange, currency: str | None = None) -> None:
        """Hears what the source tells, of a currency or of the wallet's own: that a token was added, or spent; that every change is told
        of from now on; that changes may have been missed."""
        self._core.hear(change, currency)

    async def locks(self, ids: Sequence[str] | None = None) -> builtins.list[LockedToken]:
        """Who has which of these tokens locked, since when and until when: at most 1,000, of whatever currency. Without ids of
        all that are locked, in the order of their ids; that costs the store time in proportion to their number."""
        return await call(self._core.locks, ids)

    async def release_spender(self, spender: str) -> int:
        """Gives back all tokens of the wallet that this spender has locked, in whatever process, and says how many: for one that
        is known to be dead, or whose transaction is known to be void. A selection of it that still lives is lost by that, and
        hears of it only at its next renewal. Costs the store time in proportion to how many tokens are locked."""
        return await call(self._core.release_spender, spender)

    async def count_locked(self) -> int:
        """How many tokens of the wallet are locked, by anybody."""
        return await call(self._core.count_locked)

    def counts(self) -> TokenCounts:
        """What the selections of this handle asked for so far."""
        return self._core.counts()

    def statistics(self) -> Statistics:
        """What this handle has done so far."""
        return self._core.statistics()


class Selection(Held[_leasehold.Selection]):
    """Tokens that are this caller's alone, and worth at least what was asked for. Say that they are `spent`. Use it with `async with`: at
    the end of the block they are given back, unless they were spent, and `Lost` is raised if they did not last as long, as with a lease.
    Those that are forgotten, of which the program has the object no more, are not given back: they are renewed no more, and end at
    their deadlines, with a `ResourceWarning`."""

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
        """Says that they are spent: they stay locked for the wallet's `settle`, until the spend is visible to all. A second call only
        tells the same again. `Lost` if one of them was lost before, and others may have spent it; with `StoreUnavailable` they stay
        locked for what is left of their time to live."""
        await call(self._core.spent)
