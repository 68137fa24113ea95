"""What make test-rdma does in the virtual machine, step by step."""

import dataclasses
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]

# Seconds after which a step has failed. In the guest a test takes 10 to 30 times as long as outside,
# and on a busy host longer still.
LONG = 400
SHORT = 100


@dataclasses.dataclass
class Step:
    name: str
    command: list
    seconds: int
    settings: dict = dataclasses.field(default_factory=dict)
    expect: str = ""  # a pattern that its output must have
    # The exit statuses of success. A missed bar is told, but is no failure: on a machine that others
    # use as well, a time is no proof.
    statuses: tuple = (0,)
    # Whether it runs without being named.
    always: bool = True

    @property
    def program(self):
        return pathlib.Path(self.command[0])


# The transports have to be what was asked for: nothing else may serve in their place.
STRICT = {"HMC_STRICT_TRANSPORT": "1"}
# UCX over the queue pairs of the first device. The check compares GIDs in a way that an IPv4 GID of
# soft-RoCE does not pass; UCX would give up after 30 seconds. A retry count of 7, its default, is
# forever to soft-RoCE: a peer that is gone would never be noticed.
UCX_OVER_VERBS = {
    "UCX_TLS": "rc_v",
    "UCX_NET_DEVICES": "rxe0:1",
    "UCX_UD_VERBS_ETH_DGID_CHECK": "n",
    "UCX_RC_VERBS_RETRY_COUNT": "6",
    "UCX_RC_VERBS_TIMEOUT": "100ms",
    "UCX_WARN_UNUSED_ENV_VARS": "n",
    # Its usual buffers are megabytes for every worker, which soft-RoCE takes seconds to register.
    "UCX_RC_VERBS_RX_QUEUE_LEN": "128",
    "UCX_UD_VERBS_RX_QUEUE_LEN": "128",
    "UCX_RC_VERBS_SEG_SIZE": "1024",
    "UCX_RC_VERBS_RX_BUFS_GROW": "128",
    "UCX_RC_VERBS_TX_BUFS_GROW": "128",
    "UCX_UD_VERBS_RX_BUFS_GROW": "128",
    "UCX_UD_VERBS_TX_BUFS_GROW": "128",
}


def fake_accelerator(build):
    """Device memory for tests."""
    return str(build / "tests/fakes/libhmc_fake_accelerator.so")


# Left alone, UCX would take the RDMA device, fail that check, and end the process.
UCX_OVER_TCP = {"UCX_TLS": "tcp"}


def seed_snippets(build, folder, *phase):
    """The documentation's own programs, with ConnType::RDMA wherever they name a type."""
    return [os.path.realpath(sys.executable), str(ROOT / "tests/process/snippets/seed_snippets.py"),
            "--seeds", str(ROOT / "../shared/seeds"), "--compiler", "c++",
            "--include", str(ROOT / "include"), "--library", str(build / "lib/libhmc.so"),
            "--peer", str(build / "tests/process/hmc_test_peer"),
            "--plugin", fake_accelerator(build),
            "--conn-type", "RDMA", "--folder", str(folder), *phase]


def unit_tests(build):
    folder = build / "tests/unit/transport"
    device = {"HMC_MEMORY_PLUGIN": fake_accelerator(build)}
    # The others of verbs need no device.
    return [Step(name, [str(folder / name)], LONG, device)
            for name in ("verbs_device_test", "verbs_fork_test")]


def all_steps(build, snippets):
    tests = build / "tests"
    hmc = str(build / "tools/hmc")
    cable = str(HERE / "cable.sh")
    return [
        Step("devices", ["ibv_devinfo"], SHORT, expect="PORT_ACTIVE"),
        Step("doctor", [hmc, "doctor"], SHORT, UCX_OVER_TCP, expect=r"(?m)^ok +rxe0:1 "),
        Step("info", [hmc, "info"], SHORT, expect=r"(?m)^ +verbs +usable "),
        *unit_tests(build),
        Step("verbs_contract_test", [str(tests / "contract/verbs_contract_test")], LONG),
        # Does not pass yet: see docs/rdma.md. One kind of memory: UCX takes long to start here, and how it takes memory is its own matter.
        Step("ucx_contract_test", [str(tests / "contract/ucx_contract_test"),
                                   "--gtest_filter=*_heap"], LONG, UCX_OVER_VERBS, always=False),
        Step("snippets_test", [str(tests / "process/snippets/snippets_test")], SHORT,
             {**STRICT, **UCX_OVER_TCP}),
        Step("seed_snippets", seed_snippets(build, snippets, "--only", "run"), SHORT, STRICT),
        Step("bench", [hmc, "bench", "--bars", "--transport", "verbs", "--seconds", "0.5"], LONG,
             expect="ib_write_bw", statuses=(0, 1)),
        # Last, because it changes the routes.
        Step("cable", [cable, "plug"], SHORT),
        Step("rdma_link_test", [str(tests / "process/rdma_link_test")], LONG,
             {**STRICT, "HMC_TEST_RDMA_CABLE": cable}),
        Step("two_devices", [str(tests / "unit/transport/verbs_device_test"),
                             "--gtest_filter=*sharesOnePeer*"], LONG,
             {"HMC_TEST_TWO_RDMA_DEVICES": "rxe1,rxe2"}),
    ]
