"""Leases of relayer accounts and their nonces, in memory or over Redis, never twice at once."""

from ._leasehold import version
from .errors import (
    Busy,
    Cancelled,
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

__all__ = [
    "Busy",
    "Cancelled",
    "Exhausted",
    "Insufficient",
    "Internal",
    "InvalidArgument",
    "LeaseholdError",
    "Limited",
    "LockedUntil",
    "Lost",
    "NonceUnavailable",
    "Stalled",
    "StoreUnavailable",
    "TimedOut",
    "__version__",
]

__version__ = version()
