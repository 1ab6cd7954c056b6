"""The compiled half of the package `leasehold`."""

import builtins
from asyncio import Future
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar, final, overload

from typing_extensions import Unpack

from .errors import Claimed, Lost
from .options import (
    AcquireManyOptions,
    AcquireOptions,
    Contention,
    Handshakes,
    LimitOptions,
    LockConfig,
    LockOptions,
    OpenOptions,
    PoolOptions,
    QuorumLockOptions,
    RunOptions,
    SelectOptions,
    Slot,
    TokensOptions,
    TryAcquireOptions,
    WaitOptions,
)
from .sources import TokenChange, TokenSpec
from .views import Census, Finding, LockedToken, LockState, Statistics, Token, TokenCounts

_T = TypeVar("_T")

__all__ = [
    "Bridge",
    "Granted",
    "Lease",
    "Leasehold",
    "Limit",
    "LimitAnswer",
    "Lock",
    "Locked",
    "Pending",
    "Pool",
    "Quorum",
    "Reservation",
    "Selection",
    "Tokens",
    "TokensInMemory",
    "fence_admit",
    "fence_texts",
    "open",
    "open_aio",
    "open_quorum",
    "open_quorum_aio",
    "recommended_ttl",
    "version",
]

def open(url: str | LockConfig = "memory:", **options: Unpack[OpenOptions]) -> Leasehold:
    """Opens a store: a URL (`memory:`, `memory:name`, `redis://…`, `redis+cluster://…`, `redis+sentinel://…`), or the lock block of a
    paymaster's configuration."""

def open_aio(url: str | LockConfig = "memory:", **options: Unpack[OpenOptions]) -> Leasehold:
    """The same for asyncio."""

def open_quorum(servers: Sequence[str], **options: Unpack[OpenOptions]) -> Quorum:
    """Opens independent servers, 1 to 9, of which a majority must grant each lock. Does not connect yet. All processes name the same
    servers, as two lists can have two majorities, and so two holders; and the options, `lock_ttl` among them, are the same in each."""

def open_quorum_aio(servers: Sequence[str], **options: Unpack[OpenOptions]) -> Quorum:
    """The same for asyncio."""

def fence_admit(highest: int, fence: int) -> int:
    """The highest fence from now on, unless the holder is late."""

def fence_texts() -> tuple[str, str]:
    """The script for Redis and the condition in SQL."""

def recommended_ttl(**options: Unpack[Handshakes]) -> float:
    """The time to live, in seconds, that outlasts a chain of thieves who wait one behind the other, with this confidence."""

def version() -> str:
    """The version of the compiled half; the package is of the same."""

@final
class Leasehold:
    """An open store. Opens pools, locks, limits and wallets; use it with `with`, or call `close()`."""

    def pool(self, name: str, **options: Unpack[PoolOptions]) -> Pool:
        """Opens a pool of slots; makes it if it is not there yet."""

    def lock(self, names: str | Sequence[str], **options: Unpack[LockOptions]) -> Lock:
        """A lock of one name, or of several that are held together or not at all. Asks nothing of the store yet."""

    def limit(self, name: str, **options: Unpack[LimitOptions]) -> Limit:
        """A limit of this name: a rate, a budget, or what may be in flight. Asks nothing of the store yet. Limits of one name and
        kind share what was used, in whatever process they are, and whatever their options."""

    def register(self, action: str, **options: Unpack[LimitOptions]) -> None:
        """Registers what an action allows, once, such as 10 logins in an hour: each of its values, such as an address, has a limit
        of its own, which `limit_of` opens. Known to this handle: each process registers what it asks, up to 1,000 actions. To register
        the same again changes nothing; with other options it raises `InvalidArgument`."""

    def limit_of(self, action: str, value: str | int) -> Limit:
        """The limit that a registered action has for a value: any text of 1 to 256 bytes, or a whole number, which is its digits. No
        two pairs of them share a limit, nor does any with one that `limit` names. Answers and messages call it `action%=value`, in which
        blanks, `{`, `}`, `%`, `~` and what is no printable ASCII are `~` and two hexadecimal digits a byte. Asks nothing of the store
        yet. Raises `InvalidArgument` naming `action` if it is not registered."""

    def group(self, limits: Sequence[Limit | None]) -> Limit:
        """Limits of one scope, and of one handle, whichever that is, that are charged as one, all of them or none. None is left out, a
        group can be a member, and what is there twice is charged once."""

    def tokens(self, wallet: str, **options: Unpack[TokensOptions]) -> Tokens:
        """The tokens of a wallet, which a source lists. Asks nothing of the store nor of the source yet. Any number of processes select
        from one wallet, by the same options; a token is in one wallet, under one name. Names have up to 256 bytes."""

    def doctor(self) -> builtins.list[Finding]:
        """Looks whether the store is fit: its version, its eviction policy, what it remembers after a restart, its role and replicas, its
        clock, what its user may do, and whether its messages are heard, one finding each, always in this order. Commands that it allows
        are tried where they write nothing. Of a cluster one node is looked at, that which serves the first slot. Of a store in memory
        there is one finding. Raises `StoreUnavailable` if an answer does not come within the `response_timeout`."""

    def close(self) -> None:
        """Opens no more pools and limits, and ends calls that wait for them with `Cancelled`. Leases that are held stay held until
        they are given back."""

    def __enter__(self) -> Leasehold: ...
    def __exit__(self, *exception: object) -> None: ...

