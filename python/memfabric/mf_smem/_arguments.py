"""What callers hand over, checked and made into what C takes.

ctypes cuts numbers that do not fit; here they are errors.
"""

import array
import enum
import operator
import os

from ._library import last_error


class PrintedEnum(enum.IntEnum):
    """An enumeration that prints its name in every version of Python and converts to int."""

    def __str__(self):
        return "{}.{}".format(type(self).__name__, self.name)


def unsigned(value, name, bits=32):
    """A number of that many bits."""
    number = operator.index(value)
    if not 0 <= number < 1 << bits:
        raise ValueError("{} is {}, not 0 to {}".format(name, number, (1 << bits) - 1))
    return number


def pointer(value, name):
    return unsigned(value, name, 64)


def text(value, name):
    """Bytes of a string that C reads up to the first zero."""
    encoded = os.fsencode(value)
    if b"\0" in encoded:
        raise ValueError("{} contains a zero byte".format(name))
    return encoded


def octets(value):
    """The bytes of a bytes-like object."""
    return memoryview(value).tobytes()


def numbers(values, name):
    """An array of 64-bit numbers; its address is numbers(...).buffer_info()[0]."""
    try:
        return array.array("Q", values)
    except OverflowError:
        raise ValueError("{} has a number that is not 0 to 2**64 - 1".format(name)) from None


def address(values):
    """Of an array that numbers() made."""
    return values.buffer_info()[0]


def field(name, bits, doc):
    """A property of a configuration: a number in the C structure `self._native`."""

    def get(self):
        return getattr(self._native, name)

    def put(self, value):
        setattr(self._native, name, unsigned(value, name, bits))

    return property(get, put, doc=doc)


def switch(name, doc):
    """The same for a field that is true or false."""

    def get(self):
        return getattr(self._native, name)

    def put(self, value):
        setattr(self._native, name, bool(value))

    return property(get, put, doc=doc)


def rank_field(name, doc):
    """The same for a rank, where -1 means none, which C calls 65535."""

    def get(self):
        return getattr(self._native, name)

    def put(self, value):
        none = operator.index(value) == -1
        setattr(self._native, name, 0xFFFF if none else unsigned(value, name, 16))

    return property(get, put, doc=doc)


def describe(config):
    """For repr(): the class and every property with its value."""
    kind = type(config)
    names = (name for name in dir(kind) if isinstance(getattr(kind, name), property))
    parts = ("{}={!r}".format(name, getattr(config, name)) for name in names)
    return "{}({})".format(type(config).__name__, ", ".join(parts))


class Handle:
    """An object of the library, until it is destroyed or nobody has it any more."""

    def __init__(self, number, destroy):
        self.number = number
        self._destroy = destroy
        self._process = os.getpid()

    def close(self):
        """What destroying answers; None when that was done before.

        In a child of the process that made it the number may belong to another object.
        """
        number, self.number = self.number, None
        if number is None or self._process != os.getpid():
            return None
        return self._destroy(number)

    def __del__(self):
        self.close()


class Made:
    """What only the create() of its module makes."""

    def __init__(self) -> None:
        kind = type(self)
        raise TypeError("{} is made by {}.create()".format(kind.__name__, kind.__module__))

    @classmethod
    def _of(cls, number, destroy):
        if not number:
            raise RuntimeError(last_error())
        self = cls.__new__(cls)
        self._handle = Handle(number, destroy)
        return self
