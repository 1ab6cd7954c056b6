"""Leases of relayer accounts and their nonces, in memory or over Redis, never twice at once."""

from . import aio
from ._leasehold import (
    Lease,
    Leasehold,
    Limit,
    Lock,
    Locked,
    Pool,
    Quorum,
    Reservation,
    open,
    open_quorum,
    recommended_ttl,
    version,
)
from .errors import (
    Busy,
    Cancelled,
    Claimed,
    Exhausted,
    Insufficient,
    Internal,
    InvalidArgument,
    LeaseholdError,
    Limited,
    LockedUntil,
    Lost,
    NonceUnavailable,
    Stalled,
    StoreUnavailable,
    TimedOut,
)
from .fence import FENCE_SCRIPT, FENCE_SQL, FenceGuard
from .limits import limited

__all__ = [
    "FENCE_SCRIPT",
    "FENCE_SQL",
    "Busy",
    "Cancelled",
    "Claimed",
    "Exhausted",
    "FenceGuard",
    "Insufficient",
    "Internal",
    "InvalidArgument",
    "Lease",
    "Leasehold",
    "LeaseholdError",
    "Limit",
    "Limited",
    "Lock",
    "Locked",
    "LockedUntil",
    "Lost",
    "NonceUnavailable",
    "Pool",
    "Quorum",
    "Reservation",
    "Stalled",
    "StoreUnavailable",
    "TimedOut",
    "__version__",
    "aio",
    "limited",
    "open",
    "open_quorum",
    "recommended_ttl",
]

__version__ = version()
