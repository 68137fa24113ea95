"""The names of MemFabric's Python packages, what they take, and what they say when they fail."""

import ast
import ctypes
import enum
import inspect
import pathlib
import pydoc
import re
import subprocess
import sys

import pytest

import documents
import memfabric_hybrid
import mf_adapter
import mf_smem
from memfabric_hybrid import bm as later_bm
from memfabric_hybrid import shm as later_shm
from mf_smem import _library, _structures, bm, shm
from peers import PATIENCE, free_port

SEED_CONFIG = {"init_timeout": 120, "create_timeout": 120, "operation_timeout": 120,
               "start_store": True, "flags": 0}
BM_CONFIG = dict(SEED_CONFIG, start_store_only=False, dynamic_world_size=False,
                 unified_address_space=True, auto_ranking=False, rank_id=65535)
TLS = {"enable_tls": False, "tls_top_path": "", "tls_cert": "", "tls_crl_path": "",
       "tls_ca_path": "", "tls_ca_file": set(), "tls_crl_file": set(), "tls_pk": "",
       "tls_pk_pwd": "", "kmc_ksf_master": "", "kmc_ksf_standby": "", "package_path": ""}

# Every documented function and method: its parameters, "=" where they have a default.
CALLS = {
    mf_smem: {"initialize": "flags=", "uninitialize": "", "set_log_level": "level",
              "set_ssl_option": "tls_option"},
    bm: {"initialize": "store_url world_size device_id config", "uninitialize": "flags=",
         "bm_rank_id": "", "create": "id local_dram_size local_hbm_size data_op_type= flags="},
    bm.BigMemory: {"join": "flags=", "leave": "flags=", "local_mem_size": "",
                   "peer_rank_ptr": "peer_rank",
                   "copy_data": "src_ptr dst_ptr size type flags="},
    shm: {"initialize": "store_url world_size rank_id device_id config", "uninitialize": "flags=",
          "create": "id rank_size rank_id local_mem_size data_op_type= flags="},
    shm.ShareMemory: {"set_context": "context", "barrier": "", "all_gather": "local_data"},
    memfabric_hybrid: {
        "initialize": "flags=", "uninitialize": "", "set_log_level": "level",
        "set_extern_logger": "log_fn", "get_last_err_msg": "", "get_and_clear_last_err_msg": "",
        "set_conf_store_tls": "enable tls_info",
        "set_conf_store_tls_key": "tls_pk tls_pk_pw py_decrypt_func",
        "create_config_store": "store_url", "get_include_path": "", "get_lib_path": ""},
    later_bm: {"initialize": "store_url world_size device_id config", "uninitialize": "flags=",
               "bm_rank_id": "",
               "create": "id local_dram_size local_hbm_size data_op_type= flags="},
    later_bm.BmConfig: {"set_nic": "nic"},
    later_bm.BigMemory: {
        "join": "flags=", "leave": "flags=", "local_mem_size": "mem_type=",
        "peer_rank_ptr": "peer_rank mem_type=", "destroy": "", "get_rank_id_by_gva": "gva",
        "register": "addr size", "unregister": "addr",
        "copy_data": "src_ptr dst_ptr size type flags=",
        "copy_data_batch": "src_addrs dst_addrs sizes count type flags=", "wait": ""},
    later_shm: {"initialize": "store_url world_size rank_id device_id config",
                "uninitialize": "flags=",
                "create": "id rank_size rank_id local_mem_size data_op_type= flags="},
    later_shm.ShareMemory: {"set_context": "context", "barrier": "", "all_gather": "local_data",
                            "destroy": "flags=", "query_support_data_operation": "",
                            "topology_can_reach": "remote_rank reach_info"},
    mf_adapter: {"create_config_store": "store_url", "set_log_level": "level",
                 "set_conf_store_tls": "enable tls_info"},
    mf_adapter.TransferEngine: {
        "initialize": "store_url session_id role device_id data_op_type=", "get_rpc_port": "",
        "register_memory": "buffer_addr capacity", "unregister_memory": "buffer_addr",
        "batch_register_memory": "buffer_addrs capacities", "destroy": "", "unInitialize": "",
        **{"transfer_sync_" + kind: "dest_session buffer peer_buffer length flags="
           for kind in ("write", "read")},
        **{"batch_transfer_sync_" + kind: "dest_session buffers peer_buffers lengths flags="
           for kind in ("write", "read")},
        **{"transfer_async_%s_submit" % kind:
           "dest_session buffer peer_buffer length stream flags=" for kind in ("write", "read")},
        **{"batch_transfer_async_%s_submit" % kind:
           "dest_session buffers peer_buffers lengths stream flags=" for kind in ("write", "read")},
    },
}
ENUMS = {
    bm.BmCopyType: "L2G=0 G2L=1 G2H=2 H2G=3",
    bm.BmDataOpType: "SDMA=1 ROCE=2",
    shm.ShmDataOpType: "MTE=1 SDMA=2 ROCE=4",
    later_bm.BmCopyType: "L2G=0 G2L=1 G2H=2 H2G=3 L2GH=4 GH2L=5 GH2H=6 H2GH=7 G2G=8 AUTO=9",
    later_bm.BmDataOpType: "SDMA=1 HOST_RDMA=2 HOST_TCP=4 DEVICE_RDMA=8 HOST_URMA=16",
    later_bm.BmMemType: "LOCAL_DEVICE=0 LOCAL_HOST=1 DEVICE=2 HOST=3",
    later_shm.ShmDataOpType: "MTE=1 SDMA=2 RDMA=4",
    mf_adapter.TransferEngine.TransferOpcode: "Read=0 Write=1",
    mf_adapter.TransferEngine.TransDataOpType: "SDMA=1 HOST_RDMA=2 HOST_TCP=4 DEVICE_RDMA=8",
}


