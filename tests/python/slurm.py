"""A Slurm of one host, for as long as a test needs it."""

import os
import shutil
import socket
import subprocess
import time

from peers import HERE, PATIENCE, free_port

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sinfo")
CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}({address})
SlurmctldPort={controller}
SlurmdPort={daemon}
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
FirstJobId={job}
NodeName={host} NodeAddr={address} CPUs=1
PartitionName=all Nodes=ALL Default=YES OverSubscribe=FORCE:8 State=UP
"""


class Slurm:
    """Runs munged, slurmctld and slurmd, with everything that they write in one folder."""

    @staticmethod
    def missing():
        """Why there can be none; empty where there can."""
        absent = [name for name in PROGRAMS if not shutil.which(name, path=Slurm.path())]
        if absent:
            return "not installed: " + ", ".join(absent)
        return "" if os.geteuid() == 0 else "slurmd needs to be root"

    @staticmethod
    def path():
        return os.environ["PATH"] + ":/usr/sbin:/sbin"

    def __init__(self, folder):
        self.folder = folder
        self.configuration = folder / "slurm.conf"
        self.daemons = []

    def __enter__(self):
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        # Where rank 0 serves a store follows from the job's number.
        self.configuration.write_text(CONFIGURATION.format(
            host=socket.gethostname().split(".")[0], address=HERE, folder=self.folder,
            controller=free_port(), daemon=free_port(), job=1 + os.getpid() % 10000))
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        try:
            self.start("munged", "--foreground", "--force", "--key-file=%s" % key,
                       *("--%s-file=%s/munge.%s" % (what, self.folder, what)
                         for what in ("pid", "log", "seed")),
                       "--socket=%s/munge.socket" % self.folder)
            self.start("slurmctld", "-D", "-i", "-f", self.configuration)
            self.start("slurmd", "-D", "-f", self.configuration)
            self.await_node()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self, name, *words):
        with open(self.folder / (name + ".out"), "wb") as out:
            self.daemons.append(subprocess.Popen(
                [shutil.which(name, path=self.path()), *map(str, words)],
                stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT))

    def await_node(self):
        """Until the controller takes jobs."""
        end = time.monotonic() + PATIENCE
        state = ""
        while state != "idle":
            if time.monotonic() > end:
                raise RuntimeError("no Slurm after %d s (%s):\n%s" % (PATIENCE, state, self.said()))
            asked = subprocess.run(["sinfo", "--noheader", "--format=%T"], text=True,
                                   env={**os.environ, "SLURM_CONF": str(self.configuration)},
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            state = asked.stdout.strip()

    def said(self):
        return "\n".join(path.read_text(errors="replace")[-2000:]
                         for path in sorted(self.folder.glob("*.out")))

    def stop(self):
        for daemon in reversed(self.daemons):
            daemon.terminate()
            daemon.wait(PATIENCE)
