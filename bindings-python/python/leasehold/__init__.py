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
from .limits import limited

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
    "Limit",
    "Limited",
    "Lock",
    "Locked",
    "LockedUntil",
    "Lost",
    "NoFit",
    "NonceUnavailable",
    "Pool",
    "Quorum",
<<<<<<< HEAD
    "SourceUnavailable",
=======
    "Reservation",
>>>>>>> 1c092b9a2e71483e2b1f9fa9dde529aafcb8db6f
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