@pytest.fixture(autouse=True)
def ended():
    yield
    mf_smem.uninitialize()


def new_url():
    return "tcp://127.0.0.1:%d" % free_port()


@pytest.mark.parametrize("owner, name", [(owner, name) for owner in CALLS for name in CALLS[owner]],
                         ids=lambda part: getattr(part, "__name__", part))
def test_takes_the_documented_parameters(owner, name):
    function = getattr(owner, name)
    parameters = [one for one in inspect.signature(function).parameters.values()
                  if one.name != "self"]
    said = " ".join(one.name + ("" if one.default is one.empty else "=") for one in parameters)
    assert said == CALLS[owner][name]
    assert inspect.getdoc(function)


@pytest.mark.parametrize("kind", ENUMS, ids=lambda kind: kind.__module__ + "." + kind.__name__)
def test_enumerations_print_and_convert(kind):
    assert issubclass(kind, enum.Enum)
    values = dict(one.split("=") for one in ENUMS[kind].split())
    assert {member.name: str(int(member)) for member in kind} == values
    for member in kind:
        assert str(member) == "{}.{}".format(kind.__name__, member.name)


@pytest.mark.parametrize("config, defaults", [
    (bm.BmConfig, BM_CONFIG), (shm.ShmConfig, SEED_CONFIG), (mf_smem.TlsOption, TLS),
    (later_bm.BmConfig, dict(BM_CONFIG, auto_ranking=True)), (later_shm.ShmConfig, SEED_CONFIG)])
def test_configurations_have_documented_defaults_and_keep_what_is_set(config, defaults):
    one = config()
    for name, value in defaults.items():
        assert getattr(one, name) == value, name
        other = not value if isinstance(value, bool) else {"a"} if isinstance(value, set) else \
            "text" if isinstance(value, str) else 77
        setattr(one, name, other)
        assert getattr(one, name) == other, name


