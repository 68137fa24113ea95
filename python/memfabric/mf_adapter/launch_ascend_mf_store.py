"""Serves a store until it is interrupted or terminated: python -m mf_adapter.launch_ascend_mf_store

ASCEND_MF_STORE_URL: where, "tcp://IPv4:port". Engines are initialized with the same.
ASCEND_MF_LOG_LEVEL: 0 debug, 1 info, 2 warning, 3 error; optional.
"""

import os
import signal
import sys

import mf_adapter


def main() -> int:
    url = os.environ.get("ASCEND_MF_STORE_URL")
    if not url:
        print("ASCEND_MF_STORE_URL is not set: it says where the store is served, for example "
              "tcp://10.0.0.1:7000", file=sys.stderr)
        return 1
    level = os.environ.get("ASCEND_MF_LOG_LEVEL", "")
    if level and (not level.isdigit() or mf_adapter.set_log_level(int(level)) != 0):
        print("ASCEND_MF_LOG_LEVEL is \"{}\", not 0 to 3".format(level), file=sys.stderr)
        return 1
    # Blocked before there are threads, so that the signal waits for us whoever gets it.
    ends = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    if mf_adapter.create_config_store(url) != 0:
        print(mf_adapter.get_last_err_msg(), file=sys.stderr)
        return 1
    print("serving the store at {}".format(url), flush=True)
    signal.sigwait(ends)
    return 0


if __name__ == "__main__":
    sys.exit(main())
