#include "base/error.h"
#include "hmc/store.h"
#include "store/server.h"

namespace hmc {

Result<StoreServer> StoreServer::start(const std::string& address,
                                       const StoreServerOptions& options) {
  HMC_ASSIGN(auto server,
             store::Server::start(address, {options.secret, options.capacity, options.data,
                                            options.insecure, options.tls}));
  return StoreServer(std::move(server));
}

StoreServer::StoreServer(std::unique_ptr<store::Server> server) : server_(std::move(server)) {}
StoreServer::~StoreServer() = default;
StoreServer::StoreServer(StoreServer&&) noexcept = default;
StoreServer& StoreServer::operator=(StoreServer&&) noexcept = default;

const std::string& StoreServer::address() const {
  return server_->address();
}

uint64_t StoreServer::requests() const {
  return server_->requests();
}

}  // namespace hmc