def test_the_packages_export_what_is_documented():
    assert mf_smem.__all__ == ["bm", "shm", "initialize", "uninitialize", "set_log_level",
                               "set_ssl_option", "TlsOption"]
    assert memfabric_hybrid.TransferEngine is mf_adapter.TransferEngine
    assert memfabric_hybrid.TransferOpcode is mf_adapter.TransferEngine.TransferOpcode
    for name in ("local_rank", "rank_size", "gva"):
        assert isinstance(inspect.getattr_static(shm.ShareMemory, name), property)
        assert isinstance(inspect.getattr_static(later_shm.ShareMemory, name), property)
    assert mf_smem.__version__ in mf_smem.__doc__
    library = pathlib.Path(memfabric_hybrid.get_lib_path()) / "libmf_smem.so"
    header = pathlib.Path(memfabric_hybrid.get_include_path()) / "smem_bm.h"
    assert library.exists() and header.exists()


@pytest.mark.parametrize("topic", [mf_smem, bm, shm, memfabric_hybrid, later_bm, later_shm,
                                   mf_adapter, mf_adapter.TransferEngine])
def test_help_teaches(topic):
    text = pydoc.plain(pydoc.render_doc(topic))
    assert len(text.splitlines()) > 30
    if topic is bm:
        assert "pool.join()" in text and "Our rank, without auto_ranking" in text


LAYOUTS = {"smem_shm_config_t": _structures.ShmConfig, "smem_tls_config": _structures.TlsConfig,
           "smem_bm_create_option_t": _structures.BmCreateOption,
           "smem_copy_params": _structures.CopyParams,
           "smem_batch_copy_params": _structures.BatchCopyParams,
           "smem_trans_config_t": _structures.TransConfig,
           "smem_tls_option": _structures.TlsOption}


def test_structures_are_laid_out_as_the_compiler_does():
    """Against the sizes and offsets that tests/capi/layout.c has the compiler check."""
    text = (documents.ROOT / "tests/capi/layout.c").read_text()
    common, level1, level2, rest = re.split(r"#if SMEM_API_LEVEL < 2|#else|#endif", text)
    checked = set()
    for part, config in ((level1 + common + rest, _structures.BmConfig),
                         (level2 + common + rest, _structures.BmConfigV2)):
        known = dict(LAYOUTS, smem_bm_config_t=config)
        for name, size in re.findall(r"sizeof\((\w+)\) == (\d+)", part):
            if name in known:
                assert ctypes.sizeof(known[name]) == int(size), name
                checked.add(known[name])
        for name, field, offset in re.findall(r"offsetof\((\w+), (\w+)\) == (\d+)", part):
            if name in known:
                assert getattr(known[name], field).offset == int(offset), field
    assert checked == set(LAYOUTS.values()) | {_structures.BmConfig, _structures.BmConfigV2}


def test_every_prototype_names_a_function_of_the_headers():
    headers = (documents.ROOT / "include/smem/host").glob("*.h")
    declared = re.sub(r"/\*.*?\*/", "", "".join(path.read_text() for path in headers), flags=re.S)
    for name, (_, arguments) in _library.FUNCTIONS.items():
        found = re.search(r"\b%s\(([^;]*?)\);" % name, declared, re.S)
        assert found, name
        parameters = found[1].replace("void (*func)(int level, const char* msg)", "void* func")
        count = 0 if parameters.strip() == "void" else parameters.count(",") + 1
        assert count == len(arguments), name


