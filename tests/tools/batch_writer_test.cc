#include "tools/batch_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/status_matchers.h"

namespace coldstream {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;
using Order = BatchWriter::Order;

constexpr std::chrono::milliseconds kNever = std::chrono::hours(1);

// Keeps lines; may be held, and fails at the call that it is told to.
class FakeSink : public LineSink {
 public:
  Status Append(std::string_view line) override {
    std::unique_lock lock(mutex_);
    open_.wait(lock, [this] { return !held_; });
    if (static_cast<int>(lines_.size()) == fail_at_)
      return absl::ResourceExhaustedError("disk full");
    lines_.emplace_back(line);
    unsynced_ = true;
    return absl::OkStatus();
  }
  Status Sync() override {
    const std::lock_guard lock(mutex_);
    ++syncs_;
    unsynced_ = false;
    return sync_status_;
  }

  void Hold(bool held) {
    {
      const std::lock_guard lock(mutex_);
      held_ = held;
    }
    open_.notify_all();
  }
  void FailAt(int line) { fail_at_ = line; }
  void FailSync() { sync_status_ = absl::UnavailableError("EIO"); }
  std::vector<std::string> lines() const {
    const std::lock_guard lock(mutex_);
    return lines_;
  }
  int syncs() const {
    const std::lock_guard lock(mutex_);
    return syncs_;
  }
  bool unsynced() const {
    const std::lock_guard lock(mutex_);
    return unsynced_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable open_;
  std::vector<std::string> lines_;
  bool held_ = false;
  bool unsynced_ = false;
  int fail_at_ = -1;
  int syncs_ = 0;
  Status sync_status_;
};

// Whether `call` is still under way after a while: what must wait, waits.
template <typename Call>
class Background {
 public:
  explicit Background(Call call)
      : thread_([this, call = std::move(call)] {
          call();
          done_ = true;
        }) {}
  ~Background() { thread_.join(); }
  bool waits() const {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return !done_;
  }

