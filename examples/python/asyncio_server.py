"""A server in asyncio: clients ask for rows of a table, and it puts them into the clients' memory.

    python asyncio_server.py            # the server, which starts three clients
    python asyncio_server.py ADDRESS    # a client

No thread polls: the event loop wakes up when a note arrives or a put is done.
"""

import asyncio
import random
import sys

import hmc

ROWS, ROW, CLIENTS, QUESTIONS = 1000, 4096, 3, 50


def row(index):
    return bytes([index % 251]) * ROW


async def answer(table, note):
    index, slot = (int(word) for word in note.data.split())
    inbox = note.peer.open("inbox")
    await inbox[slot * ROW : (slot + 1) * ROW].start_put(table[index * ROW : (index + 1) * ROW])
    note.peer.notify(b"%d" % slot)


async def serve():
    with hmc.Node(name="server", listen="tcp://127.0.0.1:0") as node:
        table = node.allocate(ROWS * ROW)
        memoryview(table)[:] = b"".join(row(index) for index in range(ROWS))
        clients = [await asyncio.create_subprocess_exec(sys.executable, __file__, node.address)
                   for _ in range(CLIENTS)]
        answers = []
        async for note in node.notifications():
            answers.append(asyncio.ensure_future(answer(table, note)))
            if len(answers) == CLIENTS * QUESTIONS:
                break
        await asyncio.wait_for(asyncio.gather(*answers), 120)
        for client in clients:
            assert await asyncio.wait_for(client.wait(), 120) == 0
    print("answered {} questions of {} clients".format(len(answers), CLIENTS))


async def ask(address):
    with hmc.Node() as node:
        inbox = node.allocate(QUESTIONS * ROW, name="inbox")
        server = node.connect(address)
        wanted = [random.randrange(ROWS) for _ in range(QUESTIONS)]
        for slot, index in enumerate(wanted):
            server.notify(b"%d %d" % (index, slot))
        left = set(range(QUESTIONS))
        async for note in node.notifications():
            slot = int(note.data)
            assert bytes(inbox[slot * ROW : (slot + 1) * ROW]) == row(wanted[slot])
            left.remove(slot)
            if not left:
                break


if __name__ == "__main__":
    asyncio.run(ask(sys.argv[1]) if len(sys.argv) > 1 else serve())