def test_failures_raise_with_a_sentence():
    config = bm.BmConfig()
    with pytest.raises(RuntimeError, match="smem_init"):
        bm.initialize(new_url(), 1, 0, config)
    assert mf_smem.initialize() == 0
    with pytest.raises(RuntimeError, match=r"rankId 65535 cannot be.*\(-2000\)"):
        bm.initialize(new_url(), 1, 0, config)
    config.rank_id = 0
    with pytest.raises(RuntimeError, match="port \"80\""):
        bm.initialize("tcp://127.0.0.1:80", 1, 0, config)
    with pytest.raises(RuntimeError, match="smem_bm_init"):
        bm.bm_rank_id()
    with pytest.raises(RuntimeError, match="smem_bm_init"):
        bm.create(0, 1 << 21, 0)
    assert bm.initialize(new_url(), 1, 0, config) == 0
    with pytest.raises(RuntimeError, match="both sizes are 0"):
        bm.create(0, 0, 0)
    pool = bm.create(0, 0, 1)
    assert pool.local_mem_size() == 2 << 20
    with pytest.raises(RuntimeError, match="pool 0 was not joined"):
        pool.copy_data(1, 2, 3, bm.BmCopyType.H2G)
    pool.join()
    with pytest.raises(RuntimeError, match="rank 1 cannot be"):
        pool.peer_rank_ptr(1)
    host = ctypes.create_string_buffer(16)
    with pytest.raises(RuntimeError, match="H2G"):
        pool.copy_data(ctypes.addressof(host), ctypes.addressof(host) + 8, 8, bm.BmCopyType.H2G)
    with pytest.raises(RuntimeError, match="log level 4"):
        mf_smem.set_log_level(4)
    option = mf_smem.TlsOption()
    assert mf_smem.set_ssl_option(option) == 0
    option.enable_tls = True
    with pytest.raises(RuntimeError, match="tlsPk names no key"):
        mf_smem.set_ssl_option(option)
    mf_smem.uninitialize()
    with pytest.raises(RuntimeError, match="smem_bm_init"):
        pool.local_mem_size()


def test_share_memory_says_what_is_wrong():
    mf_smem.initialize()
    assert shm.initialize(new_url(), 1, 0, 0, shm.ShmConfig()) == 0
    memory = shm.create(0, 1, 0, 1 << 21)
    for size in (0, 65537):
        with pytest.raises(RuntimeError):
            memory.set_context(bytes(size))
        with pytest.raises(RuntimeError):
            memory.all_gather(bytes(size))
    assert memory.all_gather(bytes(65536)) == bytes(65536)
    with pytest.raises(TypeError):
        memory.all_gather(16)
    with pytest.raises(RuntimeError, match="rankSize 2"):
        shm.create(1, 2, 0, 1 << 21)
    shm.uninitialize()
    with pytest.raises(RuntimeError, match="smem_shm_init"):
        memory.barrier()


def test_numbers_that_do_not_fit_are_refused():
    config = bm.BmConfig()
    config.rank_id = -1
    assert config.rank_id == 65535
    for value in (-2, 65536):
        with pytest.raises(ValueError, match="rankId"):
            config.rank_id = value
    with pytest.raises(ValueError, match="initTimeout is 4294967296, not 0 to 4294967295"):
        config.init_timeout = 1 << 32
    with pytest.raises(ValueError, match="device_id"):
        bm.initialize(new_url(), 1, -1, config)
    with pytest.raises(TypeError):
        bm.initialize(new_url(), "1", 0, config)
    with pytest.raises(ValueError, match="store_url contains a zero byte"):
        bm.initialize("tcp://127.0.0.1:7000\0", 1, 0, config)
    later = later_bm.BmConfig()
    with pytest.raises(ValueError, match="nic has 64 bytes, 63 are the most"):
        later.set_nic("x" * 64)
    later.set_nic("tcp://127.0.0.1:0")
    assert "rank_id=65535" in repr(later)
    for made in (bm.BigMemory, shm.ShareMemory, later_bm.BigMemory, later_shm.ShareMemory):
        with pytest.raises(TypeError, match="is made by"):
            made()


