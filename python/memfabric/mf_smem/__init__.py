"""MemFabric's pool of memory, in Python: the memory of many processes in one address space.

mf_smem.bm is Big Memory: processes, called ranks, come and go; each brings a slot, and slot r
begins at the same address in every process. mf_smem.shm is Share Memory: a fixed number of ranks
with a slot of the same size each, a barrier and an allgather.

    import mf_smem
    from mf_smem import bm

    mf_smem.initialize()
    config = bm.BmConfig()
    config.auto_ranking = True
    bm.initialize("tcp://10.0.0.1:7000", world_size=2, device_id=0, config=config)
    pool = bm.create(id=0, local_dram_size=0, local_hbm_size=1 << 30)
    mine = pool.join()                       # the address of our slot
    theirs = pool.peer_rank_ptr(1 - bm.bm_rank_id())
    pool.copy_data(tensor.data_ptr(), theirs, 4096, bm.BmCopyType.H2G)
    mf_smem.uninitialize()

Addresses are plain numbers. A call that fails raises a RuntimeError that says why. Calls may come
from any thread and let other threads of Python run meanwhile. A process may fork before
initialize(); its children initialize on their own. help(mf_smem.bm) and help(mf_smem.shm) say more.
"""

import os as _os
from typing import Set

from . import _library, bm, shm
from ._arguments import text as _text
from ._arguments import unsigned as _unsigned
from ._library import lib as _lib
from ._structures import TlsOption as _NativeTlsOption

__all__ = ["bm", "shm", "initialize", "uninitialize", "set_log_level", "set_ssl_option",
           "TlsOption"]


def _version() -> str:
    try:
        with open(_os.path.join(_library.HERE, "VERSION"), encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return "unknown"  # a checkout that was not built


__version__ = _version()
__doc__ += "\nVersion {}\n".format(__version__)


class TlsOption:
    """How connections are protected: TLS 1.3, with certificates of both sides.

    All paths are relative to tls_top_path; tls_pk_pwd is a file with the key's password.
    """

    def __init__(self) -> None:
        self.enable_tls: bool = False
        self.tls_top_path: str = ""
        self.tls_cert: str = ""
        self.tls_crl_path: str = ""
        self.tls_ca_path: str = ""
        self.tls_ca_file: Set[str] = set()
        self.tls_crl_file: Set[str] = set()
        self.tls_pk: str = ""
        self.tls_pk_pwd: str = ""
        self.kmc_ksf_master: str = ""
        self.kmc_ksf_standby: str = ""
        self.package_path: str = ""

    def _native(self):
        def joined(names):
            return _text(",".join(sorted(names)), "a set of file names")

        return _NativeTlsOption(
            bool(self.enable_tls), _text(self.tls_top_path, "tls_top_path"),
            _text(self.tls_cert, "tls_cert"), _text(self.tls_crl_path, "tls_crl_path"),
            _text(self.tls_ca_path, "tls_ca_path"), joined(self.tls_ca_file),
            joined(self.tls_crl_file), _text(self.tls_pk, "tls_pk"),
            _text(self.tls_pk_pwd, "tls_pk_pwd"), _text(self.kmc_ksf_master, "kmc_ksf_master"),
            _text(self.kmc_ksf_standby, "kmc_ksf_standby"),
            _text(self.package_path, "package_path"))


def initialize(flags: int = 0) -> int:
    """Start the library; everything else comes after it. May be repeated. Returns 0."""
    return _library.check(_lib.smem_init(_unsigned(flags, "flags")))


def uninitialize() -> None:
    """Destroy all objects and end bm.initialize() and shm.initialize().

    A process that serves the store waits here up to 5 seconds for others to finish with it.
    """
    _lib.smem_uninit()


def set_log_level(level: int) -> int:
    """Drop log lines below a level: 0 debug, 1 info, 2 warning, 3 error. Returns 0."""
    return _library.check(_lib.smem_set_log_level(level))


def set_ssl_option(tls_option: TlsOption) -> int:
    """Protect what is opened or served from now on. Returns 0.

    Raises when enable_tls is set and a file is missing or cannot be used.
    """
    return _library.check(_lib.smem_set_ssl_option(tls_option._native()))
