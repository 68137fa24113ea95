#pragma once

#include <string>
#include <utility>

#include "quick_method.h"
#include "transfer.h"

// What all methods share that put and get.
namespace hmc::python {

inline const char* word(Direction direction) {
  return direction == Direction::put ? "put" : "get";
}
inline std::string sized(Direction direction, size_t size) {
  return std::string(word(direction)) + " of " + std::to_string(size) + " bytes";
}

// What the caller named as the stream, and whether it is to wait for a get: it need not where the
// caller does.
struct StreamArgument {
  pybind11::handle named;
  bool waits = false;
};

// `shape` is a vector of blocks, or Strided. `after` is the stream that it is ordered with, or
// null. With `streamWaits`, so is what comes on it after a get. Needs no GIL.
template <class Shape>
Result<Ticket> startOn(Direction direction, const RemoteRegion& there, const LocalRegion& here,
                       const Shape& shape, void* after, bool streamWaits) {
  auto start = [&](const StreamOrder& order) {
    return direction == Direction::put ? there.startPut(here, shape, order)
                                       : there.startGet(here, shape, order);
  };
  if (!after || !streamWaits || direction == Direction::put) return start({after, nullptr});
  auto made = start({after, after});
  // Where streams cannot wait for the host, only the Ticket tells when the bytes are here.
  return made.status().code() == Code::unsupported ? start({after, nullptr}) : std::move(made);
}

template <class Shape>
Transfer begin(Direction direction, const Remote& remote, LocalSide& local, const Shape& shape,
               bool streamWaits = false) {
  const RemoteRegion& there = *remote.memory;
  const LocalRegion& here = *local->memory;
  auto ticket = withoutGil(
      [&] { return startOn(direction, there, here, shape, local.stream(), streamWaits); });
  Transfer transfer;
  transfer.parts.push_back({remote.memory, local->memory, check(std::move(ticket))});
  return transfer;
}

// Raises OutOfRange if the local side is the larger one.
void checkFits(Direction direction, const Remote& remote, const LocalSide& local);
// All of it, if that is short and waits for no peer. False, and nothing done, if not.
bool atOnce(Direction direction, const Remote& remote, LocalSide& local);

// Sends the note, if there is one, to the peer whose region that is.
void sendNote(const Remote& remote, pybind11::handle note, const Deadline& deadline);

// Methods that start a transfer, and that wait for it, too. The stream is their last argument.
template <class... Arguments>
auto starting(Transfer (*start)(const Remote&, StreamArgument, Arguments...)) {
  return [=](const Remote& self, Arguments... arguments, pybind11::handle stream) {
    return start(self, {stream, true}, arguments...);
  };
}
template <class... Arguments>
auto blocking(const char* what, Transfer (*start)(const Remote&, StreamArgument, Arguments...)) {
  return [=](const Remote& self, Arguments... arguments, pybind11::handle timeout,
             pybind11::handle stream) {
    const Timeout time = timeoutFrom(timeout);
    Transfer transfer = start(self, {stream}, arguments...);
    finish(transfer, time, [&] { return what + title(self); });
  };
}
// The same with a note that follows the bytes.
template <class... Arguments>
auto blockingWithNote(const char* what,
                      Transfer (*start)(const Remote&, StreamArgument, Arguments...)) {
  return [=](const Remote& self, Arguments... arguments, pybind11::handle timeout,
             pybind11::handle stream, pybind11::handle note) {
    const Deadline deadline(timeoutFrom(timeout));
    Transfer transfer = start(self, {stream}, arguments...);
    finish(transfer, deadline.left(), [&] { return what + title(self); });
    sendNote(self, note, deadline);
  };
}

inline pybind11::arg_v noStream() {
  return pybind11::arg("stream") = pybind11::none();
}
inline pybind11::arg_v noNote() {
  return pybind11::arg("note") = pybind11::none();
}

using RemoteClass = PublicClass<Remote>;
// remote_lists.cc: blocks and strided copies. prepared.cc: prepare().
void bindLists(RemoteClass& remote);
void bindPrepare(RemoteClass& remote);
void bindAtomics(RemoteClass& remote);

}  // namespace hmc::python
