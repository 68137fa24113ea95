#include "transport/verbs/service.h"

#include <endian.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "base/error.h"

namespace hmc::verbs {

namespace {

// How long the last messages to peers may take when the transport ends.
constexpr std::chrono::milliseconds kLastMessages{200};

// Little-endian on the wire.
uint64_t pack(const ControlMessage& message) {
  return htole64(static_cast<uint64_t>(message.kind) | uint64_t{message.channel} << 8 |
                 uint64_t{message.psn} << 32);
}

ControlMessage unpack(uint64_t wire) {
  const uint64_t bits = le64toh(wire);
  return {static_cast<ControlMessage::Kind>(bits & 0xff), static_cast<uint8_t>(bits >> 8),
          static_cast<uint32_t>(bits >> 32)};
}

}  // namespace

Result<std::unique_ptr<ControlQp>> ControlQp::create(CompletionQueues& queues) {
  HMC_ASSIGN(auto pair, QueuePair::create(queues, {kDepth, kDepth, 0}, QueuePair::Serves::nothing));
  std::unique_ptr<ControlQp> made(new ControlQp(std::move(pair)));
  const Nic& nic = queues.nic();
  const Library& library = nic.library();
  made->key_ = Handle<ibv_mr>(
      library.ibv_reg_mr(nic.pd(), made->memory_.get(), kPage, IBV_ACCESS_LOCAL_WRITE),
      library.ibv_dereg_mr);
  if (!made->key_) {
    return errnoStatus(fmt::format("registering control messages with {}", nic.port().name()));
  }
  return made;
}

ControlQp::ControlQp(QueuePair pair) : pair_(std::move(pair)), psn_(randomPsn()) {
  static_assert(2 * kDepth * sizeof(uint64_t) <= kPage);
  auto* memory = static_cast<uint64_t*>(memory_.get());
  for (size_t i = 0; i < 2 * kDepth; ++i) slots_.push_back({this, i >= kDepth, memory + i});
  for (size_t i = kDepth; i < 2 * kDepth; ++i) free_.push_back(&slots_[i]);
}

Status ControlQp::connect(const QpAddress& to, const PortAddress& port) {
  for (size_t i = 0; i < kDepth; ++i) HMC_TRY(receiveInto(slots_[i]));
  return pair_.connect(to, port, psn_);
}

ibv_sge ControlQp::pieceOf(const MessageSlot& slot) const {
  return {reinterpret_cast<uint64_t>(slot.bytes), sizeof(*slot.bytes), key_->lkey};
}

Status ControlQp::receiveInto(MessageSlot& slot) {
  ibv_sge piece = pieceOf(slot);
  ibv_recv_wr request{};
  request.wr_id = reinterpret_cast<uint64_t>(&slot);
  request.sg_list = &piece;
  request.num_sge = 1;
  ibv_recv_wr* refused = nullptr;
  receiving_.fetch_add(1);
  const int failed = ibv_post_recv(pair_.get(), &request, &refused);
  if (failed == 0) return Status();
  receiving_.fetch_sub(1);
  return errnoStatus("posting a receive on the RDMA control queue pair",
                     failed > 0 ? failed : errno);
}

Status ControlQp::send(const ControlMessage& message) {
  std::lock_guard lock(mutex_);
  if (free_.empty()) {
    return error(Code::failed, "the peer has not taken {} RDMA control messages, the most we queue",
                 kDepth);
  }
  MessageSlot& slot = *free_.back();
  *slot.bytes = pack(message);
  ibv_sge piece = pieceOf(slot);
  ibv_send_wr request{};
  request.wr_id = reinterpret_cast<uint64_t>(&slot);
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr* refused = nullptr;
  sending_.fetch_add(1);
  const int failed = ibv_post_send(pair_.get(), &request, &refused);
  if (failed != 0) {
    sending_.fetch_sub(1);
    return errnoStatus("sending an RDMA control message", failed > 0 ? failed : errno);
  }
  free_.pop_back();
  return Status();
}

ControlQp::Event ControlQp::handle(const ibv_wc& wc) {
  MessageSlot& slot = *std::bit_cast<MessageSlot*>(wc.wr_id);
  ControlQp& self = *slot.qp;
  Event event{&self, std::nullopt, Status()};
  if (wc.status != IBV_WC_SUCCESS) {
    const Nic& nic = self.pair_.nic();
    event.failure = error(Code::disconnected, "lost the peer over RDMA: {}{}",
                          nic.library().ibv_wc_status_str(wc.status), nic.trouble());
  }
  if (slot.sends) {
    std::lock_guard lock(self.mutex_);
    self.free_.push_back(&slot);
    self.sending_.fetch_sub(1);
    return event;
  }
  self.receiving_.fetch_sub(1);
  if (!event.failure.ok()) return event;
  if (wc.byte_len == sizeof(*slot.bytes)) event.received = unpack(*slot.bytes);
  event.failure = self.receiveInto(slot);
  return event;
}

Result<std::unique_ptr<Service>> Service::create(const Nics& nics) {
  HMC_ASSIGN(auto queues, CompletionQueues::create(*nics[0]));
  std::unique_ptr<Service> service(new Service(nics, std::move(queues)));
  HMC_ASSIGN(service->loop_, Loop::create("hmc-verbs"));
  Status status;
  service->loop_->run([&] { status = service->start(); });
  HMC_TRY(status);
  return service;
}

Status Service::start() {
  timer_ = std::make_unique<Loop::Timer>(*loop_);
  std::vector<int> fds{queues_->fd()};
  for (const auto& nic : nics_) fds.push_back(nic->asyncFd());
  for (const int fd : fds) {
    HMC_ASSIGN(auto watch, loop_->watch(fd, EPOLLIN, [this](uint32_t) { step(); }));
    watches_.push_back(std::move(watch));
  }
  step();
  return Status();
}

Service::~Service() {
  {
    std::unique_lock lock(mutex_);
    flushed_.wait_for(lock, kLastMessages, [&] {
      return std::all_of(leaving_.begin(), leaving_.end(),
                         [](const auto& control) { return control->flushed(); });
    });
  }
  if (loop_) loop_->stop();
}

void Service::add(Member& member, ControlQp& control) {
  std::lock_guard lock(mutex_);
  entries_.push_back({&member, &control});
}

void Service::remove(Member& member, std::unique_ptr<ControlQp> control) {
  std::lock_guard lock(mutex_);
  std::erase_if(entries_, [&](const Entry& entry) { return entry.member == &member; });
  leaving_.push_back(std::move(control));
  wake();
}

void Service::step() {
  std::lock_guard lock(mutex_);
  receive();
  for (const auto& nic : nics_) readEvents(*nic);
  expire();
  reap();
  auto next = Loop::Clock::time_point::max();
  for (const Entry& entry : entries_) next = std::min(next, entry.member->timer());
  timer_->cancel();
  if (next == Loop::Clock::time_point::max()) return;
  timer_->after(std::chrono::ceil<std::chrono::milliseconds>(next - Loop::Clock::now()),
                [this] { step(); });
}

void Service::receive() {
  queues_->acknowledge();
  queues_->arm();
  std::vector<ControlQp::Event> events;
  queues_->poll([&](const ibv_wc& wc) { events.push_back(ControlQp::handle(wc)); });
  for (const ControlQp::Event& event : events) {
    for (const Entry& entry : entries_) {
      if (entry.control != event.qp) continue;
      if (event.received) entry.member->received(*event.received);
      if (!event.failure.ok()) entry.member->lost(event.failure);
    }
  }
}

// Every link uses every NIC.
void Service::readEvents(const Nic& nic) {
  ibv_async_event event{};
  while (nic.library().ibv_get_async_event(nic.context(), &event) == 0) {
    const ibv_event_type type = event.event_type;
    nic.library().ibv_ack_async_event(&event);
    if (type != IBV_EVENT_DEVICE_FATAL) continue;
    const Status why =
        error(Code::disconnected, "RDMA device {} has failed or was removed", nic.port().device);
    for (const Entry& entry : entries_) entry.member->lost(why);
  }
}

void Service::expire() {
  for (const Entry& entry : entries_) {
    if (entry.member->timer() <= Loop::Clock::now()) entry.member->expire();
  }
}

void Service::reap() {
  for (auto& control : leaving_) {
    if (control->flushed() && !control->idle()) control->stop();
  }
  std::erase_if(leaving_, [](const auto& control) { return control->idle(); });
  flushed_.notify_all();
}

}  // namespace hmc::verbs
