#include "node/path_notes.h"

#include <algorithm>

#include "base/log.h"

namespace hmc {

void PassedOver::addBroken(const std::string& transport, const std::string& why) {
  broken += (broken.empty() ? "" : "; ") + transport + ": " + why;
}

void PassedOver::addUnasked(const std::string& transport) {
  unasked += (unasked.empty() ? "" : ", ") + transport;
}

PathNotes::Note PathNotes::of(const std::string& transport) const {
  std::lock_guard lock(mutex_);
  auto found = notes_.find(transport);
  return found == notes_.end() ? Note{} : found->second;
}

void PathNotes::used(const std::string& transport, const std::string& path) {
  std::lock_guard lock(mutex_);
  Note& note = notes_[transport];
  if (std::find(note.used.begin(), note.used.end(), path) == note.used.end())
    note.used.push_back(path);
  note.failure.clear();
}

void PathNotes::failed(const std::string& transport, const std::string& why) {
  std::lock_guard lock(mutex_);
  notes_[transport].failure = why;
}

void PathNotes::staged(const std::string& transport, const std::string& why) {
  std::lock_guard lock(mutex_);
  notes_[transport].staged = why;
}

void PathNotes::stagedHere(const std::string& transport, const std::string& why) {
  std::lock_guard lock(mutex_);
  notes_[transport].stagedHere = why;
}

bool PathNotes::first(const std::string& about) {
  std::lock_guard lock(mutex_);
  return told_.insert(about).second;
}

bool PathNotes::tellIfSlow(const std::string& peer, DeviceKind kind, const std::string& path,
                           const PassedOver& passed, const std::string& slower) {
  const std::string memory = std::string(deviceKindName(kind)) + " memory over " + path;
  std::string broken = passed.broken;
  if (!slower.empty()) broken += (broken.empty() ? "" : "; ") + slower;
  if (!broken.empty()) {
    if (!first("warn " + memory)) return false;
    logWarn(
        "{} is reached on a slower path than it could be, {}: {}. `hmc doctor` finds what to fix",
        peer, memory, broken);
    return true;
  }
  if (passed.unasked.empty() || !first("info " + memory)) return false;
  logInfo("{} is reached on a slower path than it could be, {}, because {} was not asked for", peer,
          memory, passed.unasked);
  return true;
}

}  // namespace hmc