def test_the_later_interface_returns_codes():
    mf = memfabric_hybrid
    config = later_bm.BmConfig()
    assert later_bm.initialize(new_url(), 1, 0, config) == -2008
    assert "smem_init" in mf.get_last_err_msg()
    assert mf.initialize() == 0
    assert later_bm.initialize("nonsense", 1, 0, config) == -2000
    assert "nonsense" in mf.get_and_clear_last_err_msg()
    assert mf.get_last_err_msg() == ""
    assert mf.set_log_level(9) == -2000
    assert mf.set_conf_store_tls(False, "") == 0
    assert mf.set_conf_store_tls(True, "tlsCert: a") == -2000
    assert "tlsCaPath" in mf.get_last_err_msg()
    assert mf.set_conf_store_tls_key("key", "password", lambda text: text) == -2000
    asked = []
    assert mf.set_conf_store_tls_key("-----BEGIN x", "drow", lambda text: asked.append(text) or "word") == 0
    assert asked == ["drow"]
    with pytest.raises(RuntimeError, match="smem_bm_init"):
        later_bm.create(0, 1 << 21, 0)
    assert later_bm.initialize(new_url(), 1, 0, config) == 0
    pool = later_bm.create(0, 1 << 21, 0)
    assert pool.copy_data(1, 2, 3, later_bm.BmCopyType.AUTO) == -2003
    assert pool.leave() == -2003
    assert pool.join() == 0
    host = pool.peer_rank_ptr(0, later_bm.BmMemType.HOST)
    assert host != 0 and pool.peer_rank_ptr(0) == 0
    assert pool.local_mem_size(later_bm.BmMemType.HOST) == 2 << 20
    assert pool.get_rank_id_by_gva(host) == 0
    assert pool.get_rank_id_by_gva(1) == 0xFFFFFFFF
    assert pool.copy_data_batch([host], [host + 8], [8], 1, later_bm.BmCopyType.AUTO) == 0
    with pytest.raises(ValueError, match="count is 2, but a list has only 1"):
        pool.copy_data_batch([host, host], [host], [8, 8], 2, later_bm.BmCopyType.AUTO)
    pool.destroy()
    assert pool.join() == -2000
    pool.destroy()


def test_log_lines_go_to_a_function():
    """In a process of its own: there is no way back to standard error."""
    code = ("import memfabric_hybrid as mf\n"
            "lines = []\n"
            "mf.set_log_level(1)\n"
            "assert mf.set_extern_logger(lambda level, line: lines.append((level, line))) == 0\n"
            "mf.initialize()\n"
            "assert any(level == 1 and 'smem of HMC' in line for level, line in lines), lines\n")
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout) == (0, "")
    with pytest.raises(TypeError, match="not a function"):
        memfabric_hybrid.set_extern_logger("a string")


def test_an_import_without_the_library_says_where_it_looked(tmp_path, monkeypatch):
    monkeypatch.setattr(_library, "HERE", str(tmp_path))
    monkeypatch.setattr(_library, "FILE", "libmf_smem_of_nobody.so")
    monkeypatch.setenv("MEMFABRIC_HYBRID_HOME_PATH", str(tmp_path / "home"))
    with pytest.raises(ImportError) as failed:
        _library.load()
    said = str(failed.value)
    for place in (tmp_path / "lib", tmp_path / "home/lib64"):
        assert "{}/libmf_smem_of_nobody.so: no such file".format(place) in said
    assert "\n  libmf_smem_of_nobody.so: " in said  # the loader's own search


def test_the_library_of_the_install_folder_is_found(tmp_path, monkeypatch):
    library = pathlib.Path(memfabric_hybrid.get_lib_path()) / "libmf_smem.so"
    (tmp_path / "home/lib64").mkdir(parents=True)
    (tmp_path / "home/lib64/libmf_smem.so").symlink_to(library)
    monkeypatch.setattr(_library, "HERE", str(tmp_path))
    monkeypatch.setenv("MEMFABRIC_HYBRID_HOME_PATH", str(tmp_path / "home"))
    assert _library.load()._name == str(tmp_path / "home/lib64/libmf_smem.so")


def test_the_sources_are_for_python_3_8():
    for path in (documents.ROOT / "python/memfabric").glob("*/*.py"):
        ast.parse(path.read_text(), str(path), feature_version=(3, 8))
