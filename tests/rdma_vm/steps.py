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
    # The exit statuses of success. A missed target is told, but is no failure: on a machine that others
    # use as well, a time is no proof.
    statuses: tuple = (0,)

    @property
    def program(self):
        return pathlib.Path(self.command[0])


# The transports have to be what was asked for: nothing else may serve in their place.
STRICT = {"HMC_STRICT_TRANSPORT": "1"}
# UCX over the queue pairs of the first device, which it makes known to each other over tcp. Its usual
# way, by datagrams (UCX_TLS=rc_v), takes much longer here: every worker reads all 1024 places of
# soft-RoCE's table of addresses.
UCX_OVER_VERBS = {
    "UCX_TLS": "rc_verbs,tcp",
    "UCX_NET_DEVICES": "rxe0:1,lo",
    "UCX_IB_GID_INDEX": "1",  # the one with an IPv4 address; else it reads them all
    # A retry count of 7, its default, is forever to soft-RoCE: a peer that is gone would never be
    # noticed. Half a second, because a busy host lets the guest wait.
    "UCX_RC_VERBS_RETRY_COUNT": "6",
    "UCX_RC_VERBS_TIMEOUT": "500ms",
    # Its usual buffers are 34 MB for every worker, which soft-RoCE takes long to register. No more
    # may be under way than there is room for: what finds none is sent again, which takes long, too.
    "UCX_RC_VERBS_RX_QUEUE_LEN": "256",
    "UCX_RC_VERBS_FC_WND_SIZE": "128",
    "UCX_RC_VERBS_RX_BUFS_GROW": "256",
    "UCX_RC_VERBS_TX_BUFS_GROW": "128",
    "UCX_WARN_UNUSED_ENV_VARS": "n",
    "HMC_TEST_UCX_LANE": "rc_verbs/rxe0:1",
}


# As the ucx transport sets it for itself; UCX 1.13 crashes without it where tcp brings up such lanes.
BARE_UCX = {"UCX_TCP_CONN_NB": "y"}


def fake_accelerator(build):
    """Device memory for tests."""
    return str(build / "tests/fakes/libhmc_fake_accelerator.so")


# Left alone, UCX would take the RDMA device with datagrams, compare addresses in a way that an IPv4
# one of soft-RoCE does not pass (UCX_UD_VERBS_ETH_DGID_CHECK), and end the process after 30 seconds.
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
        # One kind of memory: to hardware the host's are alike, and a device's goes by messages, which the
        # other machine tests. UCX takes long to start here.
        Step("ucx_contract_test", [str(tests / "contract/ucx_contract_test"),
                                   "--gtest_filter=*_heap"], 2 * LONG, UCX_OVER_VERBS),
        Step("snippets_test", [str(tests / "process/snippets/snippets_test")], SHORT,
             {**STRICT, **UCX_OVER_TCP}),
        Step("seed_snippets", seed_snippets(build, snippets, "--only", "run"), SHORT, STRICT),
        Step("litmus", [hmc, "litmus", "--transport", "verbs", "--rounds", "640"], SHORT, STRICT,
             expect="4 kept, 0 broken"),
        Step("bench", [hmc, "bench", "--targets", "--transport", "verbs", "--seconds", "0.1"], LONG,
             expect="ib_write_bw", statuses=(0, 1)),
        Step("bench_ucx", [hmc, "bench", "--targets", "--transport", "ucx", "--seconds", "0.1"], LONG,
             {**UCX_OVER_VERBS, **BARE_UCX}, expect="bare UCP", statuses=(0, 1)),
        # Last, because it changes the routes.
        Step("cable", [cable, "plug"], SHORT),
        Step("rdma_link_test", [str(tests / "process/rdma_link_test")], LONG,
             {**STRICT, "HMC_TEST_RDMA_CABLE": cable}),
        Step("two_devices", [str(tests / "unit/transport/verbs_device_test"),
                             "--gtest_filter=*sharesOnePeer*"], LONG,
             {"HMC_TEST_TWO_RDMA_DEVICES": "rxe1,rxe2"}),
    ]
