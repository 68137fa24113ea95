"""How processes that know one address find each other.

Rank 0 collects a line from each of the others and sends all of them back. Lines are JSON; with
HMC_SECRET set, each proves that its sender knows it.
"""

import hashlib
import hmac
import json
import os
import selectors
import socket
import threading
import time

from .errors import DeadlineExceeded, HMCError, InvalidArgument, PeerLost, PermissionDenied

_LONGEST = 1 << 20


def gather(store, rank, world, mine, timeout):
    """What every rank calls with its own `mine`; answers the list of all, by rank."""
    host, port = _address(store)
    deadline = time.monotonic() + timeout
    if rank == 0:
        return _collect(host, port, world, mine, deadline)
    return _report(host, port, rank, mine, deadline)


def _address(store):
    host, colon, port = store.rpartition(":")
    if not colon or not port.isdigit():
        raise InvalidArgument("the store %r is no address: it looks like 10.0.0.1:29500" % store)
    return host.strip("[]"), int(port)


def _collect(host, port, world, mine, deadline):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener, _Guests() as guests:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(world)
        found = guests.welcome(listener, world, mine, deadline)
        everybody = [found[rank] for rank in range(world)]
        guests.tell({"members": everybody})
    return everybody


class _Guests:
    """Who has come to rank 0. A stranger, who says nothing or nonsense, keeps nobody waiting."""

    def __init__(self):
        self._selector = selectors.DefaultSelector()
        self._ranks = {}  # rank: its line, and the nonce that it wants to see again
        self._turned_away = ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for line, _ in self._ranks.values():
            line.close()
        for key in list(self._selector.get_map().values()):
            if key.data is not None:
                key.data.line.close()
        self._selector.close()

    def welcome(self, listener, world, mine, deadline):
        """Waits until every rank has come. Answers what they say of themselves, by rank."""
        found = {0: mine}
        self._selector.register(listener, selectors.EVENT_READ)
        while len(found) < world:
            ready = self._selector.select(_left(deadline))
            if not ready and time.monotonic() >= deadline:
                missing = sorted(set(range(world)) - set(found))
                raise DeadlineExceeded("no word from rank %s in time%s" % (
                    ", ".join(map(str, missing)), self._turned_away))
            for key, _ in ready:
                try:
                    self._look(key, listener, world, found, deadline)
                except (HMCError, ValueError, KeyError, TypeError, OSError) as error:
                    self._turned_away = "; somebody was turned away: %s" % error
                    if key.data is not None:
                        self._selector.unregister(key.fileobj)
                        key.data.line.close()
        return found

    def _look(self, key, listener, world, found, deadline):
        if key.data is None:
            guest = _Guest(_Line(listener.accept()[0], deadline))
            self._selector.register(guest.line.connection, selectors.EVENT_READ, guest)
            return
        said = key.data.said()
        if said is None:
            return
        line, rank, nonce = key.data.line, said["rank"], said["nonce"]
        if rank in found or not 0 < rank < world:
            sentence = "rank %r of %d is taken or is none" % (rank, world)
            line.send({"refused": sentence}, nonce)
            raise InvalidArgument(sentence)
        self._selector.unregister(line.connection)
        found[rank] = said["member"]
        self._ranks[rank] = line, nonce

    def tell(self, value):
        for rank, (line, nonce) in self._ranks.items():
            try:
                line.send(value, nonce)
            except OSError as error:
                raise PeerLost("rank %d was gone before all had come: %s" % (rank, error))


class _Guest:
    """Somebody who has dialled rank 0, and was asked to prove that he knows the secret."""

    def __init__(self, line):
        self.line = line
        self._nonce = os.urandom(16).hex()
        line.send(self._nonce)

    def said(self):
        """None until all of it is there."""
        text = self.line.look()
        if text is None:
            return None
        try:
            return self.line.proven(text, self._nonce)
        except PermissionDenied:
            # He cannot believe it, and so knows why.
            self.line.send({"refused": "another HMC_SECRET"})
            raise


def _report(host, port, rank, mine, deadline):
    line = _Line(_dialled(host, port, deadline), deadline)
    try:
        challenge = line.receive()
        nonce = os.urandom(16).hex()
        line.send({"rank": rank, "member": mine, "nonce": nonce}, challenge)
        answer = line.receive(nonce)
    finally:
        line.close()
    if "refused" in answer:
        raise InvalidArgument("rank 0 at %s:%d refused us: %s" % (host, port, answer["refused"]))
    return answer["members"]


def _dialled(host, port, deadline):
    nobody_sets_this = threading.Event()
    while True:
        try:
            return socket.create_connection((host, port), timeout=_left(deadline))
        except OSError as error:
            if _left(deadline) <= 0.05:
                raise DeadlineExceeded("rank 0 does not answer at %s:%d: %s" % (host, port, error))
        # Nothing tells us when a listener appears: look again in a moment.
        nobody_sets_this.wait(0.02)


def _left(deadline):
    return max(deadline - time.monotonic(), 0.001)


class _Line:
    """Messages over a socket, each a proof and a JSON value in one line."""

    def __init__(self, connection, deadline):
        self.connection = connection
        self.deadline = deadline
        self.unread = b""

    def send(self, value, nonce=""):
        text = json.dumps(value)
        self.connection.settimeout(_left(self.deadline))
        self.connection.sendall(("%s %s\n" % (_proof(nonce, text), text)).encode())

    def receive(self, nonce=None):
        """The next message; with a nonce, one that proves itself by it."""
        line = None
        while line is None:
            line = self.look()
        self.unread = b""
        return self.proven(line, nonce)

    def look(self):
        """The next line, or None while it is not complete. Waits for some of it."""
        self.connection.settimeout(_left(self.deadline))
        try:
            more = self.connection.recv(65536)
        except socket.timeout:
            raise DeadlineExceeded("the other side of the rendezvous fell silent")
        self.unread += more
        if not more or len(self.unread) > _LONGEST:
            raise InvalidArgument("this is no rendezvous of hmc.collective: %r" % self.unread[:40])
        # The two sides take turns, so that nothing follows it.
        return self.unread[:-1] if self.unread.endswith(b"\n") else None

    @staticmethod
    def proven(line, nonce):
        proof, space, text = line.decode().partition(" ")
        if not space:
            raise InvalidArgument("this is no rendezvous of hmc.collective: %r" % line[:40])
        if nonce is not None and not hmac.compare_digest(proof, _proof(nonce, text)):
            raise PermissionDenied("HMC_SECRET is not the same at rank 0 and at all others")
        return json.loads(text)

    def close(self):
        self.connection.close()


def _proof(nonce, text):
    secret = os.environ.get("HMC_SECRET", "")
    return hmac.new(secret.encode(), (nonce + text).encode(), hashlib.sha256).hexdigest()
