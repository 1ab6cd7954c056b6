"""The stand-in of leasehold.mjs in Python, over Redis only: found before the real package through PYTHONPATH."""

import socket
import time
from contextlib import contextmanager
from urllib.parse import urlsplit

FREE = "standin:free"


def open(url, namespace):
    return Leasehold(url)


class Leasehold:
    def __init__(self, url):
        self._address = (urlsplit(url).hostname, urlsplit(url).port)

    def pool(self, name, slots, ttl, read_nonce):
        if self.command("SET", "standin:filled", "1", "NX") == "OK":
            for slot in slots:
                self.command("RPUSH", FREE, f"{slot} {read_nonce(slot)}")
        return Pool(self)

    def command(self, *words):
        """One connection a command: slow, and safe with threads."""
        with socket.create_connection(self._address) as connection, connection.makefile("rb") as replies:
            request = f"*{len(words)}\r\n" + "".join(f"${len(word)}\r\n{word}\r\n" for word in words)
            connection.sendall(request.encode())
            kind, text = replies.read(1), replies.readline().strip().decode()
            if kind == b"-":
                raise RuntimeError(text)
            if kind == b"$":
                return None if text == "-1" else replies.read(int(text)).decode()
            return text

    def close(self):
        pass


class Pool:
    def __init__(self, leasehold):
        self._leasehold = leasehold

    @contextmanager
    def acquire(self, timeout):
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            entry = self._leasehold.command("LPOP", FREE)
            if entry:
                lease = Lease(entry)
                try:
                    yield lease
                finally:
                    self._leasehold.command("RPUSH", FREE, f"{lease.slot} {lease.next}")
                return
            time.sleep(0.001)
        raise TimeoutError("no relayer came free")


class Lease:
    def __init__(self, entry):
        self.slot, nonce = entry.split(" ")
        self.nonce = self.next = int(nonce)

    def used(self):
        self.next = self.nonce + 1

    def unused(self):
        pass

    rejected = unknown = unused
