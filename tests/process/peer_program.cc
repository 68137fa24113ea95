#include "peer_program.h"

#include <algorithm>
#include <sstream>

#include "fakes/pattern.h"
#include "fakes/unseen_order.h"

namespace hmc::test {

namespace {

std::string oneLine(std::string text) {
  std::replace(text.begin(), text.end(), '\n', '|');
  return text;
}

const char* nameOf(status_t status) {
  const char* const names[] = {"SUCCESS",        "ERROR",   "UNSUPPORT",
                               "INVALID_CONFIG", "TIMEOUT", "NOT_FOUND"};
  return names[static_cast<int>(status)];
}

}  // namespace

std::string answerFor(status_t status, const std::string& text) {
  if (status == status_t::SUCCESS) return "ok " + text;
  return std::string("error ") + nameOf(status) + " " + oneLine(lastError());
}

ConnType readType(std::istream& in) {
  std::string name;
  in >> name;
  if (name == "RDMA") return ConnType::RDMA;
  if (name == "UCX") return ConnType::UCX;
  if (name == "TCP") return ConnType::TCP;
  if (name == "IPC") return ConnType::IPC;
  if (name == "AUTO") return ConnType::AUTO;
  return static_cast<ConnType>(99);
}

PeerProgram::PeerProgram() {
  addSetup();
  addTransfers();
  addText();
  addMessages();
  addRounds();
  addObservation();
}

PeerProgram::~PeerProgram() {
  communicator_.reset();
  if (loop_.joinable()) loop_.join();
}

std::string PeerProgram::obey(const std::string& line) {
  std::istringstream in(line);
  std::string name;
  in >> name;
  auto command = commands_.find(name);
  if (command == commands_.end()) return "error UNKNOWN " + line;
  if (!communicator_ && name != "communicator" && name != "count")
    return "error UNKNOWN " + name + " needs a communicator";
  return command->second(in);
}

status_t PeerProgram::writeBuffer(const void* bytes, size_t size, size_t offset) {
  Unseen order;
  return buffer_->writeFromCpu(bytes, size, offset);
}

status_t PeerProgram::readBuffer(void* bytes, size_t size, size_t offset) {
  Unseen order;
  return buffer_->readToCpu(bytes, size, offset);
}

void PeerProgram::addSetup() {
  commands_["communicator"] = [this](std::istream& in) -> std::string {
    size_t size = 0;
    in >> size;
    communicator_.reset();
    buffer_ = std::make_shared<ConnBuffer>(0, size, MemoryType::CPU);
    communicator_ = std::make_unique<Communicator>(buffer_);
    return "ok";
  };
  commands_["server"] = [this](std::istream& in) {
    std::string ip, path;
    uint16_t data = 0, control = 0;
    in >> ip >> data >> control >> path;
    if (path == "-") path = "";
    return answerFor(communicator_->initServer(ip, data, control, path, readType(in)));
  };
  commands_["closeserver"] = [this](std::istream&) {
    return answerFor(communicator_->closeServer());
  };
  commands_["connect"] = [this](std::istream& in) {
    uint32_t peer = 0, self = 0;
    std::string ip;
    uint16_t data = 0;
    Communicator::CtrlLink link;
    in >> peer >> self >> ip >> data >> link.port;
    link.ip = ip;
    return answerFor(communicator_->connectTo(peer, self, ip, data, link, readType(in)));
  };
  commands_["connectuds"] = [this](std::istream& in) {
    uint32_t peer = 0, self = 0;
    std::string ip;
    uint16_t data = 0;
    Communicator::CtrlLink link;
    link.transport = Communicator::CtrlTransport::UDS;
    in >> peer >> self >> ip >> data >> link.uds_path;
    return answerFor(communicator_->connectTo(peer, self, ip, data, link, readType(in)));
  };
  commands_["disconnect"] = [this](std::istream& in) {
    std::string ip;
    uint16_t port = 0;
    in >> ip >> port;
    return answerFor(communicator_->disConnect(ip, port, readType(in)));
  };
  commands_["destroy"] = [this](std::istream&) -> std::string {
    communicator_.reset();
    buffer_.reset();
    return "ok";
  };
}

void PeerProgram::addTransfers() {
  for (bool put : {true, false}) {
    commands_[put ? "put" : "get"] = [this, put](std::istream& in) {
      std::string ip;
      uint16_t port = 0;
      size_t local = 0, remote = 0, size = 0;
      in >> ip >> port >> local >> remote >> size;
      ConnType type = readType(in);
      return answerFor(put ? communicator_->put(ip, port, local, remote, size, type)
                           : communicator_->get(ip, port, local, remote, size, type));
    };
  }
  commands_["fill"] = [this](std::istream& in) {
    size_t offset = 0, size = 0;
    int seed = 0;
    in >> offset >> size >> seed;
    return answerFor(writeBuffer(pattern(size, static_cast<uint64_t>(seed)).data(), size, offset));
  };
  commands_["check"] = [this](std::istream& in) -> std::string {
    size_t offset = 0, size = 0;
    int seed = 0;
    in >> offset >> size >> seed;
    std::string bytes(size, '\0');
    if (readBuffer(bytes.data(), size, offset) != status_t::SUCCESS)
      return answerFor(status_t::ERROR);
    const std::string wanted = pattern(size, static_cast<uint64_t>(seed));
    if (bytes == wanted) return "ok";
    auto differs = std::mismatch(bytes.begin(), bytes.end(), wanted.begin());
    return "error DIFFERENT at byte " + std::to_string(differs.first - bytes.begin());
  };
}

void PeerProgram::addText() {
  commands_["text"] = [this](std::istream& in) -> std::string {
    size_t offset = 0, size = 0;
    in >> offset >> size;
    std::string bytes(size, '\0');
    status_t status = readBuffer(&bytes[0], size, offset);
    for (char& letter : bytes) letter = letter > ' ' && letter <= '~' ? letter : '.';
    return answerFor(status, bytes);
  };
}

void PeerProgram::addMessages() {
  commands_["tag"] = [this](std::istream& in) {
    uint32_t peer = 0;
    uint64_t tag = 0;
    in >> peer >> tag;
    return answerFor(communicator_->ctrlSend(peer, tag));
  };
  commands_["recvtag"] = [this](std::istream& in) {
    uint32_t peer = 0;
    uint64_t tag = 0;
    in >> peer;
    status_t status = communicator_->ctrlRecv(peer, &tag);
    return answerFor(status, std::to_string(tag));
  };
  commands_["closepeer"] = [this](std::istream& in) {
    uint32_t peer = 0;
    in >> peer;
    return answerFor(communicator_->closeCtrlPeer(peer));
  };
}

}  // namespace hmc::test
