"""What one caller could have at best: an empty script on a connection of its own, answered before the next is sent."""

from __future__ import annotations

import asyncio
import socket
from urllib.parse import urlsplit


class Bare:
    """A connection without a client. A check cannot be answered sooner, nor a pair than in two of these."""

    CHECK = "a bare round trip"
    PAIR = "two bare round trips"

    def __init__(self, url: str) -> None:
        address = urlsplit(url)
        self.socket = socket.create_connection((address.hostname or "127.0.0.1", address.port or 6379))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.command = b"*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n$8\r\nreturn 1\r\n"
        self.check()
        digest = self.answer.split(b"\r\n")[1]
        self.command = b"*3\r\n$7\r\nEVALSHA\r\n$%d\r\n%s\r\n$1\r\n0\r\n" % (len(digest), digest)

    def check(self) -> None:
        self.socket.sendall(self.command)
        self.answer = self.socket.recv(256)

    def pair(self) -> None:
        self.check()
        self.check()

    async def check_in_task(self, _: int = 0) -> None:
        """As :meth:`check`, of a socket that does not block."""
        loop = asyncio.get_running_loop()
        self.socket.setblocking(False)
        await loop.sock_sendall(self.socket, self.command)
        self.answer = await loop.sock_recv(self.socket, 256)

    async def pair_in_task(self, _: int = 0) -> None:
        await self.check_in_task()
        await self.check_in_task()

    def __enter__(self) -> Bare:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()