@final
class Quorum:
    """Independent servers that grant locks by majority: of three one may fail, of five two. The locks are as those of one server,
    but for their `fence`, the largest of the servers': two holders' fences are in their order while the servers' clocks are nearer
    to each other than the two acquisitions are. Who was lost acquired at least one `ttl` before the next."""

    def lock(self, names: str | Sequence[str], **options: Unpack[QuorumLockOptions]) -> Lock:
        """A lock of one name, or of several that are held together or not at all. Asks nothing of the servers yet."""

    def doctor(self) -> builtins.list[Finding]:
        """Looks whether each server is fit, as `doctor` of a handle does, all at once: the findings of the first server, then those of the
        second, and so on, each with its `server`. Of one that does not answer there is one finding, an error."""

    def close(self) -> None:
        """Ends acquisitions that wait with `Cancelled`. Locks that are held stay held until they are given back."""

    def __enter__(self) -> Quorum: ...
    def __exit__(self, *exception: object) -> None: ...

@final
class Pool:
    """Slots that are leased one holder at a time."""

    @property
    def name(self) -> str:
        """The pool's name."""

    def acquire(self, **options: Unpack[AcquireOptions]) -> Lease:
        """Leases one slot; waits for it until the timeout. Keep the lease until it is given back: one that is forgotten ends at its
        deadline, and is nobody else's until then."""

    def run(self, body: Callable[[Lease], _T], **options: Unpack[AcquireOptions]) -> _T:
        """Runs the body with a lease, and gives what it gives. The lease is given back then, with what the body said of the nonce. If it
        did not last as long, its slot may have been another's: that is `Lost`, with what the body gave as its `result`, or what it
        raised as its context; but what is no `Exception`, such as Ctrl-C, comes through with a note of that."""

    def acquire_many(self, **options: Unpack[AcquireManyOptions]) -> builtins.list[Lease]:
        """Leases `count` slots at once: all of them or none."""

    def try_acquire(self, **options: Unpack[TryAcquireOptions]) -> Lease | None:
        """Leases one slot at once, or gives None. For stores in memory; `read_nonce` is not asked."""

    def statistics(self) -> Statistics:
        """What this handle of the pool has done so far. Times in seconds."""

    def recommended_ttl(self, **options: Unpack[Contention]) -> float | None:
        """The time to live, in seconds, that outlasts a chain of thieves with this confidence, by `handshake` of the statistics and
        the shortest time in which the store answered of late; None if nobody stole."""

    def add(self, slots: Sequence[Slot]) -> int:
        """Adds slots, and gives those that are there the new weight. Gives the number of those that are new. This handle leases them only
        if it was opened without slots of its own."""

    def remove(self, slot: str) -> None:
        """Forgets a slot, and with it what is known of its nonce, after its lease if it has one: for a rest, disable it. It comes
        back if a process that names it opens the pool, or the store loses its memory while one does: take what must stay away out
        of every list."""

    def enable(self, slot: str) -> None:
        """Hands a slot out again. Ends a quarantine, not a cooldown."""

    def disable(self, slot: str) -> None:
        """Hands a slot out no more, also by its name, until `enable`; a lease that it has is not renewed."""

    def drain(self, slot: str) -> None:
        """Hands a slot out no more; a lease that it has may be renewed until it is given back. Then it is disabled."""

    def quarantine(self, slot: str, time: float) -> None:
        """Hands a slot out no more for so many seconds; its nonce is in doubt afterwards."""

    def break_lease(self, slot: str) -> None:
        """Ends the lease of a slot by force, for a holder that is known to be dead: one that lives believes in its lease until its
        next renewal, or to its deadline. The nonce is in doubt."""

    def inspect(self, slots: Sequence[str] | None = None) -> Census:
        """Counts the slots, and looks at those that are named (at most 1,000), as by `list()`; without them at none."""

    def list(self) -> builtins.list[str]:
        """The ids of all slots, in order."""

