"""The transfer engine under the name by which inference servers import it.

    from mf_adapter import TransferEngine

`python -m mf_adapter.launch_ascend_mf_store` serves a store from a process of its own, at the
address of the variable ASCEND_MF_STORE_URL. help(mf_adapter.TransferEngine) says more.
"""

from memfabric_hybrid import (TransferEngine, TransferOpcode, create_config_store,
                              get_last_err_msg, set_conf_store_tls, set_log_level)

__all__ = ["TransferEngine", "TransferOpcode", "create_config_store", "get_last_err_msg",
           "set_conf_store_tls", "set_log_level"]
