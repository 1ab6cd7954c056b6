"""The Python worker: the package `leasehold`, and threads. Its conversation is described in crew.mjs."""

from __future__ import annotations

import json
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import leasehold


class Worker:
    """Each method but the first is a verb."""

    def __init__(self, url: str, namespace: str, lockTtl: int, wallet: dict[str, Any], patience: int) -> None:
        self._lh = leasehold.open(url, namespace=namespace, lock_ttl=lockTtl / 1000)
        self._timeout = patience / 1000
        times = {"ttl": "ttl", "max_age": "maxAge", "settle": "settle"}
        options = {name: wallet["options"][there] / 1000 for name, there in times.items()}
        self._tokens = self._lh.tokens(wallet["name"], source=lambda _: wallet["tokens"], **options)
        # The locks and selections that it has, by the name that they were given.
        self._had: dict[str, Any] = {}

    def contend(self, name: str, times: int, file: str) -> None:
        lock = self._lh.lock(name, timeout=self._timeout)
        for _ in range(times):
            with lock.acquire() as locked, open(file, "a", buffering=1) as shared:
                shared.write(f"in {locked.fence}\n")
                time.sleep(0.001)
                shared.write(f"out {locked.fence}\n")

    def hold(self, name: str, priority: int = 0) -> str:
        locked = self._lh.lock(name).acquire(timeout=self._timeout, priority=priority, steal=priority > 0)
        self._had[name] = locked
        return str(locked.fence)

    def yield_(self, name: str) -> bool:
        locked = self._had[name]
        locked.claimed()
        held = locked.held
        locked.release()
        return bool(held)

    def release(self, name: str) -> None:
        self._had[name].release()

    def take(self, limit: dict[str, Any], cost: str, times: int) -> int:
        every = self._limit(**limit)
        with ThreadPoolExecutor(times) as threads:
            answers = list(threads.map(lambda _: every.take(cost), range(times)))
        return sum(answer["allowed"] for answer in answers)

    def remaining(self, limit: dict[str, Any]) -> str:
        return str(self._limit(**limit).remaining())

    def reserve(self, limit: dict[str, Any], cost: str, ttl: int) -> str:
        return self._limit(**limit).reserve(cost, ttl=ttl / 1000).hand_over()

    def renew(self, limit: dict[str, Any], id: str, ttl: int) -> None:
        self._limit(**limit).renew_reservation(id, ttl / 1000)

    def commit(self, limit: dict[str, Any], id: str) -> None:
        self._limit(**limit).commit_reservation(id)

    def refund(self, limit: dict[str, Any], id: str) -> None:
        self._limit(**limit).refund_reservation(id)

    def select(self, name: str, target: str, timeout: int | None = None) -> list[str]:
        selection = self._tokens.select(target, timeout=self._timeout if timeout is None else timeout / 1000)
        self._had[name] = selection
        return [token["id"] for token in selection.tokens]

    def spent(self, name: str) -> None:
        self._had[name].spent()

    def close(self) -> None:
        self._lh.close()

    def _limit(self, name: str, period: int, **options: Any) -> leasehold.Limit:
        return self._lh.limit(name, period=period / 1000, **options)


def carry_out(worker: Worker, number: int, verb: str, what: dict[str, Any]) -> None:
    try:
        # What is a keyword has a line below it.
        answer = getattr(worker, "yield_" if verb == "yield" else verb)(**what)
        say({"number": number, "answer": answer})
    except leasehold.LeaseholdError as error:
        say({"number": number, "code": error.code})
    except Exception as error:
        say({"number": number, "code": repr(error)})


_output = threading.Lock()


def say(message: dict[str, Any]) -> None:
    with _output:
        print(json.dumps(message), flush=True)


def main() -> None:
    worker = Worker(**json.loads(sys.stdin.readline()))
    say({"ready": True})
    for line in sys.stdin:
        command = json.loads(line)
        number, verb = command.pop("number"), command.pop("verb")
        threading.Thread(target=carry_out, args=(worker, number, verb, command), daemon=True).start()
    worker.close()


if __name__ == "__main__":
    main()
