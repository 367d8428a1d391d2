// A device with one rule of the slot protocol left out: Records or Waits of
// some events do nothing. What still passes on it proves too little.
//
// Events are told apart by the order in which they are made.
#ifndef COLDSTREAM_TESTS_SUPPORT_MUTANT_DEVICE_H_
#define COLDSTREAM_TESTS_SUPPORT_MUTANT_DEVICE_H_

#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/device.h"

namespace coldstream {

struct Mutation {
  enum class Call { kNone, kRecord, kStreamWait, kHostWait };
  Call call = Call::kNone;
  std::function<bool(int event)> of = {};  // numbered from 0
  int stream = -1;                         // numbered from 0; -1: any
  bool drops(Call made, int event, int on = -1) const {
    return made == call && (stream < 0 || on == stream) && of(event);
  }
};

class MutantDevice final : public Device {
 public:
  MutantDevice(std::unique_ptr<Device> device, Mutation mutation)
      : device_(std::move(device)), mutation_(std::move(mutation)) {}

  DeviceKind kind() const override { return device_->kind(); }
  const char* name() const override { return device_->name(); }
  StatusOr<DeviceMemoryInfo> MemoryInfo() override {
    return device_->MemoryInfo();
  }
  StatusOr<DeviceMemory> Allocate(size_t bytes, const char* what) override {
    return device_->Allocate(bytes, what);
  }
  Status RegisterHostMemory(std::span<std::byte> memory) override {
    return device_->RegisterHostMemory(memory);
  }
  void UnregisterHostMemory(std::span<std::byte> memory) override {
    device_->UnregisterHostMemory(memory);
  }
  StatusOr<std::unique_ptr<Stream>> NewStream() override {
    ASSIGN_OR_RETURN(std::unique_ptr<Stream> stream, device_->NewStream());
    streams_.push_back(stream.get());
    return std::make_unique<MutantStream>(
        std::move(stream), static_cast<int>(streams_.size()) - 1, mutation_);
  }
  StatusOr<std::unique_ptr<Event>> NewEvent() override {
    ASSIGN_OR_RETURN(std::unique_ptr<Event> event, device_->NewEvent());
    return std::make_unique<MutantEvent>(std::move(event), events_++,
                                         mutation_);
  }
  // Ends the work of all streams, as a mutant may not: none of them may be
  // gone.
  void SynchronizeAll() {
    for (Stream* stream : streams_) (void)stream->Synchronize().ok();
  }

 private:
  class MutantEvent final : public Event {
   public:
    MutantEvent(std::unique_ptr<Event> inner, int index,
                const Mutation& mutation)
        : event(std::move(inner)), number(index), mutation_(mutation) {}
    bool Ready() const override { return event->Ready(); }
    Status Wait() override {
      if (mutation_.drops(Mutation::Call::kHostWait, number))
        return absl::OkStatus();
      return event->Wait();
    }
    StatusOr<double> SecondsSince(const Event& earlier) const override {
      return event->SecondsSince(
          *static_cast<const MutantEvent&>(earlier).event);
    }
    const std::unique_ptr<Event> event;
    const int number;

   private:
    const Mutation& mutation_;
  };

  class MutantStream final : public Stream {
   public:
    MutantStream(std::unique_ptr<Stream> stream, int number,
                 const Mutation& mutation)
        : stream_(std::move(stream)), number_(number), mutation_(mutation) {}
    Status CopyToDevice(std::byte* to, const std::byte* from,
                        size_t bytes) override {
      return stream_->CopyToDevice(to, from, bytes);
    }
    Status CopyToHost(std::byte* to, const std::byte* from,
                      size_t bytes) override {
      return stream_->CopyToHost(to, from, bytes);
    }
    Status Record(Event* event) override {
      const auto* mutant = static_cast<MutantEvent*>(event);
      if (mutation_.drops(Mutation::Call::kRecord, mutant->number, number_))
        return absl::OkStatus();
      return stream_->Record(mutant->event.get());
    }
    Status Wait(const Event& event) override {
      const auto& mutant = static_cast<const MutantEvent&>(event);
      if (mutation_.drops(Mutation::Call::kStreamWait, mutant.number, number_))
        return absl::OkStatus();
      return stream_->Wait(*mutant.event);
    }
    Status Synchronize() override { return stream_->Synchronize(); }
    void* native_handle() override { return stream_->native_handle(); }

   private:
    std::unique_ptr<Stream> stream_;
    const int number_;
    const Mutation& mutation_;
  };

  std::unique_ptr<Device> device_;
  const Mutation mutation_;
  std::vector<Stream*> streams_;
  int events_ = 0;
};

}  // namespace coldstream

#endif  // COLDSTREAM_TESTS_SUPPORT_MUTANT_DEVICE_H_
