#include "tools/bench_runner.h"

#include <chrono>
#include <cstdint>
#include <future>
#include <span>
#include <utility>

#include "tools/random_stream.h"

namespace coldstream {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kTokenSeed = 1;

// The same ids every time: speed must not hang on what they are, but the rows
// of the embedding table read for them do.
std::vector<TokenId> FixedTokens(int64_t count, int64_t vocabulary) {
  RandomStream random(kTokenSeed);
  std::vector<TokenId> tokens;
  for (int64_t i = 0; i < count; ++i) {
    tokens.push_back(static_cast<TokenId>(random.Next() %
                                          static_cast<uint64_t>(vocabulary)));
  }
  return tokens;
}

}  // namespace

BenchRunner::BenchRunner(const BenchFlags* flags, const ReadCounter* counter,
                         Engine* engine, StatusLine* status)
    : flags_(*flags),
      counter_(*counter),
      engine_(*engine),
      status_(*status),
      session_(flags->sequences > 1 ? nullptr : engine->NewSession()),
      tokens_(FixedTokens(flags->prompt_tokens + 1,
                          engine->model().vocab_size())) {}

StatusOr<BenchRun> BenchRunner::Run(const std::string& label, int runs_after) {
  if (session_ != nullptr) session_->Reset();
  // As the last run had it.
  std::optional<double> later_runs, generation;
  if (last_) {
    generation = last_->generation.seconds;
    later_runs = runs_after * (last_->prompt.seconds + *generation);
  }
  BenchRun run;
  if (flags_.prompt_tokens > 0) {
    StatusWork work{.label = label,
                    .prompt_tokens = flags_.prompt_tokens * flags_.sequences,
                    .pass_tokens = engine_.options().batch_tokens,
                    .seconds_after = later_runs};
    if (generation) *work.seconds_after += *generation;
    status_.Begin(work);
    ASSIGN_OR_RETURN(run.prompt, Measure([&] {
                       return session_ ? FeedPrompt() : FeedPrompts();
                     }));
  }
  if (flags_.generated_tokens > 0) {
    status_.Begin({.label = label,
                   .generated_tokens = flags_.generated_tokens,
                   .seconds_after = later_runs});
    ASSIGN_OR_RETURN(run.generation, Measure([&] {
                       return session_ ? Generate() : GenerateTogether();
                     }));
  }
  status_.Hide();
  last_ = run;
  return run;
}

// body: a call of the session, which returns tokens and seconds.
template <typename Body>
StatusOr<PhaseSample> BenchRunner::Measure(const Body& body) {
  const EngineStats before = engine_.stats();
  const ReadCounts read_before = counter_.Now(before.bytes_from_disk);
  ASSIGN_OR_RETURN(PhaseSample sample, body());
  const EngineStats after = engine_.stats();
  sample.used = Since(before, after);
  sample.read = counter_.Now(after.bytes_from_disk) - read_before;
  return sample;
}

StatusOr<PhaseSample> BenchRunner::FeedPrompt() {
  const auto prompt = std::span(tokens_).first(tokens_.size() - 1);
  RETURN_IF_ERROR(session_->Evaluate(
      prompt, engine_.options().batch_tokens, Session::Logits::kLast,
      [](int64_t, std::span<const float>) { return absl::OkStatus(); }));
  PhaseSample sample;
  sample.tokens = flags_.prompt_tokens;
  sample.seconds = session_->times().prompt_seconds;
  return sample;
}

// No two alike, in this run and those before, so that nothing is taken over.
std::vector<TokenId> BenchRunner::NewPrompt(int64_t tokens) {
  RandomStream random(RandomStream::Derive(kTokenSeed, prompts_made_++));
  const auto vocabulary = static_cast<uint64_t>(engine_.model().vocab_size());
  std::vector<TokenId> prompt;
  for (int64_t i = 0; i < tokens; ++i)
    prompt.push_back(static_cast<TokenId>(random.Next() % vocabulary));
  return prompt;
}

StatusOr<PhaseSample> BenchRunner::FeedPrompts() {
  return RunTogether(
      [&] {
        Request request;
        request.generate.prompt = NewPrompt(flags_.prompt_tokens);
        request.generate.max_tokens = 0;
        return request;
      },
      flags_.prompt_tokens);
}

StatusOr<PhaseSample> BenchRunner::GenerateTogether() {
  return RunTogether(
      [&] {
        Request request;
        request.generate.prompt = NewPrompt(1);
        request.generate.max_tokens = flags_.generated_tokens;
        request.generate.sampling.temperature = 0;
        request.generate.ignore_end_of_generation = true;
        return request;
      },
      flags_.generated_tokens);
}

StatusOr<PhaseSample> BenchRunner::RunTogether(
    const std::function<Request()>& make, int64_t tokens_of_each) {
  std::vector<Request> requests;
  for (int64_t i = 0; i < flags_.sequences; ++i) requests.push_back(make());
  const Clock::time_point begin = Clock::now();
  std::vector<std::future<RequestResult>> futures;
  for (Request& request : requests) {
    ASSIGN_OR_RETURN(futures.emplace_back(),
                     engine_.Submit(std::move(request)));
  }
  Status status;
  for (auto& future : futures) status.Update(future.get().status);
  PhaseSample sample;
  sample.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  engine_.Drain();  // so that its counts are complete
  RETURN_IF_ERROR(status);
  sample.tokens = flags_.sequences * tokens_of_each;
  return sample;
}

// One more fixed token, and what comes after it: a pass for each.
StatusOr<PhaseSample> BenchRunner::Generate() {
  GenerateRequest request;
  request.prompt = {tokens_.back()};
  request.max_tokens = flags_.generated_tokens;
  request.sampling.temperature = 0;
  request.ignore_end_of_generation = true;
  RETURN_IF_ERROR(session_->Generate(request, {}).status());
  PhaseSample sample;
  sample.tokens = session_->times().generated_tokens;
  sample.seconds =
      session_->times().prompt_seconds + session_->times().generation_seconds;
  return sample;
}

}  // namespace coldstream
