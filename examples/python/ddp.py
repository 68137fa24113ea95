"""Trains a small model on two ranks with DistributedDataParallel.

Only the import and the name of the backend differ from a program for gloo. Under torchrun,
dist.init_process_group("hmc") needs no more arguments.
"""
import tempfile

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import hmc.torch  # noqa: F401, makes the backend known

WORLD = 2


def train(rank, folder):
    dist.init_process_group("hmc", init_method="file://" + folder + "/ranks", rank=rank,
                            world_size=WORLD)
    torch.manual_seed(rank)  # each rank has samples of its own, and begins with rank 0's weights
    model = DistributedDataParallel(torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(200):
        samples = torch.randn(32, 8)
        loss = (model(samples) - samples.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()  # all-reduces the gradients
        optimizer.step()

    weights = model.module.weight.detach()
    everyones = [torch.empty_like(weights) for _ in range(WORLD)]
    dist.all_gather(everyones, weights)
    assert all(torch.equal(weights, other) for other in everyones)
    assert torch.allclose(weights, torch.ones(8), atol=0.01), weights
    if rank == 0:
        print("trained the same model on", WORLD, "ranks")
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as ranks_meet_in:
        torch.multiprocessing.spawn(train, (ranks_meet_in,), nprocs=WORLD)
