"""The Python sender: the package `leasehold`, and threads. Its conversation with the demo is described in crew.mjs."""

from __future__ import annotations

import json
import re
import sys
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import leasehold

NAMESPACE = "eth:31337"
ACQUIRE_TIMEOUT_SECONDS = 10.0
RPC_TIMEOUT_SECONDS = 10.0

# The same for every payment, and the same as in wallet.mjs.
FEES = {"gas": "0x5208", "maxFeePerGas": "0x2540be400", "maxPriorityFeePerGas": "0x3b9aca00"}


def main() -> None:
    job = json.loads(sys.stdin.readline())
    node = Node(job["rpcUrl"], job["latencyMs"] / 1000)
    lh = leasehold.open(job["redisUrl"], namespace=NAMESPACE)
    try:
        times = {"ttl": job["ttlMs"] / 1000, "doubt_rest": job["doubtRestMs"] / 1000}
        relayers = lh.pool("relayers", slots=job["relayers"], read_nonce=node.next_nonce, **times)
        # A server that was started a moment ago grants nothing for so long: it may have forgotten leases.
        time.sleep(relayers.inspect()["quiet"])
        say({"ready": True})
        if sys.stdin.readline().strip() != "go":
            return
        with ThreadPoolExecutor(job["concurrency"]) as threads:
            for future in [threads.submit(pay, payment, relayers, node) for payment in job["payments"]]:
                future.result()  # raises what a thread could not report
    finally:
        lh.close()
    say({"done": True})


def pay(payment: dict[str, Any], relayers: Any, node: Node) -> None:
    """Tries one payment once and says what became of it."""
    asked = time.monotonic()
    record: dict[str, Any] = {"payment": payment["number"], "outcome": "unserved"}
    try:
        with relayers.acquire(timeout=ACQUIRE_TIMEOUT_SECONDS) as lease:
            record.update(wait_ms=since(asked), relayer=lease.slot, nonce=str(lease.nonce))
            try:
                node.send(lease.slot, lease.nonce, payment)
                record["outcome"] = "used"
            except Exception as error:
                record.update(outcome=outcome_of(error), error=str(error))
            getattr(lease, record["outcome"])()
    except Exception as error:
        record["error"] = f"{type(error).__name__}: {error}"
        record.setdefault("wait_ms", since(asked))
    say(record)


class Refused(Exception):
    """The node answered that it does not take the call."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Node:
    """JSON-RPC to the node, with a realistic delay, and never twice by itself."""

    def __init__(self, url: str, latency: float) -> None:
        self._url = url
        self._latency = latency
        # The node is on this machine, whatever proxy the environment names.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def send(self, relayer: str, nonce: int, payment: dict[str, Any]) -> str:
        # The accounts are the node's own, which signs with the nonce that it is given.
        transaction = {"from": relayer, "to": payment["to"], "value": payment["value"], "nonce": hex(nonce), **FEES}
        return str(self._call("eth_sendTransaction", [transaction]))

    def next_nonce(self, relayer: str) -> int:
        return int(self._call("eth_getTransactionCount", [relayer, "pending"]), 16)

    def _call(self, method: str, params: list[Any]) -> Any:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        request = urllib.request.Request(self._url, body, {"content-type": "application/json"})
        time.sleep(self._latency / 2)
        try:
            with self._opener.open(request, timeout=RPC_TIMEOUT_SECONDS) as response:
                reply = json.load(response)
        finally:
            time.sleep(self._latency / 2)
        if "error" in reply:
            raise Refused(reply["error"]["code"], reply["error"]["message"])
        return reply["result"]


def outcome_of(error: Exception) -> str:
    """What became of the nonce of a transaction that failed to be sent; as in wallet.mjs."""
    if not isinstance(error, Refused):
        return "unknown"
    text = str(error).lower()
    if re.search("already (known|imported)", text):
        return "used"
    if re.search("nonce too (low|high)|invalid nonce|replacement transaction underpriced", text):
        return "rejected"
    return "unused" if error.code == -32003 else "unknown"


def since(start: float) -> float:
    return round((time.monotonic() - start) * 1000, 3)


_output = threading.Lock()


def say(message: dict[str, Any]) -> None:
    with _output:
        print(json.dumps(message), flush=True)


if __name__ == "__main__":
    main()
