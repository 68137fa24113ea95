"""Programs of the ranks of a torch.distributed group over hmc: HEAD, some others, END."""

HEAD = """
import sys, datetime, torch
import torch.distributed as dist
import hmc, hmc.torch

rank, world = int(sys.argv[1]), int(sys.argv[2])

def check(name, got, wanted):
    wanted = torch.as_tensor(wanted).to(got.dtype)
    if not torch.equal(got, wanted.expand_as(got)):
        raise AssertionError("%s at rank %d of %d: %s, not %s" % (name, rank, world, got, wanted))

def meet(seconds=120):
    dist.init_process_group("hmc", init_method="file://" + sys.argv[3], rank=rank,
                            world_size=world, timeout=datetime.timedelta(seconds=seconds))
meet()
"""
END = """
dist.barrier()
dist.destroy_process_group()
print("done")
"""

COLLECTIVES = """
assert dist.get_backend() == "hmc"
types = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16,
         torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128]
every = world * (world + 1) // 2
for dtype in types:
    data = torch.full((3, 5), rank + 1).to(dtype)
    dist.all_reduce(data)
    check("all_reduce of %s" % dtype, data, every)
for op, wanted in ((dist.ReduceOp.MAX, world), (dist.ReduceOp.MIN, 1),
                   (dist.ReduceOp.PRODUCT, [1, 1, 2, 6][world]),
                   (dist.ReduceOp.AVG, every / world)):
    data = torch.full((7,), rank + 1.0)
    dist.all_reduce(data, op=op)
    check("all_reduce", data, wanted)
truth = torch.tensor([True, rank == 0, False])
dist.all_reduce(truth)
check("all_reduce of bool", truth, [True, True, False])

for root in range(world):
    data = torch.full((100001,), float(rank))
    dist.broadcast(data, root)
    check("broadcast", data, root)
    data = torch.full((9,), rank + 1)
    dist.reduce(data, root)
    check("reduce", data, every if rank == root else rank + 1)
    parts = [torch.full((4,), 10 * root + r) for r in range(world)]
    mine = torch.empty(4, dtype=torch.int64)
    dist.scatter(mine, parts if rank == root else None, src=root)
    check("scatter", mine, 10 * root + rank)
    whole = [torch.empty(3) for _ in range(world)]
    dist.gather(torch.full((3,), float(rank)), whole if rank == root else None, dst=root)
    for r in range(world if rank == root else 0):
        check("gather", whole[r], r)

whole = [torch.empty(2, 3) for _ in range(world)]
dist.all_gather(whole, torch.full((2, 3), float(rank)))
for r in range(world):
    check("all_gather", whole[r], r)
flat = torch.empty(world * 6)
group = dist.distributed_c10d._get_default_group()
group._allgather_base(flat, torch.full((6,), float(rank))).wait()
check("all_gather_into_tensor", flat, torch.arange(world).repeat_interleave(6))
place = flat[rank * 6:rank * 6 + 6]
place.fill_(rank + 1)
group._allgather_base(flat, place).wait()
check("in place", flat, torch.arange(world).repeat_interleave(6) + 1)

mine = torch.empty(5)
dist.reduce_scatter(mine, [torch.full((5,), float(r + rank)) for r in range(world)])
check("reduce_scatter", mine, world * rank + every - world)
group._reduce_scatter_base(mine, torch.arange(world * 5.0)).wait()
check("reduce_scatter_tensor", mine, world * (torch.arange(5) + 5 * rank))

sent = [torch.full((r + 1,), 10 * rank + r) for r in range(world)]
received = [torch.empty(rank + 1, dtype=torch.int64) for _ in range(world)]
dist.all_to_all(received, sent)
for r in range(world):
    check("all_to_all", received[r], 10 * r + rank)
flat = torch.empty((rank + 1) * world, 2)
dist.all_to_all_single(flat, torch.cat(sent).float().reshape(-1, 1).expand(-1, 2).contiguous(),
                       [rank + 1] * world, [r + 1 for r in range(world)])
wanted = 10 * torch.arange(world).repeat_interleave(rank + 1) + rank
check("all_to_all_single", flat, wanted[:, None])
flat = torch.arange(world) + 10 * rank
dist.all_to_all_single(flat, flat)
check("all_to_all_single in place", flat, 10 * torch.arange(world) + rank)

names = [None] * world
dist.all_gather_object(names, {"rank": rank})
assert names == [{"rank": r} for r in range(world)], names
"""

# Tensors whose bytes do not lie in a row.
STRIDED = """
wide = torch.zeros(4, 6)
wide[:, ::2] = rank + 1
dist.all_reduce(wide[:, ::2])
check("all_reduce", wide[:, ::2], every)
check("beside it", wide[:, 1::2], 0)
turned = torch.full((2, 3), float(rank)).t()
dist.broadcast(turned, 1)
check("broadcast", turned, 1)
weights = torch.full((3,), rank + 1.0, requires_grad=True)
dist.all_reduce(weights.data)
check("a parameter", weights.detach(), every)
"""

ASYNC = """
slow = [torch.full((1 << 16,), float(i + rank)) for i in range(20)]
works = [dist.all_reduce(one, async_op=True) for one in slow]
futures = [work.get_future() for work in works[:10]]
for i in (7, 3, 19):
    works[i].wait()
    check("waited for", slow[i], world * i + every - world)
assert works[0].is_completed() and works[0].is_success() and works[0].exception() is None
for future in futures:
    future.wait()
check("what the future has", futures[4].value()[0], world * 4 + every - world)
then = works[19].get_future().then(lambda done: done.value()[0].sum().item())
assert then.wait() == (1 << 16) * (world * 19 + every - world)
dropped = torch.ones(5)
dist.all_reduce(dropped, async_op=True)  # and nobody waits for it
dist.barrier()
check("dropped", dropped, world)
"""

