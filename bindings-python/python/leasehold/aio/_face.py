"""What all faces have in common."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Generator
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from .._settle import call
from ..errors import LeaseholdError

if TYPE_CHECKING:
    if sys.version_info >= (3, 11):
        from typing import Self
    else:
        from typing_extensions import Self

C = TypeVar("C")
O = TypeVar("O", bound="Open")
G = TypeVar("G", bound="Granted")
H = TypeVar("H", bound="Held[Any]")


class Face(Generic[C]):
    """An object here: the face of one of the core."""

    __slots__ = ("_core",)

    def __init__(self, core: C) -> None:
        self._core = core

    def __repr__(self) -> str:
        return repr(self._core)


class Opened(Face[O]):
    """What is closed at the end of a block."""

    __slots__ = ()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._core.close()


class Held(Face[G]):
    """What is given back at the end of a block."""

    __slots__ = ()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            await call(self._core.__exit__, kind, error, traceback)
        except LeaseholdError:
            # The error of the block is the one to be seen.
            if kind is None:
                raise


class Acquiring(AbstractAsyncContextManager[H, None], Generic[H]):
    """An acquisition that begins when it is awaited, or entered with `async with`."""

    __slots__ = ("_acquire", "_held")

    def __init__(self, acquire: Callable[[], Coroutine[Any, Any, H]]) -> None:
        self._acquire = acquire
        self._held: H | None = None

    def __await__(self) -> Generator[Any, Any, H]:
        return self._acquire().__await__()

    async def __aenter__(self) -> H:
        self._held = await self._acquire()
        return self._held

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._held is not None:
            await self._held.__aexit__(kind, error, traceback)


class Open(Protocol):
    def close(self) -> None: ...


class Granted(Protocol):
    def __exit__(self, *exception: object) -> None: ...