@final
class Lease:
    """A slot that is this holder's alone until the deadline. Use it with `with`: at the end of the block it is given back with the
    outcome that was said; a nonce of which nothing was said is in doubt from then on. `Lost` is raised if it did not last as long,
    with what the block raised as its context; but what is no `Exception`, such as Ctrl-C, comes through with a note of that. One that
    is forgotten, of which the program has the object no more, is not given back: it is renewed no more, and ends at its deadline, with
    a `ResourceWarning`."""

    @property
    def slot(self) -> str:
        """The slot's id as the pool's `slots` of this process spell it; of others `0x…` is in lower case."""

    @property
    def fence(self) -> int:
        """Larger than that of any lease of this slot before: what a resource checks to refuse a late holder."""

    @property
    def nonce(self) -> int | None:
        """The nonce to sign with; None where it is not known or in doubt, and the chain must be asked."""

    @property
    def in_doubt(self) -> bool:
        """Whether an earlier holder may have used a nonce and did not say so: ask the chain, then resync."""

    @property
    def remaining(self) -> float:
        """For how many seconds the lease can still be relied on; 0.0 when it cannot."""

    @property
    def held(self) -> bool:
        """Whether the lease can still be relied on."""

    def used(self, next: int | None = None) -> None:
        """Says that the nonce was used. `next` is the next free one, the lease's own plus one if not given: from its second payment
        on it has to be. Raises `Lost`, as the other three words do, once the lease was given back."""

    def unused(self) -> None:
        """Says that the nonce was not used and cannot be any more."""

    def rejected(self, expected: int | None = None) -> None:
        """Says that the chain refused the nonce, and which one it expects if it said so, for the next holder, who is given that without
        a question: one that counts no pending transactions, as geth's `next nonce`, is not to be said. To go on under this lease,
        `read_nonce` or `resync` then gives another nonce to sign with."""

    def unknown(self) -> None:
        """Says that nobody knows whether the nonce was used: the next holder asks the chain. Who sends several payments under one
        lease says it before each, and `used(next)` after it: the one whose answer is lost is doubt then, and those before it count."""

    def renew(self, ttl: float | None = None) -> None:
        """Prolongs the lease to `ttl` seconds from now, the pool's if not given, within its `max_hold`."""

    def resync(self, nonce: int, rewind: bool = False) -> int:
        """Records the next nonce that the chain names, and makes it the lease's."""

    def read_nonce(self) -> int:
        """Reads the nonce from the chain through the pool's `read_nonce`, and records it."""

    def lost(self, timeout: float | None = None) -> Lost | None:
        """Waits until the lease can no longer be relied on, and gives the error that says why. Gives None if it was given back in
        time, or if `timeout` seconds have passed."""

    def claimed(self, timeout: float | None = None) -> Claimed | None:
        """Waits until somebody of higher priority claims the slot, and gives the error that says so: finish early and give it back.
        Gives None if it ends first, or if `timeout` seconds have passed. Without `keepalive` the first call only begins to look: with a
        `timeout` of 0 it gives None."""

    def release(self, cooldown: float | None = None) -> None:
        """Gives the slot back. A second call does nothing."""

    def __enter__(self) -> Lease: ...
    def __exit__(self, *exception: object) -> None: ...

