"""A panic in any export is an `Internal`, and nothing is broken by it."""

import asyncio
import re
from pathlib import Path

import pytest

import leasehold._leasehold as native
from leasehold import errors
from leasehold._leasehold import trial
from leasehold._settle import settle

SOURCES = Path(__file__).parent.parent / "src"

# How each export is called. One that is missing here fails the test below.
CALLS = {
    "version": native.version,
    "trial.Handle": trial.Handle,
    "trial.Handle.count": trial.Handle().count,
    "trial.Token.release": trial.token().release,
    "trial.Token.slot": lambda token=trial.token(): token.slot,
    "trial.acquire": trial.acquire,
    "trial.alive": trial.alive,
    "trial.ask": lambda: trial.ask(len, "a"),
    "trial.ask_aio": lambda: trial.ask_aio(len, "a"),
    "trial.codes": trial.codes,
    "trial.echo": lambda: trial.echo(1),
    "trial.fail": lambda: trial.fail("busy", ""),
    "trial.hop_aio": trial.hop_aio,
    "trial.number": trial.number,
    "trial.panic_aio": lambda: trial.panic_aio(0),
    "trial.panic_blocking": lambda: trial.panic_blocking(0),
    "trial.panic_next": trial.panic_next,
    "trial.release": lambda token=trial.token(): trial.release(token),
    "trial.sleep": lambda: trial.sleep(0),
    "trial.sleep_aio": lambda: trial.sleep_aio(0),
    "trial.token": trial.token,
}


def exports(holder, prefix=""):
    for name, it in vars(holder).items():
        if name.startswith("_"):
            continue
        if name == "trial":
            yield from exports(it, "trial.")
        elif isinstance(it, type):
            if it.__new__ is not object.__new__ and prefix + name in CALLS:
                yield prefix + name
            yield from exports(it, f"{prefix}{name}.")
        else:
            yield prefix + name


def test_the_table_is_complete():
    assert set(CALLS) | {"Pending.abort", "Pending.future"} == set(exports(native))


@pytest.mark.parametrize("name", sorted(CALLS))
def test_a_panic_in_an_export(name):
    trial.panic_next()
    with pytest.raises(errors.Internal, match="panic: as the test asked for"):
        CALLS[name]()
    assert trial.number() == 7


async def touch_a_pending_call():
    pending = trial.sleep_aio(10)
    for touch in (lambda: pending.future, pending.abort):
        trial.panic_next()
        with pytest.raises(errors.Internal):
            touch()
    pending.abort()


def test_a_panic_in_a_pending_call():
    asyncio.run(touch_a_pending_call())


@pytest.mark.parametrize("seconds", [0, 0.01])
def test_a_panic_in_a_future(seconds):
    with pytest.raises(errors.Internal, match="after a while"):
        trial.panic_blocking(seconds)

    async def main():
        with pytest.raises(errors.Internal, match="after a while"):
            await settle(trial.panic_aio(seconds))
        return await settle(trial.sleep_aio(0.001))

    assert asyncio.run(main()) == 0.001
    assert trial.sleep(0.001) == 0.001


def test_a_panic_in_the_answer_of_the_bridge_loses_nothing(capsys):
    """The loop's own call into Rust panics once: it is reported, and the next ring delivers."""
    heard = []

    async def main():
        asyncio.get_running_loop().set_exception_handler(lambda _, context: heard.append(context["exception"]))
        first = trial.sleep_aio(0.02)
        trial.panic_next()
        await asyncio.sleep(0.05)
        await settle(trial.sleep_aio(0.001))
        return await first.future

    assert asyncio.run(asyncio.wait_for(main(), 5)) == 0.02
    assert [type(it) for it in heard] == [errors.Internal]


def test_every_export_of_the_source_is_guarded():
    bodies = 0
    for source in SOURCES.glob("*.rs"):
        text = source.read_text()
        methods = re.findall(r"^#\[pymethods\]\nimpl .*?^}", text, re.M | re.S)
        functions = re.findall(r"^#\[pyfunction\].*?^}", text, re.M | re.S)
        for body in functions + [it for block in methods for it in re.findall(r"^    (?:pub )?fn .*?^    }", block, re.M | re.S)]:
            bodies += 1
            assert "guard(||" in body, f"{source.name}: {body.splitlines()[:3]}"
    assert bodies > 20
