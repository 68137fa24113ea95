#include "transport/ipc/neighbour.h"

#include "base/codec.h"
#include "base/error.h"
#include "base/fd_exchange.h"
#include "transport/ipc/shared.h"

namespace hmc::ipc {

namespace {

enum class Question : uint8_t { describe = 1, openRing = 2, giveMappings = 3 };

std::string question(Question what, std::string_view about = "") {
  return Writer().u8(static_cast<uint8_t>(what)).raw(about).take();
}

Result<Parcel> describe(const Shared& shared, const std::string& token) {
  HMC_ASSIGN(const auto offered, shared.offered.find(token));
  HMC_ASSIGN(Parcel answer, copyOf(encode(offered->what), offered->share));
  if (!offered->what.page) return answer;
  HMC_ASSIGN(Fd page, duplicate(shared.pageFd.get()));
  answer.fds.push_back(std::move(page));
  return answer;
}

Result<Parcel> acceptRing(Shared& shared, const std::string& link, const std::vector<Fd>& fds) {
  if (fds.size() != 2) {
    return error(Code::invalidArgument, "{} descriptors came with a ring, which has two",
                 fds.size());
  }
  HMC_ASSIGN(auto ring, SharedBlock<Ring>::attach(fds[0]));
  HMC_ASSIGN(auto page, SharedBlock<ServicePage>::attach(fds[1]));
  HMC_TRY(shared.service.acceptRing(link, std::move(ring), std::move(page)));
  return Parcel();
}

}  // namespace

Result<Reached> Neighbour::describe(const Key& key, Deadline deadline) const {
  const Parcel request{question(Question::describe, key.token), {}};
  HMC_ASSIGN(auto answer,
             FdExchange::ask(address_.exchange, address_.link, bond_, request, deadline));
  HMC_ASSIGN(Description what, decodeDescription(answer.parcel.bytes));
  auto& fds = answer.parcel.fds;
  if (fds.size() != what.shareFds + (what.page ? 1 : 0)) {
    return error(Code::invalidArgument, "{} descriptors came with memory that has {}", fds.size(),
                 what.shareFds + (what.page ? 1 : 0));
  }
  Reached reached{std::move(what), {}, {}, std::move(answer.from)};
  if (reached.what.page) {
    reached.page = std::move(fds.back());
    fds.pop_back();
  }
  reached.share = std::move(fds);
  return reached;
}

Status Neighbour::openRing(const SharedBlock<Ring>& ring, const SharedBlock<ServicePage>& page,
                           Deadline deadline) const {
  Parcel request{question(Question::openRing), {}};
  HMC_ASSIGN(Fd ringFd, ring.share());
  HMC_ASSIGN(Fd pageFd, page.share());
  request.fds.push_back(std::move(ringFd));
  request.fds.push_back(std::move(pageFd));
  return FdExchange::ask(address_.exchange, address_.link, bond_, request, deadline).status();
}

Status Neighbour::giveMappings(const MappingGuard& guard, Deadline deadline) const {
  Parcel request{question(Question::giveMappings), {}};
  HMC_ASSIGN(request.fds, guard.share());
  return FdExchange::ask(address_.exchange, address_.link, bond_, request, deadline).status();
}

Result<Parcel> answerNeighbour(Shared& shared, const std::string& link, NeighbourServer& server,
                               Parcel request) {
  Reader in(request.bytes);
  const auto what = static_cast<Question>(in.u8());
  if (what == Question::describe) return describe(shared, std::string(in.raw(in.left())));
  if (what == Question::openRing) return acceptRing(shared, link, request.fds);
  if (what == Question::giveMappings) {
    HMC_ASSIGN(auto mappings, PeerMappings::attach(std::move(request.fds)));
    HMC_TRY(server.acceptMappings(std::move(mappings)));
    return Parcel();
  }
  return error(Code::unsupported, "a peer asks what this version does not know");
}

}  // namespace hmc::ipc
