"""Four processes add up their arrays around a ring: a reduce-scatter, then an allgather.

Each process puts straight into its right neighbour's memory. A note says that the data is there.
"""

import multiprocessing

import numpy

import hmc

WORLD = 4
PART = 250_000  # numbers in each part
BYTES = PART * 8


def part(index):
    """Where a part lies, in bytes."""
    start = (index % WORLD) * BYTES
    return slice(start, start + BYTES)


def add_up(rank, node, right):
    """Leave the sum of all processes' numbers in the memory of each."""
    numbers = node.allocate(WORLD * BYTES, name="numbers")
    arrived = node.allocate(WORLD * BYTES, name="arrived")
    mine = numpy.asarray(numbers).view(numpy.float64).reshape(WORLD, PART)
    inbox = numpy.asarray(arrived).view(numpy.float64).reshape(WORLD, PART)
    mine[:] = numpy.arange(WORLD * PART).reshape(WORLD, PART) * (rank + 1)
    right = right()  # every process has its memory ready
    theirs, their_inbox = right.open("numbers"), right.open("arrived")
    # Each part grows on its way around, until rank r holds the sum of part r + 1.
    for step in range(WORLD - 1):
        their_inbox[part(step)].put(numbers[part(rank - step)])
        right.notify(b"part")
        node.next_note(timeout=60)  # from the left
        mine[(rank - step - 1) % WORLD] += inbox[step]
    # The sums go around once more, straight to where they belong.
    for step in range(WORLD - 1):
        theirs[part(rank + 1 - step)].put(numbers[part(rank + 1 - step)])
        right.notify(b"sum")
        node.next_note(timeout=60)
    factor = WORLD * (WORLD + 1) // 2
    assert numpy.array_equal(mine.reshape(-1), numpy.arange(WORLD * PART) * float(factor))
    return theirs.path


def member(rank, mail, everybody):
    with hmc.Node(listen="tcp://127.0.0.1:0") as node:

        def right():
            mail[rank - 1].put(node.address)  # -1 is the last
            everybody.wait(60)
            return node.connect(mail[rank].get(timeout=60))

        path = add_up(rank, node, right)
        everybody.wait(60)
    if rank == 0:
        print("{} processes added {} numbers each, by {}".format(WORLD, WORLD * PART, path))


if __name__ == "__main__":
    spawn = multiprocessing.get_context("spawn")
    mail, everybody = [spawn.Queue() for _ in range(WORLD)], spawn.Barrier(WORLD)
    processes = [spawn.Process(target=member, args=(rank, mail, everybody), daemon=True)
                 for rank in range(WORLD)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0] * WORLD
