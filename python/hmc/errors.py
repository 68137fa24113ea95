"""The exceptions, by what a caller can do about them.

Each has a sentence as its text, the C++ core's name for the kind of error as `code`, and the
documented status as `status`. Each is also a subclass of the built-in exception that Python users
would catch.
"""

from .enums import Status


class HMCError(RuntimeError):
    """The base of everything that HMC raises; raised itself for failures that no caller can fix."""

    code = "failed"
    status = Status.ERROR

    def __init__(self, *args: object) -> None:
        if args and isinstance(args[0], Status):  # HMCStatusError(status, sentence)
            self.status = args[0]
            args = ("%s (status=%s)" % (args[1] if len(args) > 1 else "", args[0]),)
        super().__init__(*args)


# The documented name of the same class: every exception has a `status`.
HMCStatusError = HMCError


class InvalidArgument(HMCError, ValueError):
    """Fix the call."""

    code = "invalid argument"
    status = Status.INVALID_CONFIG


class OutOfRange(HMCError, ValueError, IndexError):
    """Fix the call: an offset or a size passes the end."""

    code = "out of range"


class NotFound(HMCError, LookupError):
    """Fix the name, or wait for it to exist."""

    code = "not found"
    status = Status.NOT_FOUND


class AlreadyExists(HMCError, ValueError):
    """Choose another name or port."""

    code = "already exists"


class Unsupported(HMCError, NotImplementedError):
    """This build, host or pair of peers cannot do it."""

    code = "unsupported"
    status = Status.UNSUPPORT


class PermissionDenied(HMCError, PermissionError):
    """The peer, the kernel or a missing secret refuses."""

    code = "permission denied"


class Exhausted(HMCError, MemoryError):
    """Try again later, or raise the limit that the sentence names."""

    code = "exhausted"


class DeadlineExceeded(HMCError, TimeoutError):
    """Try again, or wait longer."""

    code = "deadline exceeded"
    status = Status.TIMEOUT


class Cancelled(HMCError):
    """The caller cancelled it."""

    code = "cancelled"


class PeerLost(HMCError, ConnectionError):
    """The peer is gone: connect again."""

    code = "disconnected"


class NotConnected(NotFound, ConnectionError):
    """No peer of that address, port or rank: connect first."""

    code = "not connected"


_BY_CODE = {kind.code: kind for kind in HMCError.__subclasses__() + [NotConnected]}


def from_core(code: str, sentence: str) -> HMCError:
    """The exception for a code of the C++ core."""
    return _BY_CODE.get(code, HMCError)(sentence)
