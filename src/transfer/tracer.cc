#include "transfer/tracer.h"

#include <fmt/core.h>

#include <cstdio>

namespace hmc {

namespace {

uint64_t bytesOf(const Pieces& pieces) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < pieces.count(); ++i) bytes += pieces.at(i).size;
  return bytes;
}

void print(void*, const TraceEvent& event) {
  static constexpr const char* kSteps[] = {"start", "post", "end"};
  fmt::print(stderr, "hmc trace: {} {} {} {} bytes over {} with {}{}{}\n",
             kSteps[static_cast<size_t>(event.step)], event.put ? "put" : "get", event.transfer,
             event.bytes, event.transport, event.peer,
             event.step == TraceEvent::Step::end ? ": " : "",
             event.step == TraceEvent::Step::end ? codeName(event.code) : "");
}

}  // namespace

TraceHook traceToStderr() {
  return {print, nullptr};
}

void Tracer::start(const Transfer& transfer) {
  const Record record{transfer.route.peer, transfer.kind, bytesOf(transfer.pieces)};
  {
    std::lock_guard lock(mutex_);
    records_.emplace(transfer.id, record);
  }
  tell(TraceEvent::Step::start, transfer.id, record, record.bytes, Code::ok);
}

void Tracer::post(uint64_t id, uint64_t bytes) {
  Record record;
  {
    std::lock_guard lock(mutex_);
    const auto found = records_.find(id);
    if (found == records_.end()) return;
    record = found->second;
  }
  tell(TraceEvent::Step::post, id, record, bytes, Code::ok);
}

void Tracer::onComplete(uint64_t id, Code code) {
  std::unordered_map<uint64_t, Record>::node_type ended;
  {
    std::lock_guard lock(mutex_);
    ended = records_.extract(id);
  }
  if (!ended.empty()) tell(TraceEvent::Step::end, id, ended.mapped(), ended.mapped().bytes, code);
  next_.onComplete(id, code);
}

void Tracer::tell(TraceEvent::Step step, uint64_t id, const Record& record, uint64_t bytes,
                  Code code) const {
  hook_.call(hook_.context, {step, id, transport_.c_str(), record.peer.c_str(),
                             record.kind == OpKind::put, bytes, code});
}

}  // namespace hmc