GROUPS = """
evens = dist.new_group([0, 2])
pairs = [dist.new_group([r, (r + 1) % world]) for r in range(world)]
if rank != 1:
    data = torch.tensor([rank + 1])
    dist.all_reduce(data, group=evens)
    check("a group of two", data, 4)
# All at once, and not in the same order everywhere.
works = []
for r in sorted(range(world), key=lambda r: (r - rank) % world):
    if rank in (r, (r + 1) % world):
        works.append((r, torch.full((50000,), float(rank))))
        works[-1] += (dist.all_reduce(works[-1][1], group=pairs[r], async_op=True),)
for r, data, work in works:
    work.wait()
    check("several groups", data, r + (r + 1) % world)
del work, works
dist.destroy_process_group(evens) if rank != 1 else None
"""

MESSAGES = """
right, left = (rank + 1) % world, (rank - 1) % world
for size in (1, 20000, 1 << 20):
    work = dist.isend(torch.full((size,), float(rank)), right, tag=size)
    data = torch.empty(size)
    assert dist.recv(data, left, tag=size) == left
    check("from the left", data, left)
    work.wait()
# Tags choose, and messages of the same tag keep their order.
if rank == 0:
    works = [dist.isend(torch.full((count,), float(tag)), 1, tag=tag)
             for count, tag in ((9, 5), (50000, 6), (50000, 6))]
    works.append(dist.isend(torch.zeros(300000, 2).t(), 1, tag=6))
    for work in works:
        work.wait()
elif rank == 1:
    data = torch.empty(50000)
    first = dist.irecv(data, 0, tag=6)
    first.wait()
    check("tag 6", data, 6)
    dist.recv(data, 0, tag=6)
    matrix = torch.ones(2, 300000)
    dist.recv(matrix, 0, tag=6)
    check("not contiguous", matrix, 0)
    small = torch.empty(9)
    dist.recv(small, 0, tag=5)
    check("tag 5", small, 5)
if rank == 0:
    found = set()
    for _ in range(world - 1):
        data = torch.empty(3)
        source = dist.recv(data)
        check("from any", data, source)
        found.add(source)
    assert found == set(range(1, world)), found
else:
    dist.send(torch.full((3,), float(rank)), 0)
# More than may lie unread, before anybody receives.
many = [dist.isend(torch.full((50000,), float(i)), right, tag=2) for i in range(400)]
data = torch.empty(50000)
for i in range(400):
    dist.recv(data, left, tag=2)
    check("many", data, i)
data = torch.empty(5)
work = dist.isend(torch.ones(4), right, tag=1)
try:
    dist.recv(data, left, tag=1)
    raise AssertionError("took 16 bytes for 20")
except ValueError as error:
    assert "sent 16 bytes, and the tensor to receive has 20" in str(error), error
"""

# Buckets of several sizes, unused parameters, buffers; the gradients of both ranks are averaged.
DDP = """
from torch.nn.parallel import DistributedDataParallel
torch.manual_seed(rank)
layers = torch.nn.Sequential(torch.nn.Linear(6, 300), torch.nn.BatchNorm1d(300), torch.nn.ReLU(),
                             torch.nn.Linear(300, 1))
alone = torch.nn.Linear(6, 1, bias=False)
model = DistributedDataParallel(layers, bucket_cap_mb=0.001)
single = DistributedDataParallel(alone)
optimizer = torch.optim.SGD([*model.parameters(), *single.parameters()], lr=0.05)
losses = []
for step in range(60):
    samples = torch.randn(32, 6)
    loss = (model(samples) + single(samples) - samples.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert losses[-1] < losses[0] / 4, losses
weights = torch.cat([one.detach().reshape(-1) for one in model.parameters()])
everyones = [torch.empty_like(weights) for _ in range(world)]
dist.all_gather(everyones, weights)
for other in everyones:
    check("weights", other, weights)
"""

WAIT_FOR_THE_DEAD = """
group = dist.new_group(list(range(world)))
dist.barrier()
print("ready", flush=True)
if rank == world - 1:
    sys.stdin.read()
last = world - 1
received = dist.irecv(torch.ones(4), last)
for name, wait in (("all_reduce", lambda: dist.all_reduce(torch.ones(4))), ("recv", received.wait),
                   ("send", lambda: dist.send(torch.ones(1 << 20), last)),
                   ("barrier", lambda: dist.barrier(group))):
    try:
        wait()
        print("%s ended well" % name, flush=True)
    except hmc.PeerLost as error:
        print(name, "rank %d" % last in str(error) or error, flush=True)
assert not received.is_success() and isinstance(received.exception(), hmc.PeerLost)
"""

# The rank that does not take part is there, and only says nothing.
LATE = """
group = dist.new_group([0, 1], timeout=datetime.timedelta(seconds=1))
if rank == 0:
    try:
        dist.all_reduce(torch.ones(4), group=group)
        raise AssertionError("nobody else was there")
    except TimeoutError as error:
        assert "rank 1 did not take part" in str(error), error
    work = dist.irecv(torch.ones(4), 1)
    try:
        work.wait(datetime.timedelta(milliseconds=100))
        raise AssertionError("nothing was sent")
    except TimeoutError as error:
        assert "recv" in str(error), error
    dist.send(torch.ones(1), 1)
    work.wait()
else:
    dist.recv(torch.ones(1), 0)
    dist.send(torch.ones(4), 0)
"""
