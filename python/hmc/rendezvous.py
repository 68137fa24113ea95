"""How processes that know one address find each other.

Rank 0 listens there. Every other rank connects and sends a description of itself; when all have,
rank 0 sends the whole list back. Messages are lines of JSON, each with an HMAC of HMC_SECRET.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import selectors
import socket
import threading
import time

from .errors import DeadlineExceeded, HMCError, InvalidArgument, PeerLost, PermissionDenied

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List

_LONGEST_MESSAGE = 1 << 20


def gather(store: str, rank: int, world: int, mine: Any, timeout: float) -> List[Any]:
    """Exchange `mine` with all ranks, which call this too; return everyone's, in order of rank."""
    host, port = _address(store)
    deadline = time.monotonic() + timeout
    if rank == 0:
        return _serve(host, port, world, mine, deadline)
    return _join(host, port, rank, mine, deadline)


def _address(store):
    host, colon, port = store.rpartition(":")
    if not colon or not port.isdigit():
        raise InvalidArgument("the store %r is no address: it looks like 10.0.0.1:29500" % store)
    return host.strip("[]"), int(port)


def _serve(host, port, world, mine, deadline):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener, _Members() as members:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(world)
        found = members.collect(listener, world, mine, deadline)
        everyone = [found[rank] for rank in range(world)]
        members.send({"members": everyone})
    return everyone


class _Members:
    """The connections to rank 0. One that sends nothing, or nonsense, does not hold up the rest."""

    def __init__(self):
        self._selector = selectors.DefaultSelector()
        self._joined = {}  # rank: its connection, and the nonce that our answer has to carry
        self._rejected = ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for connection, _ in self._joined.values():
            connection.close()
        for key in list(self._selector.get_map().values()):
            if key.data is not None:
                key.data.connection.close()
        self._selector.close()

    def collect(self, listener, world, mine, deadline):
        """Wait until every rank has joined; return their descriptions by rank."""
        found = {0: mine}
        self._selector.register(listener, selectors.EVENT_READ)
        while len(found) < world:
            ready = self._selector.select(_left(deadline))
            if not ready and time.monotonic() >= deadline:
                missing = ", ".join(map(str, sorted(set(range(world)) - set(found))))
                raise DeadlineExceeded("rank %s of %d did not connect in time: start it, or allow "
                                       "a longer timeout%s" % (missing, world, self._rejected))
            for key, _ in ready:
                try:
                    self._handle(key, listener, world, found, deadline)
                except (HMCError, ValueError, KeyError, TypeError, OSError) as error:
                    self._rejected = "; a connection was rejected: %s" % error
                    if key.data is not None:
                        self._selector.unregister(key.fileobj)
                        key.data.connection.close()
        return found

    def _handle(self, key, listener, world, found, deadline):
        if key.data is None:
            pending = _Pending(_Connection(listener.accept()[0], deadline))
            self._selector.register(pending.connection.socket, selectors.EVENT_READ, pending)
            return
        request = key.data.request()
        if request is None:
            return
        connection, rank, nonce = key.data.connection, request["rank"], request["nonce"]
        if rank in found or not 0 < rank < world:
            sentence = "rank %r is taken or not one of 1 to %d" % (rank, world - 1)
            connection.send({"refused": sentence}, nonce)
            raise InvalidArgument(sentence)
        self._selector.unregister(connection.socket)
        found[rank] = request["member"]
        self._joined[rank] = connection, nonce

    def send(self, value):
        for rank, (connection, nonce) in self._joined.items():
            try:
                connection.send(value, nonce)
            except OSError as error:
                raise PeerLost("rank %d disconnected before all ranks had joined: %s"
                               % (rank, error))


class _Pending:
    """A connection that has been challenged to prove that it knows the secret."""

    def __init__(self, connection):
        self.connection = connection
        self._nonce = os.urandom(16).hex()
        connection.send(self._nonce)

    def request(self):
        """What it asks for, or None until all of it is here."""
        line = self.connection.poll()
        if line is None:
            return None
        try:
            return self.connection.verify(line, self._nonce)
        except PermissionDenied:
            # Without the secret this answer fails verification too, which tells the peer why.
            self.connection.send({"refused": "another HMC_SECRET"})
            raise


def _join(host, port, rank, mine, deadline):
    connection = _Connection(_connect(host, port, deadline), deadline)
    try:
        challenge = connection.receive()
        nonce = os.urandom(16).hex()
        connection.send({"rank": rank, "member": mine, "nonce": nonce}, challenge)
        answer = connection.receive(nonce)
    finally:
        connection.close()
    if "refused" in answer:
        raise InvalidArgument("rank 0 at %s:%d refused us: %s" % (host, port, answer["refused"]))
    return answer["members"]


def _connect(host, port, deadline):
    never = threading.Event()
    while True:
        try:
            return socket.create_connection((host, port), timeout=_left(deadline))
        except OSError as error:
            if _left(deadline) <= 0.05:
                raise DeadlineExceeded("rank 0 does not answer at %s:%d: %s; start it, or allow a "
                                       "longer timeout" % (host, port, error))
        # No event says that a listener has appeared, so try again soon.
        never.wait(0.02)


def _left(deadline):
    return max(deadline - time.monotonic(), 0.001)


class _Connection:
    """Messages over a socket: each is one line, an HMAC and a JSON value."""

    def __init__(self, connected, deadline):
        self.socket = connected
        self.deadline = deadline
        self.unread = b""

    def send(self, value, nonce=""):
        text = json.dumps(value)
        self.socket.settimeout(_left(self.deadline))
        self.socket.sendall(("%s %s\n" % (_hmac(nonce, text), text)).encode())

    def receive(self, nonce=None):
        """The next message. With a nonce, its HMAC must cover that nonce."""
        line = None
        while line is None:
            line = self.poll()
        self.unread = b""
        return self.verify(line, nonce)

    def poll(self):
        """The next line, or None while it is incomplete. Waits for more bytes."""
        self.socket.settimeout(_left(self.deadline))
        try:
            more = self.socket.recv(65536)
        except socket.timeout:
            raise DeadlineExceeded("the other side of the rendezvous stopped answering")
        self.unread += more
        if not more or len(self.unread) > _LONGEST_MESSAGE:
            raise InvalidArgument("not a rendezvous of hmc.collective: %r" % self.unread[:40])
        # The two sides take turns, so nothing follows the end of a line.
        return self.unread[:-1] if self.unread.endswith(b"\n") else None

    @staticmethod
    def verify(line, nonce):
        digest, space, text = line.decode().partition(" ")
        if not space:
            raise InvalidArgument("not a rendezvous of hmc.collective: %r" % line[:40])
        if nonce is not None and not hmac.compare_digest(digest, _hmac(nonce, text)):
            raise PermissionDenied("rank 0 and this rank have different secrets: set HMC_SECRET to "
                                   "the same value for all ranks")
        return json.loads(text)

    def close(self):
        self.socket.close()


def _hmac(nonce, text):
    secret = os.environ.get("HMC_SECRET", "")
    return hmac.new(secret.encode(), (nonce + text).encode(), hashlib.sha256).hexdigest()
