// Every variable of the environment is the default of its option, for everyone who has that option.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/environment.h"
#include "hmc/communicator.h"
#include "hmc/node.h"
#include "hmc/pool.h"
#include "hmc/store.h"
#include "node/node_defaults.h"
#include "scoped_variable.h"

namespace hmc {
namespace {

using testing::HasSubstr;
using tool::ScopedVariable;
using Reader = Variable::Reader;
using Form = Variable::Form;

// Who has options, and whether one can be made with those that the environment gives.
struct Face {
  const char* name;
  std::vector<Reader> reads;
  std::function<Status()> make;
};

Status makePool() {
  PoolOptions options;
  options.serveStore = true;
  return Pool::join("", options).status();
}

Status makeCommunicator() {
  Communicator communicator(std::make_shared<ConnBuffer>(0, 4096, MemoryType::CPU));
  return communicator.status() == status_t::SUCCESS ? Status() : lastStatus();
}

const std::vector<Face>& faces() {
  static const std::vector<Face> all{
      {"Node", {Reader::everybody, Reader::nodes}, [] { return Node::create().status(); }},
      {"Pool", {Reader::everybody, Reader::nodes, Reader::pools}, makePool},
      {"Communicator", {Reader::everybody, Reader::nodes, Reader::documented}, makeCommunicator},
      {"StoreServer", {Reader::everybody}, [] { return StoreServer::start().status(); }},
  };
  return all;
}

// What makes no sense for a variable of that form; null where every text may make some.
const char* nonsense(Form form) {
  switch (form) {
    case Form::milliseconds:
    case Form::number:
    case Form::choice:
    case Form::choices:
    case Form::ports:
      return "nonsense";
    default:
      return nullptr;
  }
}

class EnvironmentDefaults : public testing::Test {
 protected:
  // A pool that names no store asks for these.
  const ScopedVariable store_{"HMC_POOL_STORE",
                              "unix://" + testing::TempDir() + "settings_test.sock"};
  const ScopedVariable rank_{"HMC_POOL_RANK", "0"};
  const ScopedVariable size_{"HMC_POOL_SIZE", "1"};
};

TEST_F(EnvironmentDefaults, whoReadsAVariableRefusesWhatMakesNoSenseAndNobodyElseMinds) {
  for (const Variable* variable : kVariables) {
    const char* wrong = nonsense(variable->form);
    if (wrong == nullptr) continue;
    const ScopedVariable set(variable->name, wrong);
    for (const Face& face : faces()) {
      const bool reads = testing::Value(variable->reader, testing::AnyOfArray(face.reads));
      const Status made = face.make();
      EXPECT_EQ(made.ok(), !reads)
          << face.name << " with " << variable->name << ": " << made.message();
      if (reads) {
        EXPECT_THAT(made.message(), HasSubstr(variable->name)) << face.name;
      }
    }
  }
}

TEST_F(EnvironmentDefaults, everyMistakeIsNamedAtOnce) {
  const ScopedVariable lease("HMC_LEASE_MS", "soon");
  const ScopedVariable transports("HMC_TRANSPORTS", "tcp,pigeon");
  const std::string sentence = Node::create().status().message();
  EXPECT_THAT(sentence, HasSubstr("HMC_LEASE_MS=\"soon\""));
  EXPECT_THAT(sentence, HasSubstr("HMC_TRANSPORTS=\"tcp,pigeon\": expected some of: ipc verbs"));
}

std::vector<std::string> transportsOf(const NodeOptions& options) {
  std::vector<std::string> names;
  for (const PathReport& path : Node::create(options)->transports())
    names.push_back(path.transport);
  return names;
}

TEST_F(EnvironmentDefaults, transportsAreThoseOfTheEnvironmentUnlessTheOptionNamesThem) {
  EXPECT_THAT(transportsOf({}), testing::Contains("ipc"));
  const ScopedVariable only("HMC_TRANSPORTS", "tcp");
  EXPECT_THAT(transportsOf({}), testing::ElementsAre("tcp"));
  NodeOptions options;
  options.transports = {"ipc"};
  EXPECT_THAT(transportsOf(options), testing::ElementsAre("ipc"));
}

TEST_F(EnvironmentDefaults, theLeaseIsThatOfTheEnvironmentUnlessTheOptionNamesIt) {
  using namespace std::chrono_literals;
  EXPECT_EQ(leaseOf(*withEnvironment(NodeOptions())), 10s);
  const ScopedVariable lease("HMC_LEASE_MS", "500");
  const NodeOptions completed = *withEnvironment(NodeOptions());
  EXPECT_EQ(leaseOf(completed), 500ms);
  EXPECT_LE(completed.heartbeat, 100ms) << "else the lease would end between two of them";
  EXPECT_TRUE(Node::create().ok());
  NodeOptions options;
  options.lease = 3s;
  EXPECT_EQ(leaseOf(*withEnvironment(options)), 3s);
}

TEST_F(EnvironmentDefaults, theSecretIsThatOfTheEnvironmentUnlessTheOptionNamesIt) {
  NodeOptions named;
  named.secret = "sesame";
  Node owner = *Node::create(named);
  const std::string listener = *owner.listen("tcp://127.0.0.1:0");
  EXPECT_FALSE(Node::create()->connectOnce(listener).ok());
  const ScopedVariable secret("HMC_SECRET", "sesame");
  EXPECT_TRUE(Node::create()->connectOnce(listener).ok());
  named.secret = "simsim";
  EXPECT_FALSE(Node::create(named)->connectOnce(listener).ok());
}

}  // namespace
}  // namespace hmc
