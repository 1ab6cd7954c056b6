"""The checks with which a resource refuses a late holder by its fence."""

from __future__ import annotations

from ._leasehold import fence_admit, fence_texts

__all__ = ["FENCE_SCRIPT", "FENCE_SQL", "FenceGuard"]

# FENCE_SCRIPT is the check for a resource in Redis, for EVAL: KEYS[1] is a key that keeps the resource's highest fence, ARGV[1] the
# holder's fence as decimal text. The reply is 1 if the holder is admitted, and 0 if it is late and must stop. Put the writes that it
# guards before the script's last line, `return 1`. The key must never expire, nor be evicted.
#
# FENCE_SQL is the condition that a statement of SQL adds to its own: `fence` is the row's column (BIGINT NOT NULL DEFAULT 0),
# `:fence` the holder's, to be written into it by the same statement. No row changed: the holder is late, and must stop.
FENCE_SCRIPT, FENCE_SQL = fence_texts()


class FenceGuard:
    """The check for a resource in this process: remembers the highest fence that it has seen, for no longer than it lives. Threads
    keep it behind the lock of what it guards: the check and the write are one step."""

    __slots__ = ("_highest",)

    def __init__(self, highest: int = 0) -> None:
        """A guard that has seen this fence; 0 for none."""
        # 0 is no fence, and nothing else is that.
        self._highest = 0 if type(highest) is int and highest == 0 else fence_admit(0, highest)

    @property
    def highest(self) -> int:
        """The highest fence that was admitted; 0 for none."""
        return self._highest

    def admit(self, fence: int) -> None:
        """Admits the holder of this fence unless one with a higher fence was here before: then this raises `Lost`, and it must not
        write."""
        self._highest = fence_admit(self._highest, fence)
