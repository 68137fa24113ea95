#include "messages.h"

#include "arguments.h"
#include "errors.h"

namespace hmc::python {

namespace py = pybind11;

namespace {

const char* kindWord(const PeerEventOf& event) {
  return event.kind == PeerEvent::Kind::joined ? "joined" : "left";
}

void bindNote(py::module_& module) {
  PublicClass<NoteOf> note(module, "Note", "A message that a peer sent with Peer.notify.");
  note.property("peer", "The peer that sent it.", &NoteOf::peer)
      .property("data", "The bytes.", [](const NoteOf& self) { return py::bytes(self.bytes); })
      .def("__repr__", [](const NoteOf& self) {
        return "<hmc.Note of " + std::to_string(self.bytes.size()) + " bytes from \"" +
               self.peer.peer->name() + "\">";
      });
}

void bindPeerEvent(py::module_& module) {
  PublicClass<PeerEventOf> event(module, "PeerEvent", "A peer came or went.");
  event.property("peer", "Which one.", &PeerEventOf::peer)
      .property("kind", "\"joined\" or \"left\".", kindWord)
      .property("reason", "Why it left; empty if it joined.", &PeerEventOf::reason)
      .def("__repr__", [](const PeerEventOf& self) {
        return "<hmc.PeerEvent: \"" + self.peer.peer->name() + "\" " + kindWord(self) + ">";
      });
}

void bindCall(py::module_& module) {
  PublicClass<CallOf> call(module, "Call", "A call of a peer's, which waits for an answer.");
  call.property("peer", "The peer that calls.", &CallOf::peer)
      .property("name", "What it calls.", [](const CallOf& self) { return self.call->name(); })
      .property("data", "The bytes that it sent.",
                [](const CallOf& self) { return py::bytes(self.call->bytes()); })
      .def(
          "answer",
          [](const CallOf& self, const py::buffer& data) {
            const std::string bytes = bytesFrom(data);
            check(withoutGil([&, &to = *self.call] { return to.answer(bytes); }));
          },
          py::arg("data"),
          "answer(self, data)\n--\n\nSend what Peer.call returns over there. Once.")
      .def(
          "refuse",
          [](const CallOf& self, const std::string& why) {
            check(withoutGil([&, &to = *self.call] { return to.refuse(why); }));
          },
          py::arg("why"),
          "refuse(self, why)\n--\n\nLet Peer.call fail over there, with that sentence.")
      .def("__repr__", [](const CallOf& self) {
        return "<hmc.Call \"" + self.call->name() + "\" of \"" + self.peer.peer->name() + "\">";
      });
}

}  // namespace

void bindMessages(py::module_& module) {
  bindNote(module);
  bindPeerEvent(module);
  bindCall(module);
}

}  // namespace hmc::python