@final
class LimitAnswer:
    """Whether something is allowed, as the limit says that binds it: of those that refuse, the one that does so longest; of those that
    allow, the one of which least remains. As true as `allowed` is, and so no `dict`: those who write one take a false one for empty.
    `as_dict` gives one."""

    def __new__(
        cls,
        allowed: bool,
        limit: str | None,
        remaining: int,
        retry_after: float | None,
        reset_after: float | None,
        said: Literal["store", "memory", "outage"],
    ) -> LimitAnswer: ...
    @property
    def allowed(self) -> bool:
        """Whether all limits allow it, and it was charged."""

    @property
    def limit(self) -> str | None:
        """The name of the limit that binds; None where there is none. Of a registered action it is `action%=value`: see `limit_of`."""

    @property
    def remaining(self) -> int:
        """What can still be taken of that limit."""

    @property
    def retry_after(self) -> float | None:
        """When it would be allowed: 0.0 if it is, None if it never will be. Of what is in flight, when the first that is not given back
        ends by itself."""

    @property
    def reset_after(self) -> float | None:
        """When that limit is as if never used; None if never."""

    @property
    def said(self) -> Literal["store", "memory", "outage"]:
        """Who says so: the store; this process, which remembers that the store refused the like a moment ago; or this process alone,
        while the store cannot be used and the limit is open then."""

    def as_dict(self) -> dict[str, Any]:
        """All that it says, by its names: what `json` and `logging` take."""

    @overload
    def __getitem__(self, name: Literal["allowed"], /) -> bool: ...
    @overload
    def __getitem__(self, name: Literal["limit"], /) -> str | None: ...
    @overload
    def __getitem__(self, name: Literal["remaining"], /) -> int: ...
    @overload
    def __getitem__(self, name: Literal["retry_after", "reset_after"], /) -> float | None: ...
    @overload
    def __getitem__(self, name: Literal["said"], /) -> Literal["store", "memory", "outage"]: ...
    def __bool__(self) -> bool: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Lock:
    """One name, or several that are held together or not at all. Nothing of them stays behind in the store."""

    @property
    def handshake(self) -> float:
        """For how many seconds holders of this handle's locks took to yield of late to those who steal, at the longest; 0.0 if nobody
        stole. What `recommended_ttl` goes by."""

    def recommended_ttl(self, **options: Unpack[Contention]) -> float | None:
        """The time to live, in seconds, that outlasts a chain of thieves with this confidence, by the longest `handshake` and the
        shortest time in which the store answered of late; None if nobody stole."""

    def inspect(self) -> builtins.list[LockState]:
        """Looks at each of its names, in their order: whether somebody holds it, in whatever process. Of a quorum's lock each server is
        asked through a handle of its own."""

    def break_lease(self) -> None:
        """Ends by force what is held of its names, for a holder that is known to be dead: one that lives believes in its lock until its
        next renewal, or to its deadline. A quorum's ends at all servers, of which a majority must answer."""

    def acquire(self, **options: Unpack[LockOptions]) -> Locked:
        """Locks all of its names; waits for them until the timeout. Keep what it gives until it is given back: a lock that is forgotten
        is renewed no more, and ends at its deadline."""

    @overload
    def run(self, body: Callable[[Locked], _T], **options: Unpack[LockOptions]) -> _T:
        """Runs the body under the lock, and gives what it gives. If the lock did not last as long, others may have run beside it:
        that is `Lost`, with what the body gave as its `result`, or what it raised as its context; but what is no `Exception`,
        such as Ctrl-C, comes through with a note of that."""

    @overload
    def run(self, body: Callable[[Locked | None], _T], **options: Unpack[RunOptions]) -> _T: ...
    def _enter(self, **options: Unpack[RunOptions]) -> Locked | None: ...

@final
class Locked:
    """A lock that is held. Use it with `with`: at the end of the block it is given back, and `Lost` is raised if it did not last as
    long, as with a lease. One that is forgotten, of which the program has the object no more, is not given back: it is renewed no more,
    and ends at its deadline, with a `ResourceWarning`."""

    @property
    def names(self) -> list[str]:
        """Its names, as the caller spelled them."""

    @property
    def fence(self) -> int:
        """Larger than that of any lock before: what a resource checks to refuse a late holder."""

    @property
    def remaining(self) -> float:
        """For how many seconds the lock can still be relied on; 0.0 when it cannot."""

    @property
    def held(self) -> bool:
        """Whether the lock can still be relied on."""

    def lost(self, timeout: float | None = None) -> Lost | None:
        """Waits until the lock can no longer be relied on, and gives the error that says why. Gives None if it was given back in
        time, or if `timeout` seconds have passed."""

    def claimed(self, timeout: float | None = None) -> Claimed | None:
        """Waits until somebody of higher priority claims the lock, and gives the error that says so: finish early and give it back.
        Gives None if it ends first, or if `timeout` seconds have passed. Without `keepalive` the first call only begins to look: with a
        `timeout` of 0 it gives None."""

    def renew(self, ttl: float | None = None) -> None:
        """Prolongs the lock to `ttl` seconds from now, the handle's `lock_ttl` if not given, within its `max_hold`. All of its
        names, of a quorum's at a majority of the servers: raises `Lost` if one of them is."""

    def release(self) -> None:
        """Gives the lock back. A second call does nothing."""

    def __enter__(self) -> Locked: ...
    def __exit__(self, *exception: object) -> None: ...

