"""MemFabric's later Python interface, over the same library as mf_smem.

memfabric_hybrid.bm is Big Memory, memfabric_hybrid.shm is Share Memory, and TransferEngine moves
bytes between registered memory of two processes. Functions return 0 or a negative code, which
get_last_err_msg() explains; only bm.create() and shm.create() raise, and what cannot answer a code.

    import memfabric_hybrid as mf

    assert mf.initialize() == 0, mf.get_last_err_msg()

mf_smem has the earlier interface, which raises. Both may be used in one program.
"""

import os as _os
from typing import Callable, Optional

from mf_smem import __version__
from mf_smem import _library
from mf_smem._arguments import text as _text
from mf_smem._arguments import unsigned as _unsigned
from mf_smem._library import lib as _lib

from . import bm, shm
from .transfer import TransferEngine, TransferOpcode

__all__ = ["bm", "shm", "initialize", "uninitialize", "set_log_level", "set_extern_logger",
           "get_last_err_msg", "get_and_clear_last_err_msg", "set_conf_store_tls",
           "set_conf_store_tls_key", "create_config_store", "TransferEngine", "TransferOpcode",
           "get_include_path", "get_lib_path"]

__doc__ += "\nVersion {}\n".format(__version__)


def initialize(flags: int = 0) -> int:
    """Start the library; everything else comes after it. May be repeated."""
    return _lib.smem_init(_unsigned(flags, "flags"))


def uninitialize() -> None:
    """Destroy all objects and end what bm.initialize() and shm.initialize() began."""
    _lib.smem_uninit()


def set_log_level(level: int) -> int:
    """Drop log lines below a level: 0 debug, 1 info, 2 warning, 3 error."""
    return _lib.smem_set_log_level(level)


def set_extern_logger(log_fn: Callable[[int, str], None]) -> int:
    """Give log lines to log_fn(level, line), from any thread. It must not call this package."""
    return _library.log_target.set(log_fn)


def get_last_err_msg() -> str:
    """The sentence of the last call of this thread that failed; "" when none did."""
    return _library.last_error()


def get_and_clear_last_err_msg() -> str:
    """The same, and "" from then on."""
    return _lib.smem_get_and_clear_last_err_msg().decode(errors="replace")


def create_config_store(store_url: str) -> int:
    """Serve a store at "tcp://IPv4:port" from this process until uninitialize()."""
    started = _lib.smem_init(0)
    return started or _lib.smem_create_config_store(_text(store_url, "store_url"))


def set_conf_store_tls(enable: bool, tls_info: str) -> int:
    """Encrypt what is opened afterwards, with certificates of both sides.

    tls_info: "tlsCaPath: PATH; tlsCaFile: A,B; tlsCert: PATH", also tlsPk, tlsPkPwd, tlsCrlPath
    and tlsCrlFile.
    """
    info = _text(tls_info, "tls_info")
    return _lib.smem_set_conf_store_tls(bool(enable), info, len(info))


def set_conf_store_tls_key(tls_pk: str, tls_pk_pw: str,
                           py_decrypt_func: Optional[Callable[[str], str]]) -> int:
    """The text of the key, and its password, which py_decrypt_func decrypts unless it is None."""
    plain = tls_pk_pw if py_decrypt_func is None else py_decrypt_func(tls_pk_pw)
    key, password = _text(tls_pk, "tls_pk"), _text(plain, "the password")
    return _lib.smem_set_config_store_tls_key(key, len(key), password, len(password), None)


def get_include_path() -> str:
    """The folder of the C headers, for a compiler's -I."""
    return _os.path.join(_os.path.dirname(_os.path.abspath(__file__)), "include", "smem", "host")


def get_lib_path() -> str:
    """The folder of libmf_smem.so, for a linker's -L."""
    return _library.folder()
