"""leasehold with asyncio: the same names, and what takes time is awaited.

    async with leasehold.aio.open("redis://127.0.0.1:6379", namespace="eth:1") as lh:
        pool = await lh.pool("relayers", slots=addresses)
        async with pool.acquire(timeout=1.0) as lease:
            ...

A task that is cancelled while it acquires or selects leaves nothing held; one that waits for a limit gives that up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import _leasehold
from .._settle import call
from ..options import (
    AsyncPoolOptions,
    AsyncTokensOptions,
    LimitOptions,
    LockConfig,
    LockOptions,
    OpenOptions,
    QuorumLockOptions,
)
from ..views import Finding
from ._face import Acquiring, Opened
from .limit import Limit, Reservation
from .lock import Lock, Locked
from .pool import Lease, Pool
from .tokens import Selection, Tokens

if TYPE_CHECKING:
    from typing_extensions import Unpack

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


def open(url: str | LockConfig = "memory:", **options: Unpack[OpenOptions]) -> Leasehold:
    """Opens a store: a URL ("memory:", the default; "memory:name"; "redis://…"; "redis+cluster://…"; "redis+sentinel://…"), or the
    lock block of a paymaster's configuration. Does not connect yet."""
    return Leasehold(_leasehold.open_aio(url, **options))


def open_quorum(servers: Sequence[str], **options: Unpack[OpenOptions]) -> Quorum:
    """Opens independent servers, 1 to 9, of which a majority must grant each lock. Does not connect yet. The options, `lock_ttl`
    among them, are the same in every process."""
    return Quorum(_leasehold.open_quorum_aio(servers, **options))


class Leasehold(Opened[_leasehold.Leasehold]):
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

    def register(self, action: str, **options: Unpack[LimitOptions]) -> None:
        """Registers what an action allows, once; each of its values has a limit of its own, which `limit_of` opens. See
        `leasehold.Leasehold.register`."""
        self._core.register(action, **options)

    def limit_of(self, action: str, value: str | int) -> Limit:
        """The limit that a registered action has for a value. Asks nothing of the store yet. See `leasehold.Leasehold.limit_of`."""
        return Limit(self._core.limit_of(action, value))

    def group(self, limits: Sequence[Limit | None]) -> Limit:
        """Limits of one scope, and of one handle, whichever that is, that are charged as one, all of them or none. None is left out, a
        group can be a member, and what is there twice is charged once."""
        cores: Any = limits
        if isinstance(limits, Sequence):
            # What is no limit is refused, and named, by the compiled half.
            cores = [it._core if isinstance(it, Limit) else it for it in limits]
        return Limit(self._core.group(cores))

    def tokens(self, wallet: str, **options: Unpack[AsyncTokensOptions]) -> Tokens:
        """The tokens of a wallet, which a source lists. Asks nothing of the store nor of the source yet. Any number of processes select
        from one wallet, by the same options; a token is in one wallet, under one name. Names have up to 256 bytes. Coroutine functions
        of the source run on the loop that is running now, without which none is taken."""
        return Tokens(self._core.tokens(wallet, **options))  # type: ignore[arg-type]  # there may be coroutine functions

    async def doctor(self) -> list[Finding]:
        """Looks whether the store is fit, and gives what it finds. See `leasehold.Leasehold.doctor`."""
        return await call(self._core.doctor)

    async def close(self) -> None:
        """Opens no more pools and limits, and ends calls that wait for them with `Cancelled`. Leases that are held stay held until
        they are given back."""
        self._core.close()


class Quorum(Opened[_leasehold.Quorum]):
    """Independent servers that grant locks by majority; see `leasehold.Quorum`. Use it with `async with`, or call `close()`."""

    __slots__ = ()

    def lock(self, names: str | Sequence[str], **options: Unpack[QuorumLockOptions]) -> Lock:
        """A lock of one name, or of several that are held together or not at all. Asks nothing of the servers yet."""
        return Lock(self._core.lock(names, **options))

    async def doctor(self) -> list[Finding]:
        """Looks whether each server is fit, and gives what it finds. See `leasehold.Quorum.doctor`."""
        return await call(self._core.doctor)

    async def close(self) -> None:
        """Ends acquisitions that wait with `Cancelled`. Locks that are held stay held until they are given back."""
        self._core.close()
