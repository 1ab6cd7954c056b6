"""Handles belong to the process that opened them: none is copied or pickled."""

from __future__ import annotations

import copyreg
from typing import NoReturn

from . import _leasehold

__all__ = ["refuse"]


def refuse(handle: object) -> NoReturn:
    """Says what to do instead of copying or pickling a handle."""
    name = type(handle).__name__
    raise TypeError(f"a {name} belongs to the process that opened it, and is not copied or pickled: open a new one there")


for kind in (
    _leasehold.Lease,
    _leasehold.Leasehold,
    _leasehold.Limit,
    _leasehold.Lock,
    _leasehold.Locked,
    _leasehold.Pool,
    _leasehold.Quorum,
    _leasehold.Reservation,
    _leasehold.Selection,
    _leasehold.Tokens,
    _leasehold.TokensInMemory,
):
    copyreg.pickle(kind, refuse)
