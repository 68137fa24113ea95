"""The C structures of include/smem/host, field by field. The test holds them against the headers."""

from ctypes import (Structure, c_bool, c_char, c_char_p, c_int, c_size_t, c_uint16, c_uint32,
                    c_uint64, c_void_p)


class BmConfig(Structure):
    """smem_bm_config_t of level 1."""
    _fields_ = [("initTimeout", c_uint32),
                ("createTimeout", c_uint32),
                ("controlOperationTimeout", c_uint32),
                ("startConfigStore", c_bool),
                ("startConfigStoreOnly", c_bool),
                ("dynamicWorldSize", c_bool),
                ("unifiedAddressSpace", c_bool),
                ("autoRanking", c_bool),
                ("rankId", c_uint16),
                ("flags", c_uint32)]


class TlsConfig(Structure):
    """smem_tls_config of level 2."""
    _fields_ = [("tlsEnable", c_bool),
                ("caPath", c_char * 256),
                ("crlPath", c_char * 256),
                ("certPath", c_char * 256),
                ("keyPath", c_char * 256),
                ("keyPassPath", c_char * 256),
                ("packagePath", c_char * 256),
                ("decrypterLibPath", c_char * 256)]


class BmConfigV2(Structure):
    """smem_bm_config_t of level 2."""
    _fields_ = [("initTimeout", c_uint32),
                ("createTimeout", c_uint32),
                ("controlOperationTimeout", c_uint32),
                ("startConfigStoreServer", c_bool),
                ("startConfigStoreOnly", c_bool),
                ("dynamicWorldSize", c_bool),
                ("unifiedAddressSpace", c_bool),
                ("autoRanking", c_bool),
                ("rankId", c_uint16),
                ("flags", c_uint32),
                ("hcomUrl", c_char * 64),
                ("hcomTlsConfig", TlsConfig),
                ("storeTlsConfig", TlsConfig)]


class BmCreateOption(Structure):
    """smem_bm_create_option_t."""
    _fields_ = [("maxDramSize", c_uint64),
                ("maxHbmSize", c_uint64),
                ("localDRAMSize", c_uint64),
                ("localHBMSize", c_uint64),
                ("dataOpType", c_int),
                ("flags", c_uint32),
                ("tag", c_char * 32),
                ("tagOpInfo", c_char * 256),
                ("dramShmFd", c_int)]


class CopyParams(Structure):
    """smem_copy_params."""
    _fields_ = [("src", c_void_p), ("dest", c_void_p), ("dataSize", c_size_t)]


class BatchCopyParams(Structure):
    """smem_batch_copy_params; the pointers are addresses of arrays."""
    _fields_ = [("sources", c_void_p),
                ("destinations", c_void_p),
                ("dataSizes", c_void_p),
                ("batchSize", c_uint32)]


class ShmConfig(Structure):
    """smem_shm_config_t."""
    _fields_ = [("shmInitTimeout", c_uint32),
                ("shmCreateTimeout", c_uint32),
                ("controlOperationTimeout", c_uint32),
                ("startConfigStore", c_bool),
                ("flags", c_uint32)]


class TransConfig(Structure):
    """smem_trans_config_t."""
    _fields_ = [("role", c_int),
                ("initTimeout", c_uint32),
                ("deviceId", c_uint32),
                ("flags", c_uint32),
                ("dataOpType", c_int),
                ("startConfigServer", c_bool)]


class TlsOption(Structure):
    """smem_tls_option."""
    _fields_ = [("enableTls", c_bool),
                ("tlsTopPath", c_char_p),
                ("tlsCert", c_char_p),
                ("tlsCrlPath", c_char_p),
                ("tlsCaPath", c_char_p),
                ("tlsCaFile", c_char_p),
                ("tlsCrlFile", c_char_p),
                ("tlsPk", c_char_p),
                ("tlsPkPwd", c_char_p),
                ("kmcKsfMaster", c_char_p),
                ("kmcKsfStandby", c_char_p),
                ("packagePath", c_char_p)]
