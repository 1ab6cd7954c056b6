"""Functions under a limit."""

import asyncio

import pytest

import leasehold
from leasehold import aio, errors

# Nothing worth mentioning comes back while a test runs.
HOUR = 3600


def test_functions_under_a_limit(lh, place):
    limit = lh.limit("a", max=3, period=HOUR)
    ran = []

    @leasehold.limited(limit, cost=2)
    def send(to, *, value=0):
        """Sends."""
        ran.append((to, value))
        return to

    assert send("0xaa", value=7) == "0xaa" and send.__doc__ == "Sends."
    with pytest.raises(errors.Limited):
        send("0xbb")
    assert ran == [("0xaa", 7)]

    async def main():
        @leasehold.limited(place.open(aio).limit("a", max=3, period=HOUR))
        async def later(to):
            await asyncio.sleep(0)
            return to

        assert await later("0xcc") == "0xcc"
        with pytest.raises(errors.Limited):
            await later("0xdd")

    asyncio.run(main())


def test_a_generator_function_is_charged_when_it_is_called(memory):
    limit = memory.open().limit("a", max=1, period=HOUR)

    @leasehold.limited(limit)
    def count():
        yield from range(3)

    counting = count()
    assert limit.used() == 1
    with pytest.raises(errors.Limited):
        count()
    assert list(counting) == [0, 1, 2]