@final
class Limit:
    """A limit, or several that are charged as one: all of them or none. A cost is a whole number from 0 to 2^256 - 1, or its decimal
    digits. `StoreUnavailable` says that a limit cannot be asked, which allows nothing unless its `outage` is open."""

    def take(self, cost: int | str = 1) -> LimitAnswer:
        """Charges a cost, if all limits allow it, and says so: the answer of a refusal is false. A refused attempt is not charged. A cost of
        0 is allowed, and brings the limit up to this time before its options change. Of what is in flight is taken by `reserve`."""

    def increment(self, cost: int | str = 1) -> bool:
        """The same as a truth value."""

    def increment_or_fail(self, cost: int | str = 1) -> LimitAnswer:
        """The same, where a refusal is `Limited`."""

    def peek(self, cost: int | str = 1) -> LimitAnswer:
        """Whether a cost would be allowed, when, and what remains. Nothing is charged."""

    def exceeded(self, cost: int | str = 1) -> bool:
        """Whether a cost would be refused."""

    def limit_exceeded(self, cost: int | str = 1) -> str | None:
        """The name of the limit that refuses a cost; None if none does."""

    def remaining(self) -> int:
        """What can still be taken; of several limits, of that of which least remains."""

    def used(self) -> int:
        """What is used of the limit of which least remains: its `max` at the most, also where more was used before that was lowered."""

    def refund(self, cost: int | str = 1) -> LimitAnswer:
        """Gives back what was taken a moment ago: what has been refilled since is there already. To give back later, and once,
        reserve it. Of money nothing is given back where this process has not heard of it yet that the store lost its memory or was
        replaced: that may have been done before. The answer says how the limit stands."""

    def decrement(self, cost: int | str = 1) -> LimitAnswer:
        """The same under the name that other libraries have for it."""

    def reset(self) -> None:
        """Makes the limit as if it was never used."""

    def reserve(self, cost: int | str = 1, *, ttl: float) -> Reservation:
        """Takes a cost for `ttl` seconds at most, 0.001 to 7 days, in which it can be given back, once; if nobody does so, it stays
        charged. What is in flight is so until the reservation ends. A refusal is `Limited`, an outage always
        `StoreUnavailable`."""

    def wait(self, cost: int | str = 1, **options: Unpack[WaitOptions]) -> LimitAnswer:
        """Waits until a cost is allowed, and charges it. `TimedOut` if that did not come about in time, `Limited` if it never will,
        `Cancelled` if the handle is closed. Who asks as the time runs out is told what came of that, which may take two
        `response_timeout`s. While the store cannot be used it does what the limit's `outage` says: it raises
        `StoreUnavailable`, or waits as this process alone."""

    def wait_to_reserve(self, cost: int | str = 1, *, ttl: float, **options: Unpack[WaitOptions]) -> Reservation:
        """Waits as `wait` does until a cost can be reserved for `ttl` seconds; an outage is `StoreUnavailable`, at once."""

    def commit_reservation(self, id: str, cost: int | str | None = None) -> None:
        """Ends a reservation that was made elsewhere, by its `id`: what it charged stays charged; what it has in flight lands. Any
        process does so, of any language, by the same limits in the same order; a second time it changes nothing, for two
        minutes. Fails as `Reservation.commit`, with `Lost` if its time has passed before, when what it charged stays charged and is not
        to be reserved anew, and with `InvalidArgument` for what is no id, or one of other limits. With a `cost` only so much stays
        charged, as with `commit`."""

    def refund_reservation(self, id: str) -> None:
        """The same, where what it charged is given back, as far as it still counts; a second time it changes nothing, until its time
        has passed. Fails as `Reservation.refund`."""

    def renew_reservation(self, id: str, ttl: float) -> None:
        """Prolongs a reservation that was made elsewhere, by its `id`, to `ttl` seconds from now, never to less than it has. Any
        process does so, of any language, by the same limits in the same order. Fails as `Reservation.renew`, and with `InvalidArgument`
        for what is no id, or one of other limits."""

    def at_cost(self, cost: int | str) -> Limit:
        """The same, of which every take charges so much, whatever the cost that is said: in a group, a request counts one and costs
        its gas."""

