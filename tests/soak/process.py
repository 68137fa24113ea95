"""One of the four processes of the soak: reads what it shall do, prints what it did, a JSON object a line."""

import faulthandler
import json
import os
import signal
import sys
import threading

from members import PoolCopies, Tags
from traffic import Log, Traffic, Watch


def resources():
    with open("/proc/self/status") as status:
        rss = next(int(line.split()[1]) for line in status if line.startswith("RssAnon"))
    with open("/proc/self/maps") as maps:
        mappings = sum(1 for _ in maps)
    return {"descriptors": len(os.listdir("/proc/self/fd")), "threads": len(os.listdir("/proc/self/task")),
            "mappings": mappings, "RssAnon, KiB": rss}


def report(log, over):
    """Once a second, so that the parent sees that we live."""
    while not over.wait(1):
        with log._lock:
            counts = dict(log.counts)
        log.say(counts=counts, resources=resources())


def main():
    faulthandler.enable()  # says where it crashed
    # The parent asks where we hang before it gives us up.
    faulthandler.register(signal.SIGUSR1, file=sys.stderr, all_threads=True)
    options = json.loads(sys.argv[1])
    log = Log()
    watch = Watch(log)
    me, life, pause = options["me"], options["life"], options["pause"]
    nodes = [Traffic(transport, me, life, log, watch, pause) for transport in options["transports"]]
    tags = Tags(me, life, log, watch, pause, options["ports"])
    pool = PoolCopies(me, life, log, watch, pause, options["store"])
    log.say(addresses={node.transport: node.node.address for node in nodes})
    everything = nodes + [tags, pool]
    over = threading.Event()
    threading.Thread(target=report, args=(log, over), daemon=True).start()
    started = False
    for line in sys.stdin:
        order = json.loads(line)
        for node in nodes:
            node.addresses = {int(n): there[node.transport] for n, there in order["addresses"].items()}
        tags.addresses = {int(n): tuple(ports) for n, ports in order["ports"].items()}
        if not started:
            started = True
            for one in everything:
                one.start()
        if order.get("end"):
            break
    for one in everything:
        one.end()
    over.set()
    log.say(counts=log.counts, resources=resources(), ended=True)


if __name__ == "__main__":
    main()
