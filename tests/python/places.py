"""Where the two sides of a documented program run: on one host, or at the two ends of a cable."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import threading

import pytest

from peers import PATIENCE, free_port

SERVER_IP, CLIENT_IP = "192.168.2.244", "192.168.2.248"


def plugin():
    """The fake accelerator, which the C++ tests are built with."""
    build = pathlib.Path(os.environ.get("HMC_BUILD", "."))
    found = build / "tests" / "fakes" / "libhmc_fake_accelerator.so"
    if not found.exists():
        pytest.skip("the fake accelerator is not built: %s" % found)
    return str(found)


def fake_driver():
    """The folder of the fake libcuda.so.1, which the C++ tests are built with."""
    found = pathlib.Path(os.environ.get("HMC_BUILD", ".")) / "tests" / "fakes" / "cuda"
    if not found.exists():
        pytest.skip("the fake CUDA driver is not built: %s" % found)
    return str(found)


def cuda_environment():
    stand_in = pathlib.Path(__file__).parent / "fake_cuda"
    return {"HMC_MEMORY_PLUGIN": plugin(), "HMC_FAKE_KIND": "cuda",
            "PYTHONPATH": "%s:%s" % (stand_in, os.environ.get("PYTHONPATH", ""))}


class Loopback:
    """Both sides on this host. Addresses and ports become free ones of it."""

    server_prefix = client_prefix = ()

    def __init__(self):
        self.folder = tempfile.mkdtemp()
        self.ports = {port: str(free_port()) for port in ("2025", "2026", "5001")}

    def adapt(self, code):
        code = code.replace('my_ip = "%s"' % CLIENT_IP, 'my_ip = "127.0.0.2"')
        code = code.replace(SERVER_IP, "127.0.0.1").replace(CLIENT_IP, "127.0.0.1")
        code = re.sub(r"\b(2025|2026|5001)\b", lambda match: self.ports[match[0]], code)
        return code.replace('"/tmp"', repr(self.folder))

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)


class Cable:
    """Two network namespaces with the very addresses and ports of the text."""

    def __init__(self):
        if os.geteuid() != 0 or not shutil.which("ip"):
            pytest.skip("network namespaces need root and the ip command")
        self.folder = tempfile.mkdtemp()
        self.left, self.right = ("hmc-%s-%d" % (end, os.getpid()) for end in ("server", "client"))
        self.server_prefix = ("ip", "netns", "exec", self.left)
        self.client_prefix = ("ip", "netns", "exec", self.right)
        try:
            self.plug()
        except subprocess.CalledProcessError as error:
            self.close()
            pytest.skip("this machine does not permit network namespaces: %s" % error)

    def plug(self):
        commands = ["ip netns add {left}", "ip netns add {right}",
                    "ip -n {left} link add veth0 type veth peer name veth0 netns {right}",
                    "ip -n {left} addr add {a}/24 dev veth0",
                    "ip -n {right} addr add {b}/24 dev veth0"]
        commands += ["ip -n %s link set %s up" % (end, link)
                     for end in ("{left}", "{right}") for link in ("lo", "veth0")]
        for command in commands:
            command = command.format(left=self.left, right=self.right, a=SERVER_IP, b=CLIENT_IP)
            subprocess.run(command.split(), check=True, capture_output=True)
        for end in (self.left, self.right):
            self.wait_for_link(end)

    @staticmethod
    def wait_for_link(end):
        """The kernel may take a second to say that the cable is in, and UCX looks only once."""
        with subprocess.Popen(["ip", "-n", end, "monitor", "link"], stdout=subprocess.PIPE,
                              text=True) as news:
            guard = threading.Timer(PATIENCE, news.kill)
            guard.start()
            while " UP " not in subprocess.run(
                    ["ip", "-n", end, "-brief", "link", "show", "veth0"], check=True,
                    capture_output=True, text=True).stdout:
                if not news.stdout.readline():
                    break
            guard.cancel()
            news.kill()

    def adapt(self, code):
        return code.replace('"/tmp"', repr(self.folder))

    def close(self):
        for end in (self.left, self.right):
            subprocess.run(["ip", "netns", "del", end], check=False, capture_output=True)
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture(params=[Loopback, Cable], ids=["one host", "two hosts"])
def place(request):
    made = request.param()
    yield made
    made.close()
