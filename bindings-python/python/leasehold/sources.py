"""Where the tokens of a wallet come from: the host's own table, chain or ledger."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, Protocol, TypedDict

__all__ = [
    "AsyncReadPage",
    "AsyncTokenSource",
    "PageAsk",
    "ReadPage",
    "TokenAdded",
    "TokenChange",
    "TokenPage",
    "TokenSource",
    "TokenSpec",
    "TokenSpent",
]


class _Token(TypedDict):
    id: str
    """Any text up to 256 bytes, the empty one too. No two spellings are the same token."""

    amount: int | str
    """What it is worth: a whole number from 0 to 2^256 - 1, or its decimal digits."""


class TokenSpec(_Token, total=False):
    """A token that is unspent."""

    since: int
    """Its age, in whatever the source counts: the lower ones are older. 0 by default."""


class PageAsk(TypedDict):
    """Which page of a wallet's tokens is wanted."""

    wallet: str
    currency: str
    after: str | None
    """Where it begins: the `next` of the page before. None for the first."""

    limit: int
    """How many tokens it has at most; a longer one is taken too."""

    seed: int
    """Another one in each process, of 64 bits. A source that can begins its walk at a place that depends on it, and goes round, so
    that processes do not all begin with the same tokens."""


class _Page(TypedDict):
    tokens: Sequence[TokenSpec]


class TokenPage(_Page, total=False):
    """Some of the unspent tokens of a wallet."""

    next: str | None
    """Where the next page begins, in the source's own words; None, or not there, if this was the last."""


# Gives a page of the unspent tokens of a wallet and currency; a list alone is the last page. A wallet that is not known has none.
# What it says is never taken for a lock, nor for the want of one: it may be late. A plain function is called on a thread of its own.
ReadPage = Callable[[PageAsk], TokenPage | Sequence[TokenSpec]]
AsyncReadPage = Callable[[PageAsk], TokenPage | Sequence[TokenSpec] | Awaitable[TokenPage | Sequence[TokenSpec]]]


class TokenSource(Protocol):
    """An object that gives pages. If it has also a method `spent(wallet, ids)`, that says which of these tokens are spent: it is asked
    before a selection is given out, where `verify` is set."""

    def page(self, ask: PageAsk, /) -> TokenPage | Sequence[TokenSpec]: ...


class AsyncTokenSource(Protocol):
    """The same with asyncio: its methods may be coroutine functions, which run on the loop that named the wallet."""

    def page(self, ask: PageAsk, /) -> TokenPage | Sequence[TokenSpec] | Awaitable[TokenPage | Sequence[TokenSpec]]: ...


class TokenAdded(TypedDict):
    """A token is there."""

    added: TokenSpec


class TokenSpent(TypedDict):
    """A token of this id is spent."""

    spent: str


# What a source tells of, where it can. "listening": every change is told of from now on, which makes looking at the source again
# needless once that was done `max_age` later. "gap": changes may have been missed, and it is looked at once more.
TokenChange = TokenAdded | TokenSpent | Literal["listening", "gap"]