 private:
  std::atomic<bool> done_{false};
  std::thread thread_;
};

std::vector<BatchWriter::Ticket> AdmitMany(BatchWriter* writer, int count) {
  std::vector<BatchWriter::Ticket> tickets;
  tickets.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) tickets.push_back(*writer->Admit());
  return tickets;
}

TEST(BatchWriterTest, InTheOrderOfCompletionLinesGoOutAsTheyCome) {
  FakeSink sink;
  BatchWriter writer(&sink,
                     {.order = Order::kCompletion, .sync_interval = kNever});
  const auto tickets = AdmitMany(&writer, 3);
  sink.Hold(true);
  writer.Deliver(tickets[2], "c\n");
  sink.Hold(false);
  while (writer.written() < 1) std::this_thread::yield();
  writer.Deliver(tickets[0], "a\n");
  while (writer.written() < 2) std::this_thread::yield();
  writer.Deliver(tickets[1], "b\n");
  EXPECT_THAT(writer.Finish(), IsOk());
  EXPECT_THAT(sink.lines(), ElementsAre("c\n", "a\n", "b\n"));
}

TEST(BatchWriterTest, InTheOrderOfTheInputLinesWaitForTheirTurn) {
  FakeSink sink;
  BatchWriter writer(&sink, {.order = Order::kInput, .sync_interval = kNever});
  const auto tickets = AdmitMany(&writer, 4);
  writer.Deliver(tickets[3], "d\n");
  writer.Deliver(tickets[1], "b\n");
  EXPECT_EQ(writer.written(), 0);
  writer.Deliver(tickets[0], "a\n");
  while (writer.written() < 2) std::this_thread::yield();
  EXPECT_THAT(sink.lines(), ElementsAre("a\n", "b\n"));
  writer.Deliver(tickets[2], "c\n");
  EXPECT_THAT(writer.Finish(), IsOk());
  EXPECT_THAT(sink.lines(), ElementsAre("a\n", "b\n", "c\n", "d\n"));
}

TEST(BatchWriterTest, AdmissionWaitsForARequestThatIsOutstanding) {
  for (const Order order : {Order::kCompletion, Order::kInput}) {
    FakeSink sink;
    BatchWriter writer(
        &sink,
        {.order = order, .most_outstanding = 2, .sync_interval = kNever});
    const auto tickets = AdmitMany(&writer, 2);
    const Background third([&] { writer.Deliver(*writer.Admit(), "c\n"); });
    EXPECT_TRUE(third.waits());
    writer.Deliver(tickets[0], "a\n");
    writer.Deliver(tickets[1], "b\n");
  }
}

TEST(BatchWriterTest, AdmissionWaitsWhileTooManyBytesWaitForTheirTurn) {
  FakeSink sink;
  BatchWriter writer(
      &sink,
      {.order = Order::kInput, .most_bytes = 10, .sync_interval = kNever});
  const auto tickets = AdmitMany(&writer, 2);
  writer.Deliver(tickets[1], "a line over the limit\n");
  const Background third([&] { writer.Deliver(*writer.Admit(), "c\n"); });
  EXPECT_TRUE(third.waits());
  writer.Deliver(tickets[0], "a\n");
}

TEST(BatchWriterTest, ASlowSinkHoldsAdmissionBackButNotDelivery) {
  FakeSink sink;
  sink.Hold(true);
  BatchWriter writer(&sink, {.order = Order::kCompletion,
                             .most_outstanding = 2,
                             .sync_interval = kNever});
  for (const auto ticket : AdmitMany(&writer, 2)) writer.Deliver(ticket, "a\n");
  const Background third([&] { writer.Deliver(*writer.Admit(), "c\n"); });
  EXPECT_TRUE(third.waits());
  sink.Hold(false);
}

TEST(BatchWriterTest, TheSinksErrorEndsEverythingAndIsReturned) {
  for (const Order order : {Order::kCompletion, Order::kInput}) {
    FakeSink sink;
    sink.FailAt(1);
    BatchWriter writer(
        &sink, {.order = order, .sync_interval = std::chrono::milliseconds(1)});
    for (const auto ticket : AdmitMany(&writer, 3))
      writer.Deliver(ticket, "a\n");
    EXPECT_THAT(writer.Finish(),
                StatusIs(absl::StatusCode::kResourceExhausted));
    EXPECT_THAT(writer.Admit(), StatusIs(absl::StatusCode::kResourceExhausted));
    EXPECT_EQ(sink.lines().size(), 1u);
    EXPECT_EQ(writer.written(), 1);
  }
}

TEST(BatchWriterTest, AnErrorEndsAnAdmissionThatWaits) {
  FakeSink sink;
  sink.FailAt(0);
  BatchWriter writer(&sink, {.most_outstanding = 1, .sync_interval = kNever});
  const auto ticket = *writer.Admit();
  const Background second([&] {
    EXPECT_THAT(writer.Admit(), StatusIs(absl::StatusCode::kResourceExhausted));
  });
  EXPECT_TRUE(second.waits());
  writer.Deliver(ticket, "a\n");
}

TEST(BatchWriterTest, AFailedSyncIsAnErrorToo) {
  FakeSink sink;
  sink.FailSync();
  BatchWriter writer(&sink, {.sync_interval = kNever});
  writer.Deliver(*writer.Admit(), "a\n");
  EXPECT_THAT(writer.Finish(), StatusIs(absl::StatusCode::kUnavailable));
}

TEST(BatchWriterTest, FinishSyncsWhatIsNotAndOnlyThat) {
  FakeSink sink;
  BatchWriter writer(&sink, {.sync_interval = kNever});
  EXPECT_THAT(writer.Finish(), IsOk());
  EXPECT_EQ(sink.syncs(), 0);
  FakeSink other;
  BatchWriter second(&other, {.sync_interval = kNever});
  second.Deliver(*second.Admit(), "a\n");
  EXPECT_THAT(second.Finish(), IsOk());
  EXPECT_EQ(other.syncs(), 1);
  EXPECT_FALSE(other.unsynced());
}

TEST(BatchWriterTest, ALineIsSyncedAfterTheIntervalWithoutAnotherOne) {
  FakeSink sink;
  BatchWriter writer(&sink, {.sync_interval = std::chrono::milliseconds(1)});
  writer.Deliver(*writer.Admit(), "a\n");
  while (sink.syncs() == 0) std::this_thread::yield();
  EXPECT_FALSE(sink.unsynced());
}

TEST(BatchWriterTest, AnAbandonedRequestLeavesItsPlaceInAnyOrder) {
  FakeSink sink;
  BatchWriter writer(&sink, {.order = Order::kCompletion,
                             .most_outstanding = 2,
                             .sync_interval = kNever});
  auto tickets = AdmitMany(&writer, 2);
  writer.Abandon(tickets[0]);
  writer.Deliver(*writer.Admit(), "c\n");
  writer.Deliver(tickets[1], "b\n");
  EXPECT_THAT(writer.Finish(), IsOk());
  EXPECT_THAT(sink.lines(), UnorderedElementsAre("b\n", "c\n"));
}

TEST(BatchWriterTest, NothingIsWrittenBehindAnAbandonedRequestOfTheInput) {
  FakeSink sink;
  BatchWriter writer(&sink, {.order = Order::kInput, .sync_interval = kNever});
  const auto tickets = AdmitMany(&writer, 5);
  writer.Deliver(tickets[2], "c\n");
  writer.Abandon(tickets[1]);
  writer.Abandon(tickets[3]);
  writer.Deliver(tickets[4], "e\n");
  writer.Deliver(tickets[0], "a\n");
  writer.Deliver(*writer.Admit(), "f\n");
  EXPECT_THAT(writer.Finish(), IsOk());
  EXPECT_THAT(sink.lines(), ElementsAre("a\n"));
}

TEST(BatchWriterTest, WithoutFinishWhatWasDeliveredIsWritten) {
  FakeSink sink;
  {
    BatchWriter writer(&sink,
                       {.order = Order::kInput, .sync_interval = kNever});
    const auto tickets = AdmitMany(&writer, 3);
    writer.Deliver(tickets[2], "c\n");
    writer.Deliver(tickets[0], "a\n");
  }
  EXPECT_THAT(sink.lines(), ElementsAre("a\n"));
  EXPECT_EQ(sink.syncs(), 0);
}

// Several producers, several threads that deliver, late and out of order.
TEST(BatchWriterTest, ManyThreadsLoseAndRepeatNothing) {
  constexpr int kThreads = 4;
  constexpr int kEach = 300;
  for (const Order order : {Order::kCompletion, Order::kInput}) {
    FakeSink sink;
    BatchWriter writer(&sink, {.order = order,
                               .most_outstanding = 2 * kThreads,
                               .most_bytes = 40,
                               .sync_interval = std::chrono::milliseconds(1)});
    std::vector<std::thread> threads;
    threads.reserve(kThreads);
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        std::mt19937 random(static_cast<unsigned>(t));
        for (int i = 0; i < kEach; ++i) {
          const auto ticket = *writer.Admit();
          if (random() % 8 == 0)
            std::this_thread::sleep_for(std::chrono::microseconds(50));
          writer.Deliver(ticket, std::to_string(ticket) + "\n");
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_THAT(writer.Finish(), IsOk());
    std::vector<std::string> expected;
    expected.reserve(static_cast<size_t>(kThreads) * kEach);
    for (int i = 0; i < kThreads * kEach; ++i)
      expected.push_back(std::to_string(i) + "\n");
    std::vector<std::string> got = sink.lines();
    if (order == Order::kCompletion) {
      std::sort(got.begin(), got.end());
      std::sort(expected.begin(), expected.end());
    }
    EXPECT_EQ(got, expected);
    EXPECT_FALSE(sink.unsynced());
  }
}

}  // namespace
}  // namespace coldstream
