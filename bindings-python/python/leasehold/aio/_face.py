"""What all faces have in common."""

from __future__ import annotations

from asyncio import current_task
from collections.abc import Callable, Coroutine, Generator
from contextlib import AbstractAsyncContextManager
from inspect import isawaitable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Protocol, TypeVar
from weakref import ref

from .._handles import refuse
from .._settle import call, note, outlived
from ..errors import InvalidArgument, LeaseholdError, Lost

if TYPE_CHECKING:
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

    def __reduce__(self) -> NoReturn:
        refuse(self)


class Opened(Face[O]):
    """What is closed at the end of a block."""

    __slots__ = ()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._core.__exit__(kind, error, traceback)


class Held(Face[G]):
    """What is given back at the end of a block."""

    __slots__ = ()

    async def __aenter__(self) -> Self:
        self._core.__enter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            await call(self._core.__exit__, kind, error, traceback)
        except LeaseholdError as late:
            # A loss has the error of the block as its context. What is no `Exception`, as a cancellation, is not for a library to replace.
            if error is None or (isinstance(late, Lost) and isinstance(error, Exception)):
                raise
            note(error, late)


async def under(held: H, body: Callable[[H], Any]) -> Any:
    """Runs a body under what is held for it, and gives what it gives."""
    with outlived() as gave:
        async with held:
            gave.append(await ended(body(held)))
    return gave[0]


async def ended(given: Any) -> Any:
    """What a body gave: a coroutine is awaited."""
    return await given if isawaitable(given) else given


class Acquiring(Coroutine[Any, Any, H], AbstractAsyncContextManager[H, None]):
    """An acquisition that begins when it is awaited, made a task, or entered with `async with`: for one of these, once."""

    __slots__ = ("_acquire", "_held", "_user")

    def __init__(self, acquire: Coroutine[Any, Any, H]) -> None:
        # It is what Python complains of if nobody awaits.
        self._acquire = acquire
        self._user: object = None
        self._held: H | None = None

    def __await__(self) -> Generator[Any, Any, H]:
        return self._used_by(object()).__await__()

    # What a task does that was made of this.
    def send(self, value: Any, /) -> Any:
        return self._used_by(ref(current_task())).send(value)

    def throw(self, *error: Any) -> Any:
        return self._used_by(ref(current_task())).throw(*error)

    def close(self) -> None:
        self._acquire.close()

    def _used_by(self, user: object) -> Coroutine[Any, Any, H]:
        if self._user is None:
            self._user = user
        if self._user != user:
            name = getattr(self._acquire, "__name__", "acquire")
            raise InvalidArgument(f"what {name}() gives is good for one use, and this was used already: call {name}() again")
        return self._acquire

    async def __aenter__(self) -> H:
        self._held = await self._used_by(object())
        return await self._held.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._held is not None:
            await self._held.__aexit__(kind, error, traceback)


class Open(Protocol):
    def __exit__(self, *exception: object) -> None: ...


class Granted(Protocol):
    def __enter__(self) -> Any: ...
    def __exit__(self, *exception: object) -> None: ...
