"""Two processes: one puts bytes into the other's memory, then notifies it.

    python hello.py            # the receiver, which starts the sender
    python hello.py ADDRESS    # the sender
"""

import subprocess
import sys

import hmc


def receive():
    with hmc.Node(listen="tcp://127.0.0.1:0") as node:
        inbox = node.allocate(1 << 20, name="inbox")  # peers may put and get here
        sender = subprocess.Popen([sys.executable, __file__, node.address])
        note = node.next_note(timeout=60)  # arrives after the data
        text = bytes(inbox[: int(note.data)])
        assert sender.wait(timeout=60) == 0
    assert text == b"hello, memory"
    print("received:", text.decode())


def send(address):
    with hmc.Node() as node:
        peer = node.connect(address)
        inbox = peer.open("inbox")
        inbox.put(b"hello, memory")  # visible at the peer when it returns
        peer.notify(b"13")
        print("sent by", inbox.path, flush=True)


if __name__ == "__main__":
    send(sys.argv[1]) if len(sys.argv) > 1 else receive()
