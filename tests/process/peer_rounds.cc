#include <dirent.h>

#include <fstream>
#include <vector>

#include "peer_program.h"

namespace hmc::test {

namespace {

// 8 to 256 bytes that differ in every round, at every place.
size_t roundSize(uint64_t round) {
  return 8 + round * 37 % 249;
}
void fillRound(std::vector<unsigned char>& bytes, uint64_t round) {
  bytes.resize(roundSize(round));
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<unsigned char>(round + i + (round >> 8) * 7);
}

// Places in turn, so that the writer need not wait for each acknowledgement: on a busy machine that
// would make a round as long as two time slices. Now and then it waits all the same.
constexpr uint64_t kPlaces = 16;
size_t roundOffset(uint64_t round) {
  return round % kPlaces * 256;
}
uint64_t roundsAhead(uint64_t round, uint64_t rounds) {
  return round == rounds || round / 64 % 8 == 0 ? 1 : kPlaces;
}

size_t countEntries(const char* folder) {
  size_t count = 0;
  DIR* entries = opendir(folder);
  while (const dirent* entry = readdir(entries)) count += entry->d_name[0] != '.';
  closedir(entries);
  return count;
}

size_t countLines(const char* file) {
  std::ifstream in(file);
  size_t count = 0;
  for (std::string line; std::getline(in, line);) ++count;
  return count;
}

// Resident memory in KiB, without what is mapped from files or shared with others.
std::string privateMemory() {
  std::ifstream in("/proc/self/status");
  for (std::string word; in >> word;) {
    if (word == "RssAnon:") {
      in >> word;
      return word;
    }
  }
  return "0";
}

}  // namespace

void PeerProgram::addRounds() {
  commands_["writerounds"] = [this](std::istream& in) { return writeRounds(in); };
  commands_["readrounds"] = [this](std::istream& in) { return readRounds(in); };
  commands_["loop"] = [this](std::istream& in) { return startLoop(in); };
  commands_["rounds"] = [this](std::istream&) { return "ok " + std::to_string(loopCount_); };
  commands_["join"] = [this](std::istream&) { return joinLoop(); };
}

status_t PeerProgram::move(const std::string& what, const std::string& ip, uint16_t port,
                           size_t size, ConnType type) {
  constexpr size_t kChunk = 100000;
  constexpr size_t kInflight = 8;
  if (what == "put") return communicator_->put(ip, port, 0, 0, size, type);
  if (what == "get") return communicator_->get(ip, port, 0, 0, size, type);
  if (what == "putpipeline")
    return communicator_->putPipeline(ip, port, 0, 0, size, kChunk, kInflight, type);
  return communicator_->getPipeline(ip, port, 0, 0, size, kChunk, kInflight, type);
}

std::string PeerProgram::startLoop(std::istream& in) {
  std::string what, ip;
  uint16_t port = 0;
  size_t size = 0;
  in >> what >> ip >> port >> size;
  ConnType type = readType(in);
  loopCount_ = 0;
  loop_ = std::thread([this, what, ip, port, size, type] {
    status_t status = status_t::SUCCESS;
    while (status == status_t::SUCCESS) {
      status = move(what, ip, port, size, type);
      if (status == status_t::SUCCESS) ++loopCount_;
    }
    loopEnd_ = answerFor(status);
  });
  return "ok";
}

std::string PeerProgram::joinLoop() {
  if (!loop_.joinable()) return "error UNKNOWN there is no loop";
  loop_.join();
  return loopEnd_;
}

std::string PeerProgram::writeRounds(std::istream& in) {
  uint32_t peer = 0;
  std::string ip;
  uint16_t port = 0;
  uint64_t rounds = 0;
  in >> peer >> ip >> port >> rounds;
  ConnType type = readType(in);
  std::vector<unsigned char> bytes;
  uint64_t acknowledged = 0;
  for (uint64_t round = 1; round <= rounds; ++round) {
    fillRound(bytes, round);
    status_t status = writeBuffer(bytes.data(), bytes.size(), roundOffset(round));
    if (status == status_t::SUCCESS)
      status =
          communicator_->put(ip, port, roundOffset(round), roundOffset(round), bytes.size(), type);
    if (status == status_t::SUCCESS) status = communicator_->ctrlSend(peer, round);
    while (status == status_t::SUCCESS && round - acknowledged >= roundsAhead(round, rounds)) {
      uint64_t tag = 0;
      status = communicator_->ctrlRecv(peer, &tag);
      if (status == status_t::SUCCESS && tag != ++acknowledged)
        return "error DIFFERENT round " + std::to_string(acknowledged) + " was acknowledged as " +
               std::to_string(tag);
    }
    if (status != status_t::SUCCESS) return answerFor(status);
  }
  return "ok";
}

std::string PeerProgram::readRounds(std::istream& in) {
  uint32_t peer = 0;
  uint64_t rounds = 0;
  in >> peer >> rounds;
  std::vector<unsigned char> wanted;
  std::vector<unsigned char> bytes;
  uint64_t stale = 0;
  for (uint64_t round = 1; round <= rounds; ++round) {
    uint64_t tag = 0;
    status_t status = communicator_->ctrlRecv(peer, &tag);
    if (status != status_t::SUCCESS) return answerFor(status);
    fillRound(wanted, tag);
    bytes.resize(wanted.size());
    status = readBuffer(bytes.data(), bytes.size(), roundOffset(tag));
    if (status != status_t::SUCCESS) return answerFor(status);
    if (bytes != wanted || tag != round) ++stale;
    status = communicator_->ctrlSend(peer, tag);
    if (status != status_t::SUCCESS) return answerFor(status);
  }
  return "ok " + std::to_string(stale);
}

void PeerProgram::addObservation() {
  commands_["checkconn"] = [this](std::istream& in) {
    std::string ip;
    uint16_t port = 0;
    in >> ip >> port;
    return answerFor(communicator_->checkConn(ip, port, readType(in)));
  };
  commands_["explain"] = [this](std::istream& in) {
    std::string ip;
    uint16_t port = 0;
    in >> ip >> port;
    std::string text = communicator_->explain(ip, port);
    for (char& letter : text) letter = letter == '\n' ? '|' : letter;
    return "ok " + text;
  };
  commands_["count"] = [](std::istream&) {
    return "ok " + std::to_string(countEntries("/proc/self/fd")) + " " +
           std::to_string(countEntries("/proc/self/task")) + " " +
           std::to_string(countLines("/proc/self/maps")) + " " + privateMemory();
  };
}

}  // namespace hmc::test
