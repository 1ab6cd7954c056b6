import asyncio
import contextvars
import functools
import threading
import time

import pytest

from conftest import until
from leasehold import errors
from leasehold._leasehold import trial
from leasehold._settle import settle

ADDRESS = "0x52908400098527886E0F7030069857D2E4169EE7"


async def later(address):
    await asyncio.sleep(0.001)
    return len(address)


async def fails(address):
    await asyncio.sleep(0.001)
    raise KeyError(address)


def ask_aio(read_nonce):
    async def main():
        return await settle(trial.ask_aio(read_nonce, ADDRESS))

    return asyncio.run(main())


def test_a_plain_function():
    assert trial.ask(len, ADDRESS) == 42
    assert ask_aio(len) == 42
    assert trial.ask(lambda _: 2**64 - 1, ADDRESS) == 2**64 - 1


@pytest.mark.parametrize("read_nonce", [later, functools.partial(later), lambda address: later(address)])
def test_a_coroutine_function(read_nonce):
    assert ask_aio(read_nonce) == 42


def test_a_plain_function_does_not_hold_up_the_loop():
    async def main():
        call = asyncio.create_task(settle(trial.ask_aio(lambda _: time.sleep(0.2) or 1, ADDRESS)))
        begun = time.monotonic()
        await asyncio.sleep(0.01)
        assert time.monotonic() - begun < 0.15
        return await call

    assert asyncio.run(main()) == 1


def test_its_exception_is_the_cause():
    def refuses(address):
        raise KeyError(address)

    for ask in (functools.partial(trial.ask, refuses, ADDRESS), lambda: ask_aio(refuses), lambda: ask_aio(fails)):
        with pytest.raises(errors.NonceUnavailable) as caught:
            ask()
        assert type(caught.value.__cause__) is KeyError
        assert caught.value.__cause__.args == (ADDRESS,)


def test_an_answer_of_a_wrong_type_is_named():
    with pytest.raises(errors.NonceUnavailable) as caught:
        trial.ask(lambda _: {"nonce": object()}, ADDRESS)
    assert "read_nonce.nonce is a object" in str(caught.value.__cause__)


def test_a_coroutine_function_in_the_blocking_api():
    with pytest.raises(errors.NonceUnavailable) as caught:
        trial.ask(later, ADDRESS)
    assert "leasehold.aio" in str(caught.value.__cause__)


def test_a_callback_may_call_back():
    assert trial.ask(lambda _: int(trial.sleep(0.01) * 100), ADDRESS) == 1


def test_a_cancelled_call_cancels_the_coroutine():
    ends = []

    async def never(_):
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            ends.append("cancelled")
            raise

    async def main():
        call = asyncio.create_task(settle(trial.ask_aio(never, ADDRESS)))
        await asyncio.sleep(0.02)
        call.cancel()
        await asyncio.sleep(0.05)

    asyncio.run(main())
    assert ends == ["cancelled"]


def test_a_coroutine_runs_on_its_loop_and_in_its_context():
    chain = contextvars.ContextVar("chain")

    async def read_nonce(_):
        return [threading.get_ident(), chain.get()]

    async def main():
        chain.set("eth:1")
        return await settle(trial.ask_aio(read_nonce, ADDRESS))

    assert asyncio.run(main()) == [threading.get_ident(), "eth:1"]


def test_a_coroutine_whose_loop_closed_lets_go():
    async def never(_):
        await asyncio.sleep(30)

    async def main():
        pending = trial.ask_aio(never, ADDRESS)
        await asyncio.sleep(0.02)
        return pending

    loop = asyncio.new_event_loop()
    pending = loop.run_until_complete(main())
    loop.close()
    until(lambda: trial.alive() == 0)
    del pending
