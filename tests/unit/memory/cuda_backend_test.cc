#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <set>
#include <thread>

#include "contract/second_process.h"
#include "unit/memory/fake_cuda.h"

// What the memory contract does not hold: contexts, failures of the driver and of devices.
namespace hmc::cuda {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class CudaBackendTest : public FakeCuda {
 protected:
  // One call of every method, on device 0. Gives everything back, whatever fails.
  void useEverything() {
    std::string bytes(100000, 'x');
    auto pinned = backend->pin(host(bytes));
    auto reservation = backend->reserve(1, nullptr);
    auto region = backend->allocate(0, bytes.size());
    if (region.ok()) {
      (void)copyNow(*region, host(bytes));
      (void)backend->locate(region->at(10));
      (void)backend->share(*region, ShareFor::nic);
      auto share = backend->share(*region, ShareFor::process);
      if (share.ok() && reservation.ok()) attachAndDetach(*share, (*reservation)->region.ptr);
      giveBack([&] { return backend->release(region->ptr); });
    }
    auto gate = backend->event(0);
    if (gate.ok()) (void)(*gate)->hold({{DeviceKind::cuda, 0}});
  }
  void attachAndDetach(const Share& share, void* at) {
    for (void* where : {static_cast<void*>(nullptr), at}) {
      auto attached = backend->attach(share, where);
      if (attached.ok()) giveBack([&] { return backend->detach(*attached); });
    }
  }
  // Once more where the first try failed.
  static void giveBack(const std::function<Status()>& back) {
    if (back().ok()) return;
    Status again = back();
    EXPECT_TRUE(again.ok() || again.code() == Code::invalidArgument) << again.toString();
  }
};

TEST_F(CudaBackendTest, namesTheLibraryThatIsMissingAndWhatBringsIt) {
  Status missing = CudaBackend::create("libcuda-of-nobody.so.1").status();
  EXPECT_THAT(missing.message(), AllOf(HasSubstr("libcuda-of-nobody.so.1"), HasSubstr("NVIDIA"),
                                       HasSubstr("--gpus all")));
  Status another = CudaBackend::create("libm.so.6").status();
  EXPECT_THAT(another.message(), AllOf(HasSubstr("libm.so.6"), HasSubstr("cuInit")));
}

TEST(CudaWithoutDevices, DISABLED_secondProcessSaysThatThereIsNone) {
  Status none = CudaBackend::create().status();
  EXPECT_EQ(none.code(), Code::unsupported);
  EXPECT_THAT(none.message(), AllOf(HasSubstr("cuInit"), HasSubstr("no CUDA-capable device")));
}

TEST(CudaWithoutDevices, saysThatThereIsNone) {
  EXPECT_EQ(SecondProcess::run("DISABLED_secondProcessSaysThatThereIsNone", Share(),
                               "CUDA_VISIBLE_DEVICES="),
            0);
}

TEST_F(CudaBackendTest, leavesTheCallersContextCurrent) {
  useEverything();
  EXPECT_EQ(depth(), 0u);
  EXPECT_EQ(currentContext(), nullptr);
  Current callers(driver, contextOf(1));
  useEverything();
  EXPECT_EQ(depth(), 1u);
  EXPECT_EQ(currentContext(), contextOf(1));
}

// The other half of the next test, in a process that may lose memory. Each function of the driver
// fails at its first, second and third call.
TEST_F(CudaBackendTest, DISABLED_secondProcessHasADriverThatFails) {
#define HMC_ROW(name, arguments) #name,
  const std::string functions[] = {HMC_CUDA_FUNCTIONS(HMC_ROW)};
#undef HMC_ROW
  // What gives something back, and did not.
  const std::set<std::string> lossy{"cuMemUnmap", "cuMemAddressFree", "cuMemRelease",
                                    "cuMemHostUnregister", "cuCtxPushCurrent_v2"};
  Current callers(driver, contextOf(1));
  for (const std::string& function : functions) {
    if (function == "cuCtxPopCurrent_v2") continue;  // nobody could restore anything then
    for (int nth = 1; nth <= 3; ++nth) {
      const std::string where = function + " " + std::to_string(nth);
      const test::FakeCudaLive before = live();
      fail(function.c_str(), nth, 999);
      useEverything();
      fail(function.c_str(), 0, 0);
      EXPECT_EQ(currentContext(), contextOf(1)) << where;
      EXPECT_EQ(depth(), 1u) << where;
      EXPECT_TRUE(live() == before || lossy.count(function) == 1) << where;
      Region works = test::must(backend->allocate(0, 4096));
      write(works, std::string(4096, 'w'));
      EXPECT_EQ(read(works), std::string(4096, 'w')) << where;
      EXPECT_TRUE(backend->release(works.ptr).ok()) << where;
    }
  }
}

TEST_F(CudaBackendTest, losesNothingAndKeepsContextsWhereTheDriverFails) {
  EXPECT_EQ(SecondProcess::run("DISABLED_secondProcessHasADriverThatFails", Share()), 0);
}

TEST_F(CudaBackendTest, doesNotCallAFailedUnmapSuccess) {
  Region region = test::must(backend->allocate(0, 4096));
  fail("cuMemUnmap", 1, kInvalidValue);
  EXPECT_THAT(backend->release(region.ptr).message(), HasSubstr("cuMemUnmap"));
}

TEST_F(CudaBackendTest, namesTheNumbersWhenMemoryIsOut) {
  const size_t most = size_t{6} << 30;
  auto first = backend->allocate(1, most);
  ASSERT_TRUE(first.ok()) << first.status().toString();
  Status refused = backend->allocate(1, most).status();
  EXPECT_EQ(refused.code(), Code::exhausted);
  EXPECT_THAT(refused.message(), AllOf(HasSubstr("cuda:1"), HasSubstr(std::to_string(most)),
                                       HasSubstr(std::to_string(size_t{2} << 30)),
                                       HasSubstr(std::to_string(size_t{8} << 30))));
  EXPECT_TRUE(backend->release(first->ptr).ok());
  auto second = backend->allocate(1, most);
  EXPECT_TRUE(second.ok()) << second.status().toString();
  EXPECT_TRUE(backend->release(second->ptr).ok());
}

TEST_F(CudaBackendTest, allocatesWithoutFabricHandlesWhereTheMachineHasNoServiceForThem) {
  fail("cuMemCreate", 1, kNotPermitted);
  auto region = backend->allocate(0, 4096);
  ASSERT_TRUE(region.ok()) << region.status().toString();
  EXPECT_TRUE(backend->release(region->ptr).ok());
}

TEST_F(CudaBackendTest, saysThatMemoryIsPinnedAlready) {
  std::string bytes(10000, 'x');
  const size_t before = live().pinned;
  auto pinned = backend->pin(host(bytes));
  ASSERT_TRUE(pinned.ok()) << pinned.status().toString();
  EXPECT_EQ(backend->pin(host(bytes)).status().code(), Code::alreadyExists);
  EXPECT_EQ(backend->pin({bytes.data() + 9999, 1, Device{}}).status().code(), Code::alreadyExists);
  pinned->reset();
  EXPECT_TRUE(backend->pin(host(bytes)).ok());
  EXPECT_EQ(live().pinned, before);
}

// A kernel that reads host memory which is not pinned would break the device.
TEST_F(CudaBackendTest, copiesListsOfWhichNotAllIsPinned) {
  Region region = test::must(backend->allocate(0, 8000));
  std::string bytes(8000, 'l');
  for (size_t pinnedBytes : {4000, 7999, 8000}) {
    auto pinned = test::must(backend->pin({bytes.data(), pinnedBytes, Device{}}));
    write(region, std::string(8000, '.'));
    std::vector<Block> blocks;
    for (size_t at = 0; at < 8000; at += 1000) blocks.push_back({at, at, 1000});
    ASSERT_TRUE(backend->copy({region, host(bytes), blocks, 8000}, {region.device}).ok());
    EXPECT_EQ(read(region), bytes) << pinnedBytes;
  }
  EXPECT_TRUE(backend->release(region.ptr).ok());
}

// A kernel of ours that touches memory of another context would break the device, too.
TEST_F(CudaBackendTest, copiesListsOfMemoryOfAnotherContext) {
  CuContext another = nullptr;
  ASSERT_EQ(call<CuResult(CuContext*, unsigned, CuDevice)>("cuCtxCreate_v2", &another, 0, 0),
            kSuccess);
  CuPointer made = 0;
  ASSERT_EQ(driver.cuMemAlloc_v2(&made, 8000), kSuccess);
  const Region theirs{pointer(made), 8000, {DeviceKind::cuda, 0}};
  const Region ours = test::must(backend->allocate(0, 8000));
  EXPECT_EQ(currentContext(), another);
  write(theirs, std::string(8000, 't'));
  std::vector<Block> there;
  std::vector<Block> back;
  for (size_t at = 0; at < 8000; at += 1000) {
    back.push_back({7000 - at, at, 1000});
    there.push_back({at, at, 1000});
  }
  ASSERT_TRUE(backend->copy({ours, theirs, back, 8000}, {ours.device}).ok());
  EXPECT_EQ(read(ours), std::string(8000, 't'));
  write(theirs, std::string(8000, '?'));
  ASSERT_TRUE(backend->copy({theirs, ours, there, 8000}, {ours.device}).ok());
  EXPECT_EQ(read(theirs), std::string(8000, 't'));
  EXPECT_EQ(driver.cuCtxPopCurrent_v2(&another), kSuccess);
  EXPECT_TRUE(backend->release(ours.ptr).ok());
}

TEST_F(CudaBackendTest, copiesOnTheDefaultStreamsOfUsers) {
  Region region = test::must(backend->allocate(1, 4096));
  for (uintptr_t number : {1, 2}) {
    const DeviceQueue queue{region.device, reinterpret_cast<void*>(number)};
    std::string bytes(4096, static_cast<char>('a' + number));
    ASSERT_TRUE(copyOn(queue, region, host(bytes)).ok());
    auto done = test::must(backend->event(1));
    ASSERT_TRUE(done->record(queue).ok());
    EXPECT_TRUE(waitFor(*done, std::chrono::seconds(60)).ok());
    EXPECT_EQ(read(region), bytes);
  }
  EXPECT_TRUE(backend->release(region.ptr).ok());
}

// The stream need not even be able to say so.
TEST_F(CudaBackendTest, hasPassedWhatIsRecordedOnAStreamOfTheUsersThatHasNothingToDo) {
  Current current(driver, contextOf(0));
  CuStream stream = nullptr;
  ASSERT_EQ(driver.cuStreamCreateWithPriority(&stream, kStreamNonBlocking, 0), kSuccess);
  auto event = test::must(backend->event(0));
  fail("cuStreamWriteValue32_v2", 1, kNotSupported);
  EXPECT_TRUE(event->record({{DeviceKind::cuda, 0}, stream}).ok());
  EXPECT_TRUE(test::must(event->passed()));
  EXPECT_FALSE(event->signal().ok());
  EXPECT_FALSE(event->record({{DeviceKind::cuda, 0}}).ok()) << "a stream of ours is not asked";
}

// The caller's thread often has the right context: changing it takes longer than asking.
TEST_F(CudaBackendTest, leavesAContextThatIsCurrentAlreadyAlone) {
  auto event = test::must(backend->event(0));
  Current callers(driver, contextOf(0));
  fail("cuCtxPushCurrent_v2", 1, kNotSupported);
  EXPECT_TRUE(backend->event(0).ok());
  EXPECT_TRUE(event->record({{DeviceKind::cuda, 0}}).ok());
  EXPECT_FALSE(backend->event(1).ok()) << "another device's context has to be pushed";
}

TEST_F(CudaBackendTest, recordsOnAStreamOfAnotherContext) {
  CuContext other = nullptr;
  ASSERT_EQ((call<CuResult(CuContext*, unsigned, CuDevice)>("cuCtxCreate_v2", &other, 0, 0)),
            kSuccess);
  CuStream stream = nullptr;
  ASSERT_EQ(driver.cuStreamCreateWithPriority(&stream, kStreamNonBlocking, 0), kSuccess);
  ASSERT_EQ(driver.cuCtxPopCurrent_v2(&other), kSuccess);
  auto event = test::must(backend->event(0));
  fail("cuStreamQuery", 1, kNotSupported);
  EXPECT_TRUE(event->record({{DeviceKind::cuda, 0}, stream}).ok());
  EXPECT_TRUE(waitFor(*event, std::chrono::seconds(60)).ok());
}

// The other half of the next test, in a process whose device may break.
TEST_F(CudaBackendTest, DISABLED_secondProcessTouchesAnIllegalAddress) {
  Region region = test::must(backend->allocate(0, 4096));
  Region other = test::must(backend->allocate(1, 4096));
  auto reservation = test::must(backend->reserve(4096, nullptr));
  const DeviceQueue queue{region.device};
  EXPECT_TRUE(copyOn(queue, {reservation->region.ptr, 4096, region.device}, region).ok());
  auto event = test::must(backend->event(0));
  Status recorded = event->record(queue);
  Status failed = recorded.ok() ? waitFor(*event, std::chrono::seconds(60)) : recorded;
  EXPECT_THAT(failed.message(),
              AllOf(HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"), HasSubstr("illegal memory access"),
                    HasSubstr("new process")));
  EXPECT_NE(failed.code(), Code::deadlineExceeded);
  EXPECT_THAT(copyOn(queue, region, region.slice(0, 1)).message(), HasSubstr("ILLEGAL_ADDRESS"));
  EXPECT_FALSE(backend->allocate(0, 4096).ok());
  // The other device goes on, and memory can be given back.
  write(other, std::string(4096, 'o'));
  EXPECT_EQ(read(other), std::string(4096, 'o'));
  EXPECT_TRUE(backend->release(other.ptr).ok());
  EXPECT_TRUE(backend->release(region.ptr).ok());
  EXPECT_EQ(live().mappings, 0u);
}

TEST_F(CudaBackendTest, saysInTheDriversWordsThatADeviceFailedAndNeverHangs) {
  EXPECT_EQ(SecondProcess::run("DISABLED_secondProcessTouchesAnIllegalAddress", Share()), 0);
}

// A stream that never gets there must not hang whoever gives memory back.
TEST_F(CudaBackendTest, doesNotWaitForStreamsThatHaveNoCopyOfOurs) {
  Region region = test::must(backend->allocate(0, 4096));
  CuStream stuck = nullptr;
  {
    Current current(driver, contextOf(0));
    ASSERT_EQ(driver.cuStreamCreateWithPriority(&stuck, kStreamNonBlocking, 0), kSuccess);
  }
  auto gate = test::must(backend->event(0));
  const DeviceQueue users{region.device, reinterpret_cast<void*>(uintptr_t{1})};
  write(region, std::string(4096, 'x'));
  ASSERT_TRUE(copyOn(users, region, region.slice(0, 1)).ok());
  ASSERT_TRUE(gate->hold({region.device, stuck}).ok());
  EXPECT_TRUE(backend->release(region.ptr).ok());
  EXPECT_TRUE(gate->signal().ok());
}

TEST_F(CudaBackendTest, allocatesWhileAQueueWaits) {
  auto gate = test::must(backend->event(0));
  ASSERT_TRUE(gate->hold({{DeviceKind::cuda, 0}}).ok());
  auto region = backend->allocate(0, 4096);
  EXPECT_TRUE(gate->signal().ok());
  ASSERT_TRUE(region.ok()) << region.status().toString();
  EXPECT_TRUE(backend->release(region->ptr).ok());
}

TEST_F(CudaBackendTest, saysAfterAForkThatCudaDoesNotSurviveIt) {
  Region region = test::must(backend->allocate(0, 4096));
  auto event = test::must(backend->event(0));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::string bytes(10, 'x');
    const Status answers[] = {
        backend->allocate(0, 4096).status(),
        backend->release(region.ptr),
        copyOn({region.device}, region, host(bytes)),
        backend->event(0).status(),
        waitFor(*event, std::chrono::seconds(60)),
        backend->share(region, ShareFor::process).status(),
        backend->pin(host(bytes)).status(),
        CudaBackend::create().status(),
    };
    int wrong = 0;
    for (const Status& answer : answers) {
      if (answer.message().find("fork()") != std::string::npos) continue;
      fprintf(stderr, "in the child: %s\n", answer.toString().c_str());
      ++wrong;
    }
    _exit(wrong);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(backend->release(region.ptr).ok());
}

TEST_F(CudaBackendTest, isSafeFromManyThreads) {
  const size_t before = live().mappings;
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number) {
    threads.emplace_back([this, number] {
      for (int round = 0; round < 10; ++round) {
        Region region = test::must(backend->allocate(number % 2, 10000));
        const std::string bytes(10000, static_cast<char>('a' + number));
        write(region, bytes);
        EXPECT_EQ(read(region), bytes);
        EXPECT_TRUE(backend->release(region.ptr).ok());
      }
      EXPECT_EQ(depth(), 0u);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(live().mappings, before);
}

}  // namespace
}  // namespace hmc::cuda
