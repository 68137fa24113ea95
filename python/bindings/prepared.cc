#include "prepared.h"

#include <set>

#include "moves.h"

namespace hmc::python {

namespace py = pybind11;

namespace {

// Blocks between one memory of ours and one region of a peer's, which are one ticket.
struct BlockList {
  Remote remote;
  Region local;
  std::vector<Block> blocks;
  void* stream = nullptr;
};

// The class behind hmc.Prepared. Also what is left of pairs when short copies are done.
struct Prepared {
  std::vector<BlockList> lists;
  std::map<std::pair<const void*, const void*>, size_t> known;  // lists, by their two memories
  size_t nbytes = 0;
  size_t count = 0;  // of blocks

  void add(const Remote& remote, const Region& local, const std::vector<Block>& blocks,
           void* stream = nullptr) {
    const auto key = std::make_pair<const void*, const void*>(&*remote.memory, &*local.memory);
    const auto [found, isNew] = known.emplace(key, lists.size());
    if (isNew) lists.push_back({remote, local, {}, stream});
    auto& list = lists[found->second].blocks;
    list.insert(list.end(), blocks.begin(), blocks.end());
    count += blocks.size();
    for (const Block& block : blocks) nbytes += block.size;
  }
  void add(const Remote& remote, const Region& local, void* stream = nullptr) {
    add(remote, local, {{local.range.offset, remote.range.offset, local.range.size}}, stream);
  }
};

// What cannot be started ends the transfer with its error, when what was started has ended; if
// nothing was, it is raised.
void startLists(Direction direction, const Prepared& lists, bool streamWaits, Transfer& transfer) {
  for (const BlockList& list : lists.lists) {
    auto ticket = withoutGil([&, &there = *list.remote.memory, &here = *list.local.memory] {
      return startOn(direction, there, here, list.blocks, list.stream, streamWaits);
    });
    if (!ticket.ok() && transfer.parts.empty() && transfer.atOnce.empty()) check(ticket.status());
    if (!ticket.ok()) {
      transfer.failure = ticket.status();
      return;
    }
    transfer.parts.push_back({list.remote.memory, list.local.memory, *std::move(ticket)});
  }
}

// One note for each peer.
void sendNotes(const std::vector<const Remote*>& remotes, py::handle note,
               const Deadline& deadline) {
  std::set<std::string> sent;
  for (const Remote* remote : remotes) {
    if (sent.insert(remote->peer->id()).second) sendNote(*remote, note, deadline);
  }
}

// (local, remote)
struct Pair {
  Remote remote;
  std::unique_ptr<LocalSide> local;
};

[[noreturn]] void refusePair(size_t index, py::handle what) {
  throw py::type_error("pairs[" + std::to_string(index) + "] is " +
                       py::cast<std::string>(py::repr(what)) +
                       ": pass tuples of (memory of this process, RemoteRegion)");
}

// The parts of a pair, and its RemoteRegion.
std::pair<py::sequence, const Remote*> partsOf(const Handle<Node>& node, size_t index,
                                               py::handle given) {
  const bool isPair =
      (py::isinstance<py::tuple>(given) || py::isinstance<py::list>(given)) && py::len(given) == 2;
  if (!isPair) refusePair(index, given);
  auto parts = py::reinterpret_borrow<py::sequence>(given);
  const py::object there = parts[1];
  if (!py::isinstance<Remote>(there)) refusePair(index, given);
  const auto& remote = py::cast<const Remote&>(there);
  if (&*remote.node != &*node) {
    raise(Code::invalidArgument, "pairs[" + std::to_string(index) + "] has " + title(remote) +
                                     ", which another Node has opened: use that one");
  }
  return {std::move(parts), &remote};
}

std::vector<Pair> pairsFrom(Direction direction, const Handle<Node>& node, const py::list& given,
                            py::handle stream) {
  std::vector<Pair> pairs;
  pairs.reserve(given.size());
  for (py::handle one : given) {
    const auto [parts, remote] = partsOf(node, pairs.size(), one);
    const py::object object = parts[0];
    auto local = std::make_unique<LocalSide>(node, object, stream, direction == Direction::get);
    checkFits(direction, *remote, *local);
    pairs.push_back({*remote, std::move(local)});
  }
  return pairs;
}

Transfer startPairs(Direction direction, std::vector<Pair>& pairs, bool streamWaits) {
  Transfer transfer;
  Prepared rest;
  for (Pair& pair : pairs) {
    if (!atOnce(direction, pair.remote, *pair.local)) {
      rest.add(pair.remote, **pair.local, pair.local->stream());
      continue;
    }
    auto& done = transfer.atOnce;
    const bool isNew = done.empty() || &*done.back() != &*pair.remote.memory;
    if (isNew) done.push_back(pair.remote.memory);
  }
  startLists(direction, rest, streamWaits, transfer);
  return transfer;
}

template <Direction direction>
void movePairs(const NodeOf& self, const py::iterable& given, py::handle timeout, py::handle stream,
               py::handle note) {
  const Deadline deadline(timeoutFrom(timeout));
  const py::list kept(given);
  auto pairs = pairsFrom(direction, self.node, kept, stream);
  Transfer transfer = startPairs(direction, pairs, false);
  finish(transfer, deadline.left(), [&] {
    return std::string(word(direction)) + " of " + std::to_string(pairs.size()) + " pairs";
  });
  std::vector<const Remote*> remotes;
  for (const Pair& pair : pairs) remotes.push_back(&pair.remote);
  sendNotes(remotes, note, deadline);
}

template <Direction direction>
Transfer beginPairs(const NodeOf& self, const py::iterable& given, py::handle stream) {
  const py::list kept(given);
  auto pairs = pairsFrom(direction, self.node, kept, stream);
  return startPairs(direction, pairs, true);
}

// Memory that is used again and again: a copy of it would not see what is written later.
Region lastingRegion(const Handle<Node>& node, py::handle object) {
  if (py::isinstance<Region>(object)) return py::cast<const Region&>(object);
  const auto bytes = hostBytesOf(object);
  const bool readOnly = bytes && bytes->readOnly;
  return registerObject(node, object, "", readOnly ? Access::read : Access::readWrite);
}

Prepared prepareBlocks(const Remote& self, py::handle object, py::handle localOffsets,
                       py::handle remoteOffsets, py::handle sizes) {
  const Region local = lastingRegion(self.node, object);
  Prepared prepared;
  if (localOffsets.is_none() && remoteOffsets.is_none() && sizes.is_none()) {
    prepared.add(self, local);
    return prepared;
  }
  if (localOffsets.is_none() || remoteOffsets.is_none() || sizes.is_none()) {
    raise(Code::invalidArgument,
          "blocks need local_offsets, remote_offsets and sizes: pass all three, or none of them "
          "for all of the memory");
  }
  prepared.add(self, local,
               blocksFrom(localOffsets, remoteOffsets, sizes, local.range, self.range));
  return prepared;
}

Prepared preparePairs(const NodeOf& self, const py::iterable& given) {
  const py::list kept(given);
  Prepared prepared;
  for (py::handle one : kept) {
    const auto [parts, remote] = partsOf(self.node, prepared.count, one);
    const py::object object = parts[0];
    const Region local = lastingRegion(self.node, object);
    if (local.range.size > remote->range.size) {
      raise(Code::outOfRange, "pairs[" + std::to_string(prepared.count) + "] has " +
                                  std::to_string(local.range.size) + " bytes for the " +
                                  std::to_string(remote->range.size) + " bytes of " +
                                  title(*remote));
    }
    prepared.add(*remote, local);
  }
  return prepared;
}

// With the streams of this call.
Transfer startPrepared(Direction direction, Prepared& self, py::handle stream, bool streamWaits) {
  for (BlockList& list : self.lists) {
    if (direction == Direction::get && list.local.readOnly)
      raise(Code::invalidArgument, "read-only memory was prepared, which cannot receive data");
    list.stream = streamFor(list.local, stream);
  }
  Transfer transfer;
  startLists(direction, self, streamWaits, transfer);
  return transfer;
}

template <Direction direction>
Transfer beginPrepared(Prepared& self, py::handle stream) {
  return startPrepared(direction, self, stream, true);
}

template <Direction direction>
void movePrepared(Prepared& self, py::handle timeout, py::handle stream, py::handle note) {
  const Deadline deadline(timeoutFrom(timeout));
  Transfer transfer = startPrepared(direction, self, stream, false);
  finish(transfer, deadline.left(), [&] {
    return std::string(word(direction)) + " of " + std::to_string(self.count) + " prepared blocks";
  });
  std::vector<const Remote*> remotes;
  for (const BlockList& list : self.lists) remotes.push_back(&list.remote);
  sendNotes(remotes, note, deadline);
}

}  // namespace

void bindPrepared(py::module_& module) {
  const py::arg_v timeout = py::arg("timeout") = 30;
  PublicClass<Prepared> prepared(module, "Prepared",
                                 R"(Blocks that are put or got again and again.

Made by RemoteRegion.prepare and Node.prepare. What they name is read and checked once,
and memory that was not registered stays so as long as this object lives.)");
  prepared
      .property("nbytes", "The bytes that each put and get moves.",
                [](const Prepared& self) { return self.nbytes; })
      .def("__len__", [](const Prepared& self) { return self.count; })
      .def("put", movePrepared<Direction::put>, timeout, noStream(), noNote(),
           R"(put(self, timeout=30, stream=None, note=None)
--

Copy all blocks to the peer, as RemoteRegion.put does.)")
      .def(
          "get",
          [](Prepared& self, py::handle time, py::handle stream) {
            movePrepared<Direction::get>(self, time, stream, py::none());
          },
          timeout, noStream(), R"(get(self, timeout=30, stream=None)
--

Copy all blocks from the peer, as RemoteRegion.get does.)")
      .def("start_put", beginPrepared<Direction::put>, noStream(),
           "start_put(self, stream=None)\n--\n\nBegin a put and return a Transfer.")
      .def("start_get", beginPrepared<Direction::get>, noStream(),
           "start_get(self, stream=None)\n--\n\nBegin a get and return a Transfer.")
      .def("__repr__", [](const Prepared& self) {
        return "<hmc.Prepared of " + std::to_string(self.count) + " blocks, " +
               std::to_string(self.nbytes) + " bytes>";
      });
}

void bindPrepare(RemoteClass& remote) {
  remote.def("prepare", prepareBlocks, py::arg("local"), py::arg("local_offsets") = py::none(),
             py::arg("remote_offsets") = py::none(), py::arg("sizes") = py::none(),
             R"(prepare(self, local, local_offsets=None, remote_offsets=None, sizes=None)
--

Read and check blocks once; return a Prepared that puts and gets them many times.

The arguments are those of put_blocks. Without offsets it is all bytes of `local`.)");
}

void bindPairs(NodeClass& node) {
  const py::arg pairs("pairs");
  const py::arg_v timeout = py::arg("timeout") = 30;
  node.def("put", movePairs<Direction::put>, pairs, timeout, noStream(), noNote(),
           R"(put(self, pairs, timeout=30, stream=None, note=None)
--

Copy several memories to regions of peers, in one transfer.

`pairs` are tuples (local, remote): any memory that RemoteRegion.put takes, and a
RemoteRegion or a slice of one, of any peers. If one does not fit, none moves. With
`note`, each peer gets that note after the bytes.)")
      .def(
          "get",
          [](const NodeOf& self, const py::iterable& given, py::handle time, py::handle stream) {
            movePairs<Direction::get>(self, given, time, stream, py::none());
          },
          pairs, timeout, noStream(), R"(get(self, pairs, timeout=30, stream=None)
--

Fill several memories from regions of peers, in one transfer. See put.)")
      .def("start_put", beginPairs<Direction::put>, pairs, noStream(),
           R"(start_put(self, pairs, stream=None)
--

Begin a put of pairs and return one Transfer for all of them.)")
      .def("start_get", beginPairs<Direction::get>, pairs, noStream(),
           R"(start_get(self, pairs, stream=None)
--

Begin a get of pairs and return one Transfer for all of them.)")
      .def("prepare", preparePairs, pairs, R"(prepare(self, pairs)
--

Read and check pairs once; return a Prepared that puts and gets them many times.)");
}

}  // namespace hmc::python
