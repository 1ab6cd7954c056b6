"""Leases of relayer accounts and their nonces, in memory or over Redis, never twice at once."""

from . import aio
from ._leasehold import Lease, Leasehold, Lock, Locked, Pool, Quorum, open, open_quorum, recommended_ttl, version
from .errors import (
    Busy,
    Cancelled,
    Claimed,
    Contended,
    Exhausted,
    Insufficient,
    Internal,
    InvalidArgument,
    LeaseholdError,
    Limited,
    LockedUntil,
    Lost,
    NoFit,
    NonceUnavailable,
    SourceUnavailable,
    Stalled,
    StoreUnavailable,
    TimedOut,
)
from .fence import FENCE_SCRIPT, FENCE_SQL, FenceGuard

__all__ = [
    "FENCE_SCRIPT",
    "FENCE_SQL",
    "Busy",
    "Cancelled",
    "Claimed",
    "Contended",
    "Exhausted",
    "FenceGuard",
    "Insufficient",
    "Internal",
    "InvalidArgument",
    "Lease",
    "Leasehold",
    "LeaseholdError",
    "Limited",
    "Lock",
    "Locked",
    "LockedUntil",
    "Lost",
    "NoFit",
    "NonceUnavailable",
    "Pool",
    "Quorum",
    "SourceUnavailable",
    "Stalled",
    "StoreUnavailable",
    "TimedOut",
    "__version__",
    "aio",
    "open",
    "open_quorum",
    "recommended_ttl",
]

__version__ = version()