@final
class Reservation:
    """What was taken of limits and can be given back once, until its time has passed. Use it with `with`: what was not given back in
    the block stays charged at its end, and what is in flight lands; `Lost` is raised, as with a lease, where `commit` raises it for a
    time that has passed. Where nobody has it any more, it stays charged, and what is in flight lands as its time is over."""

    @property
    def answer(self) -> LimitAnswer:
        """What the limits said."""

    @property
    def id(self) -> str:
        """By which any process can end it, by `commit_reservation` or `refund_reservation` of the same limits in the same order, also
        after this one has crashed, and prolong it, by `renew_reservation`. 40 digits."""

    def hand_over(self) -> str:
        """Lets go of it without an end, for another process to end it by this id. If none does, it stays charged, and what it has in
        flight lands when its time has passed. `Lost` if it has ended already."""

    @property
    def remaining(self) -> float:
        """For how many seconds it can still be relied on: that it can be given back, and that what it has in flight counts. 0.0 when
        its time has passed, it has ended, or a renewal was told that."""

    def renew(self, ttl: float | None = None) -> None:
        """Prolongs it to `ttl` seconds from now, what it was reserved for if not given, never to less than it has: what it has in
        flight counts, and what it charged can be given back, for so long. That needs no room. `Lost` if it has ended, its time has
        passed, or something it has in flight is counted no more, as after a reset or since the store lost its memory: then more may be
        in flight than is allowed. `StoreUnavailable`: it lasts as before, at least, and can be renewed again."""

    def commit(self, cost: int | str | None = None) -> None:
        """Ends it: what it charged stays charged; what it has in flight lands. `Lost` if it has ended already, or has something in
        flight and its time has passed: that counted as landed before it did, and more may have been in flight than is allowed. With
        `StoreUnavailable` it is tried on for half a minute, and stays charged in any case.

        With a `cost` only so much stays charged, and the rest is given back, once, as far as it still counts: for what cost less than
        was reserved. Of limits `at_cost` stays what is theirs, and never more than was reserved. After `StoreUnavailable` all of it may
        stay charged; where the store lost its memory meanwhile all of it does, and that is no error."""

    def refund(self) -> None:
        """Ends it: what it charged is given back, as far as it still counts. `Lost` if it has ended already, its time has passed, or the
        store was restarted or replaced, or has lost its memory: then, unless it was given back before, it stays charged. With
        `StoreUnavailable` it is tried on for half a minute."""

    def __enter__(self) -> Reservation: ...
    def __exit__(self, *exception: object) -> None: ...

@final
class Bridge:
    """One event loop, as Rust sees it."""

    def comes(self, now: float) -> None:
        """The loop has been told to come. What a call has to send need not wait for that if those before were alone."""

    def begins_to_look(self) -> bool:
        """Whether the loop is to begin to go round without sleep, and to `look` each time: an answer may be there in a moment."""

    def looks(self) -> bool:
        """Whether it is to do so once more."""

    def look(self, busy: bool) -> int | None:
        """Looks for a socket that can be read: once only, if the loop is busy."""

    @property
    def settled(self) -> deque[tuple[Future[Any], Any, BaseException | None]]:
        """Calls that have ended and whose futures do not know it yet, each with its result or its error: who settles one takes it out."""

    def again(self) -> None:
        """The loop was kept from settling those: it is to come again."""

    def turn(self) -> None:
        """Polls the calls that can go on, and notes those that have ended as `settled`."""

    def hear(self, fd: int) -> None:
        """The same, as a socket that is watched can be read."""

@final
class Granted:
    """What is on its way to its caller. If that went away meanwhile, nobody has seen it: it is given back, and nonces were not used."""

    def take(self) -> list[Any]:
        """What was granted, once."""

