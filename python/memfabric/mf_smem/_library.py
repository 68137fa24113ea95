"""libmf_smem.so: where it is found, and its functions with their types.

Calls release the GIL. Functions of the three packages are thin over these.
"""

import atexit
import ctypes
import os
import platform
from ctypes import (POINTER, c_bool, c_char_p, c_int, c_int32, c_size_t, c_uint16, c_uint32,
                    c_uint64, c_void_p)

from . import _structures as structures

FILE = "libmf_smem.so"
HERE = os.path.dirname(os.path.abspath(__file__))

NO_RANK = 0xFFFFFFFF

Logger = ctypes.CFUNCTYPE(None, c_int, c_char_p)

_CONFIG = POINTER(structures.BmConfig)
_CONFIG_V2 = POINTER(structures.BmConfigV2)
_SHM_CONFIG = POINTER(structures.ShmConfig)
_TRANS_CONFIG = POINTER(structures.TransConfig)
# The engine, local address, remote id, remote address and size; for a batch arrays and how many.
_ONE = [c_void_p, c_void_p, c_char_p, c_void_p, c_size_t]
_BATCH = [c_void_p, c_void_p, c_char_p, c_void_p, c_void_p, c_uint32]

# Name: what it answers, what it takes.
FUNCTIONS = {
    "smem_init": (c_int32, [c_uint32]),
    "smem_uninit": (None, []),
    "smem_set_extern_logger": (c_int32, [c_void_p]),
    "smem_set_log_level": (c_int32, [c_int]),
    "smem_get_last_err_msg": (c_char_p, []),
    "smem_get_and_clear_last_err_msg": (c_char_p, []),
    "smem_set_ssl_option": (c_int32, [POINTER(structures.TlsOption)]),
    "smem_create_config_store": (c_int32, [c_char_p]),
    "smem_set_conf_store_tls": (c_int32, [c_bool, c_char_p, c_uint32]),
    "smem_set_config_store_tls_key": (c_int32, [c_char_p, c_uint32, c_char_p, c_uint32, c_void_p]),

    "smem_bm_config_init": (c_int32, [_CONFIG]),
    "smem_bm_config_init_v2": (c_int32, [_CONFIG_V2]),
    "smem_bm_init": (c_int32, [c_char_p, c_uint32, c_uint16, _CONFIG]),
    "smem_bm_init_v2": (c_int32, [c_char_p, c_uint32, c_uint16, _CONFIG_V2]),
    "smem_bm_uninit": (None, [c_uint32]),
    "smem_bm_get_rank_id": (c_uint32, []),
    "smem_bm_create": (c_void_p, [c_uint32, c_uint32, c_int, c_uint64, c_uint64, c_uint32]),
    "smem_bm_create2": (c_void_p, [c_uint32, POINTER(structures.BmCreateOption)]),
    "smem_bm_destroy": (None, [c_void_p]),
    "smem_bm_join": (c_int32, [c_void_p, c_uint32, POINTER(c_void_p)]),
    "smem_bm_join_v2": (c_int32, [c_void_p, c_uint32]),
    "smem_bm_leave": (c_int32, [c_void_p, c_uint32]),
    "smem_bm_get_local_mem_size": (c_uint64, [c_void_p]),
    "smem_bm_get_local_mem_size_by_mem_type": (c_uint64, [c_void_p, c_int]),
    "smem_bm_ptr": (c_void_p, [c_void_p, c_uint16]),
    "smem_bm_ptr_by_mem_type": (c_void_p, [c_void_p, c_int, c_uint16]),
    "smem_bm_copy": (c_int32, [c_void_p, c_void_p, c_void_p, c_uint64, c_int, c_uint32]),
    "smem_bm_copy_v2": (c_int32, [c_void_p, POINTER(structures.CopyParams), c_int, c_uint32]),
    "smem_bm_copy_batch": (c_int32, [c_void_p, POINTER(structures.BatchCopyParams), c_int,
                                     c_uint32]),
    "smem_bm_wait": (c_int32, [c_void_p]),
    "smem_bm_register_user_mem": (c_int32, [c_void_p, c_uint64, c_uint64]),
    "smem_bm_unregister_user_mem": (c_int32, [c_void_p, c_uint64]),
    "smem_bm_get_rank_id_by_gva": (c_uint32, [c_void_p, c_void_p]),

    "smem_shm_config_init": (c_int32, [_SHM_CONFIG]),
    "smem_shm_init": (c_int32, [c_char_p, c_uint32, c_uint32, c_uint16, _SHM_CONFIG]),
    "smem_shm_uninit": (None, [c_uint32]),
    "smem_shm_query_support_data_operation": (c_uint32, []),
    "smem_shm_create": (c_void_p, [c_uint32, c_uint32, c_uint32, c_uint64, c_int, c_uint32,
                                   POINTER(c_void_p)]),
    "smem_shm_destroy": (c_int32, [c_void_p, c_uint32]),
    "smem_shm_set_extra_context": (c_int32, [c_void_p, c_void_p, c_uint32]),
    "smem_shm_get_global_rank": (c_uint32, [c_void_p]),
    "smem_shm_get_global_rank_size": (c_uint32, [c_void_p]),
    "smem_shm_control_barrier": (c_int32, [c_void_p]),
    "smem_shm_control_allgather": (c_int32, [c_void_p, c_void_p, c_uint32, c_void_p, c_uint32]),
    "smem_shm_topology_can_reach": (c_int32, [c_void_p, c_uint32, POINTER(c_uint32)]),

    "smem_trans_config_init": (c_int32, [_TRANS_CONFIG]),
    "smem_trans_init": (c_int32, [_TRANS_CONFIG]),
    "smem_trans_uninit": (None, [c_uint32]),
    "smem_trans_create": (c_void_p, [c_char_p, c_char_p, _TRANS_CONFIG]),
    "smem_trans_destroy": (None, [c_void_p, c_uint32]),
    "smem_trans_register_mem": (c_int32, [c_void_p, c_void_p, c_size_t, c_uint32]),
    "smem_trans_batch_register_mem": (c_int32, [c_void_p, c_void_p, c_void_p, c_uint32, c_uint32]),
    "smem_trans_deregister_mem": (c_int32, [c_void_p, c_void_p]),
    "smem_trans_write": (c_int32, _ONE + [c_uint32]),
    "smem_trans_read": (c_int32, _ONE + [c_uint32]),
    "smem_trans_write_submit": (c_int32, _ONE + [c_void_p, c_uint32]),
    "smem_trans_read_submit": (c_int32, _ONE + [c_void_p, c_uint32]),
    "smem_trans_batch_write": (c_int32, _BATCH + [c_uint32]),
    "smem_trans_batch_read": (c_int32, _BATCH + [c_uint32]),
    "smem_trans_batch_write_submit": (c_int32, _BATCH + [c_void_p, c_uint32]),
    "smem_trans_batch_read_submit": (c_int32, _BATCH + [c_void_p, c_uint32]),
}


