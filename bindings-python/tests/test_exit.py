"""The interpreter ends while threads are at work: the process ends as it would without them."""

import subprocess
import sys
import textwrap
import time

import pytest

import leasehold

# On Pythons before 3.14 a thread that wants the interpreter meanwhile is ended where it stands, by unwinding its stack, which
# no frame of Rust survives.
BUSY = '''
    import asyncio, leasehold, sys, threading, time

    def busy(*_):
        for _ in range(1000):
            time.sleep(0.001)

    def on_threads(call):
        """For a while, and to the exit."""
        def run():
            while True:
                try:
                    call()
                except (KeyError, leasehold.LeaseholdError):
                    pass

        for _ in range(4):
            threading.Thread(target=run, daemon=True).start()
        spin()

    def spin():
        """So that the others are stopped wherever they are, and not just where they wait."""
        sys.setswitchinterval(0.0001)
        end = time.monotonic() + 0.3
        while time.monotonic() < end:
            pass
'''
SCRIPTS = {
    "a function for nonces": """
        pool = leasehold.open().pool("p", slots=["a"], read_nonce=busy)
        try:
            pool.acquire(timeout=0.1)
        except leasehold.NonceUnavailable:
            print("over")
    """,
    "a source of tokens": """
        wallet = leasehold.open().tokens("w", source=busy)
        try:
            wallet.select(1, timeout=0.1)
        except leasehold.LeaseholdError:
            print("over")
    """,
    "a source that is asked what is spent": """
        class Source:
            def page(self, ask):
                return [{"id": "a", "amount": 1}]

            spent = busy

        wallet = leasehold.open().tokens("w", source=Source(), verify=True)
        try:
            wallet.select(1, timeout=0.1)
        except leasehold.LeaseholdError:
            print("over")
    """,
    "a plain function with asyncio": """
        async def main():
            pool = await leasehold.aio.open().pool("p", slots=["a"], read_nonce=busy)
            try:
                await pool.acquire(timeout=0.1)
            except leasehold.NonceUnavailable:
                print("over")

        asyncio.run(main())
    """,
    "a body under a lock": """
        begun = threading.Event()
        lock = leasehold.open().lock("a")
        threading.Thread(target=lock.run, args=(lambda _: (begun.set(), busy()),), daemon=True).start()
        begun.wait()
        print("over")
    """,
    "a thread that is granted what the exit gives back": """
        pool = leasehold.open().pool("p", slots=["a"])
        held = pool.acquire()
        threading.Thread(target=pool.acquire, daemon=True).start()
        while not pool.statistics()["waiting"]:
            time.sleep(0.001)
        print("over")
    """,
    "threads that are refused": """
        pool = leasehold.open().pool("p", slots=["a"])
        held = pool.acquire()
        on_threads(lambda: pool.acquire(timeout=0))
        print("over")
    """,
    "threads that wait in vain": """
        pool = leasehold.open().pool("p", slots=["a"])
        held = pool.acquire()
        on_threads(lambda: pool.acquire(timeout=0.0001))
        print("over")
    """,
    "bodies that are run again and again": """
        lh = leasehold.open()
        on_threads(lambda: lh.lock(str(threading.get_ident())).run(lambda _: None))
        print("over")
    """,
    "a loop on a thread": """
        async def call(lock):
            while True:
                try:
                    await lock.acquire(timeout=0.0001)
                except leasehold.TimedOut:
                    pass

        async def main():
            lock = leasehold.aio.open().lock("a")
            async with lock.acquire():
                await asyncio.gather(*[call(lock) for _ in range(20)])

        threading.Thread(target=asyncio.run, args=(main(),), daemon=True).start()
        spin()
        print("over")
    """,
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_exit_is_clean(script):
    program = textwrap.dedent(BUSY) + textwrap.dedent(SCRIPTS[script])
    for _ in range(4):
        ended = subprocess.run([sys.executable, "-c", program], timeout=30, capture_output=True, text=True)
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "over\n", "")


def test_what_is_garbage_at_the_exit_gives_back_what_it_has(redis_place):
    lock = redis_place.open(lock_ttl=6).lock("a")
    lock.acquire(timeout=12).release()
    script = f"""
        import leasehold

        class Relayer:
            def __init__(self):
                self.lh = leasehold.open({redis_place.url!r}, namespace={redis_place.namespace!r}, lock_ttl=6)
                self.lock = self.lh.lock("a").acquire(timeout=12)

            def __del__(self):
                self.lock.release()

        relayer = Relayer()
    """
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], timeout=30, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
    begun = time.monotonic()
    lock.acquire(timeout=12).release()
    assert time.monotonic() - begun < 2