@final
class Pending:
    """A call that is under way."""

    def expect(self, future: Future[Any], now: float) -> Bridge | None:
        """This future gets the result. Gives the bridge if the loop, whose time this is, is to be told that it has calls."""

    def abort(self, future: Future[Any] | None) -> None:
        """Drops the call; if it has ended, what its future was granted goes back at once."""

@final
class Tokens:
    """The tokens of one wallet."""

    @property
    def wallet(self) -> str:
        """The wallet's name."""

    def select(self, target: int | str, **options: Unpack[SelectOptions]) -> Selection:
        """Selects tokens that are worth at least `target`, and locks them; a target of 0 selects none. Nothing is locked where it raises:
        `Insufficient` (counted without any lock, after a look at the source), `LockedUntil`, `Contended`, `NoFit`, `TimedOut`,
        `SourceUnavailable` (with what the source raised as its cause), `StoreUnavailable`, `Cancelled` if the handle is closed."""

    def hear(self, change: TokenChange, currency: str | None = None) -> None:
        """Hears what the source tells, of a currency or of the wallet's own: that a token was added, or spent; that every change is told
        of from now on; that changes may have been missed. For the wallet's `max_age` no page that is late brings back what is
        spent, nor takes away what was added. So what is told must not be late itself: who was cut off or stopped for longer than
        `settle` less `max_age` says `gap` instead."""

    def locks(self, ids: Sequence[str] | None = None) -> list[LockedToken]:
        """Who has which of these tokens locked, since when and until when: at most 1,000, of whatever currency. Without ids of
        all that are locked, in the order of their ids; that costs the store time in proportion to their number."""

    def release_spender(self, spender: str) -> int:
        """Gives back all tokens of the wallet that this spender has locked, in whatever process, and says how many: for one that
        is known to be dead, or whose transaction is known to be void. A selection of it that still lives is lost by that, and
        hears of it only at its next renewal. Costs the store time in proportion to how many tokens are locked."""

    def count_locked(self) -> int:
        """How many tokens of the wallet are locked, by anybody."""

    def counts(self) -> TokenCounts:
        """What the selections of this handle asked for so far."""

    def statistics(self) -> Statistics:
        """What this handle has done so far. Times in seconds."""

@final
class Selection:
    """Tokens that are this caller's alone, and worth at least what was asked for. Say that they are `spent`. Use it with `with`: at the
    end of the block they are given back, unless they were spent, and `Lost` is raised if they did not last as long, as with a lease.
    Those that are forgotten, of which the program has the object no more, are not given back: they are renewed no more, and end at
    their deadlines, with a `ResourceWarning`."""

    @property
    def tokens(self) -> list[Token]:
        """The tokens, each with its fence."""

    @property
    def sum(self) -> int:
        """What the tokens are worth."""

    @property
    def change(self) -> int:
        """What they are worth above the target."""

    @property
    def fence(self) -> int:
        """The largest of the tokens' fences; 0 if there is none."""

    @property
    def remaining(self) -> float:
        """For how many seconds all of them can still be relied on; 0.0 when one cannot, infinite if there is no token."""

    @property
    def held(self) -> bool:
        """Whether all of them can still be relied on."""

    def lost(self, timeout: float | None = None) -> Lost | None:
        """Waits until one of them can no longer be relied on, and gives the error that says why. Gives None if they were given back or
        spent in time, or if `timeout` seconds have passed."""

    def renew(self) -> None:
        """Prolongs all of them to their time to live from now. `Lost` if one of them is."""

    def release(self) -> None:
        """Gives all of them back. A second call does nothing. `Lost` if one of them had been lost before."""

    def spent(self) -> None:
        """Says that they are spent: they stay locked for the wallet's `settle`, until the spend is visible to all. A second call only
        tells the same again. `Lost` if one of them was lost before, and others may have spent it; with `StoreUnavailable` they stay
        locked for what is left of their time to live."""

    def __enter__(self) -> Selection: ...
    def __exit__(self, *exception: object) -> None: ...

@final
class TokensInMemory:
    """Tokens in this process's memory, as a source; with asyncio, too."""

    def __new__(cls) -> TokensInMemory: ...
    def add(self, wallet: str, currency: str, token: TokenSpec) -> None:
        """Adds a token; one of the same id is replaced."""

    def spend(self, wallet: str, id: str) -> None:
        """A token is spent, of whatever currency it is."""

    def sum(self, wallet: str, currency: str) -> int:
        """What a wallet has of a currency."""