def places():
    """Where the library may be, best first; a bare name is for the loader's own search."""
    found = [os.path.join(HERE, "lib", FILE)]
    home = os.environ.get("MEMFABRIC_HYBRID_HOME_PATH")
    if home:
        target = "{}-linux".format(platform.machine())
        for folder in ("lib64", "lib", os.path.join(target, "lib64")):
            found.append(os.path.join(home, folder, FILE))
    return found + [FILE]


def load():
    """The library; ImportError says where it was looked for."""
    problems = []
    for path in places():
        if os.path.isabs(path) and not os.path.exists(path):
            problems.append("{}: no such file".format(path))
            continue
        try:
            return _typed(ctypes.CDLL(path))
        except (OSError, AttributeError) as problem:
            problems.append(str(problem) if path in str(problem) else
                            "{}: {}".format(path, problem))
    if "MEMFABRIC_HYBRID_HOME_PATH" not in os.environ:
        problems.append("MEMFABRIC_HYBRID_HOME_PATH is not set")
    raise ImportError("{} was not found or cannot be used; tried:\n  {}".format(
        FILE, "\n  ".join(problems)))


def _typed(library):
    for name, (answer, arguments) in FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = answer, arguments
    return library


def folder():
    """Where the library that was loaded lies."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        paths = (line.rstrip("\n").partition("/") for line in maps)
        return next(os.path.dirname("/" + path) for _, _, path in paths
                    if os.path.basename(path) == FILE)


def last_error():
    """The sentence of the last call of this thread that failed."""
    return lib.smem_get_last_err_msg().decode(errors="replace")


def check(code):
    """0, or a RuntimeError with the library's sentence."""
    if code != 0:
        raise RuntimeError("{} ({})".format(last_error(), code))
    return code


def ask(nothing, function, *arguments):
    """For a function whose sign of failure, `nothing`, may be an answer as well."""
    lib.smem_get_and_clear_last_err_msg()
    answer = function(*arguments)
    if answer == nothing and last_error():
        raise RuntimeError(last_error())
    return answer


class LogTarget:
    """The function that gets log lines. One C function calls whichever is set."""

    def __init__(self):
        self.function = None
        self.native = Logger(self._call)

    def _call(self, level, line):
        if self.function is not None:
            self.function(level, line.decode(errors="replace"))

    def set(self, function):
        if not callable(function):
            raise TypeError("log_fn is a {}, not a function of level and line".format(
                type(function).__name__))
        self.function = function
        return lib.smem_set_extern_logger(ctypes.cast(self.native, c_void_p))

    def close(self):
        """Python ends: a thread of the library must not call into it. abs() does nothing."""
        if self.function is not None:
            nothing = ctypes.cast(ctypes.CDLL(None).abs, c_void_p)
            lib.smem_set_extern_logger(nothing)


def _at_exit():
    """Leaves pools and gives memory back, so that others need not find out."""
    log_target.close()
    lib.smem_uninit()


lib = load()
log_target = LogTarget()
atexit.register(_at_exit)
