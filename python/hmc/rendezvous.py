"""How processes that know one address find each other: rank 0 collects a line from each and sends all
of them back. Lines are JSON; with HMC_SECRET set, each proves that its sender knows it."""

import hashlib
import hmac
import json
import os
import socket
import threading
import time

from .errors import DeadlineExceeded, InvalidArgument, PermissionDenied

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
    found = {0: mine}
    lines = {}
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as door:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind((host, port))
        door.listen(world)
        try:
            while len(found) < world:
                line = _Line(_accepted(door, deadline, world, found), deadline)
                nonce = os.urandom(16).hex()
                line.send(nonce)
                said = line.receive(nonce)
                rank = said["rank"]
                if rank in found or not 0 < rank < world:
                    line.send({"refused": "rank %r of %d is taken or is none" % (rank, world)},
                              said["nonce"])
                    line.close()
                    continue
                found[rank] = said["member"]
                lines[rank] = (line, said["nonce"])
            everybody = [found[rank] for rank in range(world)]
            for line, nonce in lines.values():
                line.send({"members": everybody}, nonce)
        finally:
            for line, _ in lines.values():
                line.close()
    return everybody


def _accepted(door, deadline, world, found):
    door.settimeout(_left(deadline))
    try:
        return door.accept()[0]
    except socket.timeout:
        missing = sorted(set(range(world)) - set(found))
        raise DeadlineExceeded("no word from rank %s in time" % ", ".join(map(str, missing)))


def _report(host, port, rank, mine, deadline):
    line = _Line(_dialled(host, port, deadline), deadline)
    try:
        challenge = line.receive_plain()
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
        self.stream = connection.makefile("rb")

    def send(self, value, nonce=""):
        text = json.dumps(value)
        self.connection.settimeout(_left(self.deadline))
        self.connection.sendall(("%s %s\n" % (_proof(nonce, text), text)).encode())

    def receive_plain(self):
        return json.loads(self._read()[1])

    def receive(self, nonce):
        proof, text = self._read()
        if not hmac.compare_digest(proof, _proof(nonce, text)):
            raise PermissionDenied("a rank with another HMC_SECRET wants to join")
        return json.loads(text)

    def _read(self):
        self.connection.settimeout(_left(self.deadline))
        try:
            line = self.stream.readline(_LONGEST)
        except socket.timeout:
            raise DeadlineExceeded("the other side of the rendezvous fell silent")
        proof, space, text = line.decode().rstrip("\n").partition(" ")
        if not space:
            raise InvalidArgument("this is no rendezvous of hmc.collective: %r" % line[:40])
        return proof, text

    def close(self):
        self.stream.close()
        self.connection.close()


def _proof(nonce, text):
    secret = os.environ.get("HMC_SECRET", "")
    return hmac.new(secret.encode(), (nonce + text).encode(), hashlib.sha256).hexdigest()
