"""Leases of relayer accounts and their nonces, in memory or over Redis, never twice at once."""

from . import _handles as _handles
from . import _settle as _settle
from . import aio as aio
from . import asgi as asgi
from . import errors as errors
from . import fence as fence
from . import limits as limits
from . import options as options
from . import sources as sources
from . import views as views
from . import wsgi as wsgi
from ._leasehold import (
    Lease,
    Leasehold,
    Limit,
    Lock,
    Locked,
    Pool,
    Quorum,
    Reservation,
    Selection,
    Tokens,
    TokensInMemory,
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
    "Reservation",
    "Selection",
    "SourceUnavailable",
    "Stalled",
    "StoreUnavailable",
    "TimedOut",
    "Tokens",
    "TokensInMemory",
    "__version__",
    "aio",
    "asgi",
    "limited",
    "open",
    "open_quorum",
    "recommended_ttl",
    "wsgi",
]

__version__ = version()
