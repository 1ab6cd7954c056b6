"""Awaiting what the compiled half has started."""

from __future__ import annotations

from typing import Any

from ._leasehold import Pending

__all__ = ["settle"]


async def settle(started: Any) -> Any:
    """The result of a started call. Whatever ends the wait early also drops the call."""
    if type(started) is not Pending:
        return started
    try:
        return await started.future
    except BaseException:
        started.abort()
        raise
