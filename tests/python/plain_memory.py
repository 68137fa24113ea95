"""Memory of a process, for tests that copy by address."""

import ctypes


class Buffer:
    """Memory of this process at a plain number."""

    def __init__(self, content):
        self.memory = ctypes.create_string_buffer(content, len(content))
        self.address = ctypes.addressof(self.memory)

    @property
    def content(self):
        return self.memory.raw
