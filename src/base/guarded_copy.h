#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <span>

// Copies between our memory and the user's, which may have been unmapped or protected by now: they
// stop there, where memcpy would end the process with SIGSEGV. The kernel does them, for the price
// of a system call. Where it forbids that (seccomp), they are memcpy.
namespace hmc {

// Fills `to` from parts of the user's memory. Answers how many bytes it copied: fewer than there
// are when the next ones cannot be read. There are 1024 parts at the most.
size_t readGuarded(void* to, std::span<const iovec> from);
// False when not all of it can be read.
bool readGuarded(void* to, const void* from, size_t size);

// Into the user's memory; false when not all of it can be written. A part may be.
bool writeGuarded(void* to, const void* from, size_t size);

}  // namespace hmc
